"""The examples of the papers are evaluated by the reference, and by the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

import estero
from estero.language.syntax.parser import parse_pattern
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern

Evaluate = Callable[[str, Sequence[Event]], set[ComplexEvent]]


def by_reference(pattern: str, events: Sequence[Event]) -> set[ComplexEvent]:
    """All complex events of a pattern, by the reference semantics."""
    return evaluate_pattern(parse_pattern(pattern), events)


def table(events: Sequence[Event]) -> pa.Table:
    """The events in rows, with their types in the column ``type``."""
    names = dict.fromkeys(name for event in events for name in event.attributes)
    columns = {name: [event.attributes.get(name) for event in events] for name in names}
    return pa.table({"type": [event.type for event in events], **columns})


def by_engine(pattern: str, events: Sequence[Event]) -> set[ComplexEvent]:
    """All complex events of a pattern, by a query on a table of the events."""
    answer = estero.query(f"SELECT * WHERE ({pattern})").run(table(events), type="type")
    found = [
        ComplexEvent(
            each.start,
            each.end,
            frozenset((label, frozenset(marked)) for label, marked in each.positions.items() if marked),
        )
        for each in answer
    ]
    assert len(found) == len(set(found)), "a complex event comes twice"
    return set(found)


@pytest.fixture(params=[by_reference, by_engine], ids=["reference", "engine"])
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """All complex events of a pattern, given as text, over events in stream order."""
    chosen: Evaluate = request.param
    return chosen
