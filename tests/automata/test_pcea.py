"""PCEA given by hand: what is refused, and how one prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estero.automata.pcea import JoinKey, PceaTransition, Source
from estero.language.tree.expressions import Attribute
from papers.test_pcea import P0


def test_it_prints_a_line_for_each_transition() -> None:
    assert str(P0) == (
        "3 states: q0, q1, q2; a run accepts in q2\n"
        "begin → q0  on T: mark •\n"
        "begin → q1  on S: mark •\n"
        "q0 & q1 → q2  on R: mark •, joining q0 by x = x; q1 by (x, y) = (x, y)"
    )


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (PceaTransition((), 7, frozenset("•"), 0), "bit 7 has no predicate, in transition 0"),
        (PceaTransition((), 0, frozenset(), 0), "an event is read and not marked, in transition 0"),
        (PceaTransition((), 0, frozenset("•"), 3), "state 3 is not one of 0 to 2, in transition 0"),
        (
            PceaTransition((Source(0, 0, 0), Source(0, 0, 0)), 0, frozenset("•"), 2),
            "a state is gathered twice, in transition 0",
        ),
        (PceaTransition((Source(0, 0, 5),), 0, frozenset("•"), 2), "there is no key 5, in transition 0"),
        (
            PceaTransition((Source(0, 0, 1),), 0, frozenset("•"), 2),
            "keys 0 and 1 differ in length, in transition 0",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(transition: PceaTransition, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(P0, transitions=(transition,))


def test_a_final_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="state 9 is not one of 0 to 2, final"):
        replace(P0, final=frozenset({9}))


def test_a_key_has_as_many_values_for_every_type() -> None:
    with pytest.raises(ValueError, match="a different number of values"):
        JoinKey({"T": (Attribute("x"),), "S": ()})
    with pytest.raises(ValueError, match="names no type"):
        JoinKey({})
