"""The assertion that a query finds what it is meant to find, whatever runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from estero.queries.query import Query
from estero.testing.pictures import picture
from estero.testing.short_events import events as events_of
from estero.testing.ways import AT_ONCE, Marked, installed, ways

Expected = Mapping[str, int | Sequence[int]]
"""A complex event: for each label the positions of its events, or the only one."""


def assert_matches(
    query: Query | str,
    events: str | pa.Table,
    expected: Iterable[Expected] | int,
    *,
    engines: Sequence[str] | None = None,
    type: str = "type",
    time: str = "time",
    time_unit: str | None = None,
) -> None:
    """Passes if `query` finds the `expected` complex events in `events`, whatever runs it.

    `query` is a query or its text, in CEQL or conjunctive. `events` are a text, as `estero.testing.events`
    reads it, or an Arrow table in stream order. `expected` are the complex events in any order, each as a
    mapping of the labels that the query shows to the positions (from 0) of the events that they mark; or
    only how many there are. `type`, `time` and `time_unit` are those of `Query.run`.

    The query runs over all events at once, over one after the other, and stopped and resumed before each of
    them; on each of the `engines` ("process", "spark"): all that are installed, unless they are named.

    Raises AssertionError, which shows under the events what is missing and what is too much, and where
    something is missing, why not more is found (`Answer.why_not`); `QueryError` and
    `DataError` for a wrong query or wrong events, and ValueError for what cannot be expected.
    """
    __tracebackhide__ = True
    asked = Query(query) if isinstance(query, str) else query
    table = events_of(events, type=type, time=time) if isinstance(events, str) else events
    named = installed() if engines is None else tuple(engines)
    unknown = [each for each in named if each not in ("process", "spark")]
    if unknown:
        raise ValueError(f"the engines are 'process' and 'spark', not {', '.join(map(repr, unknown))}")
    wanted = expected if isinstance(expected, int) else [_marked(each, table.num_rows) for each in expected]
    layout: dict[str, Any] = {"type": type, "time_unit": time_unit}
    if time in table.column_names:
        layout["time"] = time
    for way in ways(asked, table, layout, named):
        found = way.found()
        if isinstance(wanted, int):
            wrong, rows = _other_number(found, wanted)
        else:
            wrong, rows = _others(found, wanted)
        if wrong:
            shown = picture(table, rows, type=type, time=time)
            said = f"{asked}\n{way.name}: {wrong}\n\n{shown}"
            if way.name == AT_ONCE and _lacks(found, wanted):
                said += f"\n\n{asked.run(table, **layout).why_not()}"
            raise AssertionError(said)


def _lacks(found: Sequence[Marked], wanted: int | Sequence[Marked]) -> bool:
    """Whether something is missing."""
    return len(found) < wanted if isinstance(wanted, int) else bool(Counter(wanted) - Counter(found))


def _marked(expected: Expected, events: int) -> Marked:
    """What is expected in the form in which it is found."""
    marked = {label: (each,) if isinstance(each, int) else tuple(each) for label, each in expected.items()}
    for label, positions in marked.items():
        for position in positions:
            if not 0 <= position < events:
                raise ValueError(f"{label} is expected at {position}, and positions are 0 to {events - 1}")
    return tuple(sorted((label, tuple(sorted(each))) for label, each in marked.items() if each))


def _other_number(found: Sequence[Marked], wanted: int) -> tuple[str, list[tuple[str, Marked]]]:
    """What is wrong with how many there are, if anything, and what to show of them."""
    wrong = "" if len(found) == wanted else f"found {_complex_events(len(found))}, expected {wanted}"
    return wrong, [("found", each) for each in found]


def _others(found: Sequence[Marked], wanted: Sequence[Marked]) -> tuple[str, list[tuple[str, Marked]]]:
    """What is wrong with what was found, if anything, and what to show: each row with a word."""
    there, asked = Counter(found), Counter(wanted)
    kinds = {"missing": asked - there, "unexpected": there - asked, "as expected": there & asked}
    rows = [(kind, each) for kind, which in kinds.items() for each in sorted(which.elements())]
    wrong = [f"{kinds[kind].total()} {kind}" for kind in ("missing", "unexpected") if kinds[kind]]
    return f"found {_complex_events(len(found))}, {' and '.join(wrong)}" if wrong else "", rows


def _complex_events(number: int) -> str:
    return f"{number or 'no'} complex event{'' if number == 1 else 's'}"
