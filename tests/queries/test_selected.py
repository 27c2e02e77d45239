"""What is built can be run and explained as it is."""

from __future__ import annotations

import estero
from estero.testing import events

STREAM = events("A(k=1)@0s A(k=2)@1s B(k=1)@2s B(k=1)@9s")


def test_a_built_query_runs_as_its_text_does() -> None:
    pattern = estero.event("A").named("a").then(estero.event("B").named("b"))
    built = estero.select(pattern).show("a", "b").partition_by("k").within(seconds=5).limit(1)
    found = built.run(STREAM, type="type", time="time")
    text = estero.query(str(built)).run(STREAM, type="type", time="time")
    assert found.to_arrow() == text.to_arrow()
    assert found.count() == 1
    assert built.query() == estero.query(built) == estero.query(str(built))


def test_a_built_query_is_explained_as_its_text_is() -> None:
    built = estero.select(estero.event("A").repeated()).strategy("next")
    assert str(built.explain()) == str(estero.query(str(built)).explain())
