"""The same queries over the same stream, on every engine: the answers of the reference semantics."""

from __future__ import annotations

import pytest

from engines import Engine
from laws.one_answer import EVENTS, HOW, QUERIES, expected, found

CONJUNCTIVE = "Q(x) <- A(k: x) AS a, B(k: x) AS b, C(k: x) AS c WITHIN 4 [time]"
"""What the joined query asks for."""


@pytest.mark.parametrize("name", QUERIES)
def test_every_engine_finds_what_the_reference_finds(engine: Engine, name: str) -> None:
    assert found(engine.rows(QUERIES[name], EVENTS, HOW)) == expected(name)


def test_a_conjunctive_query_finds_what_the_join_of_all_finds(bounded_engine: Engine) -> None:
    """It is the joined query above, written otherwise."""
    assert found(bounded_engine.rows(CONJUNCTIVE, EVENTS, HOW)) == expected("joined")
