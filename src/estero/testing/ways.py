"""The ways in which a query can be run: whole, cut anywhere, stopped and resumed, and on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.report import positions_in
from estero.events.scan import Scan
from estero.queries.query import Query
from estero.queries.texts import restore

AT_ONCE: Final = "in this process"
"""The name of the way that runs over all events at once."""
PLACE: Final = "place_in_stream"
"""The column that breaks ties of time on Spark, where rows have no order."""


Marked = tuple[tuple[str, tuple[int, ...]], ...]
"""A complex event: each label that has events, with their positions; labels and positions in order."""


class Shown(NamedTuple):
    """A complex event in comparable form: its marks, and the values of its keys and of SELECT by name.

    Values of durations are in nanoseconds.
    """

    marks: Marked
    values: tuple[tuple[str, Any], ...] = ()


class Way(NamedTuple):
    """A way to run a query: its name in a sentence, and a function that gives the complex events."""

    name: str
    run: Callable[[], list[Shown]]


def ways(query: Query, scan: Scan, engines: Sequence[str]) -> Iterator[Way]:
    """Yields each way to run `query` over a table in stream order, on these engines.

    In this process: all events at once, one by one, and cut into two at each place, with a snapshot there.
    """
    many = scan.events.num_rows
    if "process" in engines:
        yield Way(AT_ONCE, lambda: _matches(query.run(scan).to_arrow()))
        yield Way("pushed one by one", partial(_pushed, query, scan, range(many + 1)))
        for cut in range(1, many):
            name = f"stopped and resumed before event {cut}"
            yield Way(name, partial(_pushed, query, scan, (0, cut, many)))
    if "spark" in engines:
        yield Way("on Spark", lambda: _on_spark(query, scan))


def installed() -> tuple[str, ...]:
    """The engines that are installed."""
    return ("process", "spark") if find_spec("pyspark") else ("process",)


def _pushed(query: Query, scan: Scan, places: Sequence[int]) -> list[Shown]:
    """The answer of a recognizer that is pushed the events up to each of the `places`, and resumed there."""
    recognizer = query.recognizer(scan)
    matches: list[Shown] = []
    for first, last in pairwise(places):
        matches += _matches(recognizer.push(scan.events.slice(first, last - first)).to_arrow())
        recognizer = restore(query, recognizer.snapshot())
    return matches + _matches(recognizer.close().to_arrow())


def _on_spark(query: Query, scan: Scan) -> list[Shown]:
    from estero.spark import collect, local_session, recognize

    placed = scan.events.append_column(PLACE, pa.array(range(scan.events.num_rows), pa.int64()))
    frame = local_session().createDataFrame(placed)
    layout = replace(scan.layout, order=(*scan.layout.order, PLACE), types=())
    answer = collect(recognize(Scan(frame, layout), query, positions=True))
    return _matches(pa.Table.from_batches(answer.batches(), answer.schema))


def _matches(answer: pa.Table) -> list[Shown]:
    """The complex events of an answer, by what it shows."""
    columns = AnswerColumns.of(answer.schema)
    labels = sorted(columns.labels.items())
    named = sorted({**columns.partition, **columns.measures}.items())
    values = {name: _values(answer.column(place)) for name, place in named}
    return [
        Shown(
            tuple(
                (name, positions)
                for name, place in labels
                if (positions := _positions(answer.column(place)[row]))
            ),
            tuple((name, column_values[row]) for name, column_values in values.items()),
        )
        for row in range(answer.num_rows)
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ns")).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _positions(marked: pa.ListScalar) -> tuple[int, ...]:
    return tuple(positions_in(marked.values).to_pylist())
