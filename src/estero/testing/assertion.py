"""The assertion that a query finds the expected complex events, on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from estero.arguments import checked, shown
from estero.errors import DataError
from estero.events.scan import Scan
from estero.queries.query import Query
from estero.testing.expected import Expected, Wanted
from estero.testing.pictures import picture
from estero.testing.short_events import events as events_of
from estero.testing.ways import AT_ONCE, Shown, installed, ways

_NOTHING_SHOWN = (
    "the query shows no label and nothing that can be compared, so only the number of complex "
    "events is compared; SELECT * shows where they are"
)


@checked
def assert_matches(
    query: Query | str,
    events: str | pa.Table | Scan,
    expected: Iterable[Expected] | int,
    *,
    engines: Sequence[str] | None = None,
    type: str | None = None,
    time: str | None = None,
    time_unit: str | None = None,
) -> None:
    """Asserts that `query` finds the `expected` complex events in `events`, on every engine.

    `query` is a query or its text, in CEQL or conjunctive. `events` are a text, as `estero.testing.events`
    reads it, or an Arrow table in stream order, or an `estero.scan` of either. `expected` are the complex
    events in any order, each as a mapping from labels to the positions (from 0) of the events that they mark,
    and from names of keys and of values that SELECT computes to their values; or only the number of complex
    events. Values that no expected complex event names are not compared, nor are marks where only values are
    named. `type`, `time` and `time_unit` are those of `Query.run`; the columns of type and
    time are called ``type`` and ``time`` unless they are named here or by the scan.

    The query runs over all events at once, over one after the other, and stopped and resumed before each of
    them, on each of the `engines` ("process", "spark"; by default all that are installed).

    Raises AssertionError, which shows missing and superfluous complex events under the events, and the
    reasons for missing ones (`Answer.why_not`); `QueryError` and `DataError` for a wrong query or wrong
    events, and ValueError for an invalid expectation.
    """
    __tracebackhide__ = True
    asked = Query(query) if isinstance(query, str) else query
    scan = _tabled(Scan.of(events, type, time, (), time_unit))
    named = installed() if engines is None else tuple(engines)
    unknown = [engine for engine in named if engine not in ("process", "spark")]
    if unknown:
        raise ValueError(f"the engines are 'process' and 'spark', not {', '.join(map(repr, unknown))}")
    schema = asked.run(scan).schema
    wanted = expected if isinstance(expected, int) else Wanted.of(expected, schema, scan.events.num_rows)
    for way in ways(asked, scan, named):
        shown = way.run() if isinstance(wanted, int) else wanted.of_shown(way.run())
        wrong, rows = _wrong(shown, wanted)
        if wrong:
            said = f"{asked}\n{way.name}: {wrong}\n\n{picture(scan, rows)}"
            if values := "" if isinstance(wanted, int) else wanted.values_shown(rows):
                said += f"\n\n{values}"
            if not any(row.marks or row.values for _, row in rows):
                said += f"\n\n{_NOTHING_SHOWN}"
            if way.name == AT_ONCE and _lacks(rows, shown, wanted):
                said += f"\n\n{asked.run(scan).why_not()}"
            raise AssertionError(said)


def _tabled(scan: Scan) -> Scan:
    """A table of the events in a text, or the given table, with its columns of type and time.

    They are named ``type`` and ``time`` unless the scan says otherwise; a time that is not named, or that of
    a text, may be missing.
    """
    layout, events = scan.layout, scan.events
    kind, time = layout.type or "type", layout.time or "time"
    table = events_of(events, type=kind, time=time) if isinstance(events, str) else events
    if not isinstance(table, pa.Table):
        raise DataError(
            f"assert_matches() takes a text or an Arrow table as events, not {shown(table)}",
            hint="make it a table: pyarrow.table(…)",
        )
    timed = time in table.column_names or (layout.time is not None and table is events)
    typed = kind in table.column_names or layout.type is not None
    return Scan(table, replace(layout, type=kind if typed else None, time=time if timed else None))


def _wrong(shown: Sequence[Shown], wanted: int | Wanted) -> tuple[str, list[tuple[str, Shown]]]:
    """The difference between the found and the expected, if any, and the rows to show, each with a word."""
    if isinstance(wanted, int):
        wrong = "" if len(shown) == wanted else f"found {_complex_events(len(shown))}, expected {wanted}"
        return wrong, [("found", row) for row in shown]
    rows = wanted.compared(shown)
    numbers = Counter(word for word, _ in rows)
    wrong = " and ".join(f"{numbers[word]} {word}" for word in ("missing", "unexpected") if numbers[word])
    return f"found {_complex_events(len(shown))}, {wrong}" if wrong else "", rows


def _lacks(rows: Sequence[tuple[str, Shown]], shown: Sequence[Shown], wanted: int | Wanted) -> bool:
    """Whether an expected complex event is missing."""
    if isinstance(wanted, int):
        return len(shown) < wanted
    return any(word == "missing" for word, _ in rows)


def _complex_events(number: int) -> str:
    return f"{number or 'no'} complex event{'' if number == 1 else 's'}"
