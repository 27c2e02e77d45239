"""Events in Arrow's columns → the classified stream, without DuckDB, if the classification is plain.

Batches are screened (screening.py) and classified one by one, by functions that keep nothing of them. A batch
with a value that only SQL can interpret is classified by SQL.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa

from estero.classify.arrays import array_of, numbers_in
from estero.classify.column_names import POSITION, TIME
from estero.classify.splits import columns_needed
from estero.classify.vectors.batch_columns import OddValueError
from estero.classify.vectors.classifier import PlainClassifier
from estero.events.fetching import AbandonedError, fetched, mapped
from estero.events.inputs import Input
from estero.events.reading_errors import reading
from estero.events.screening import Part, Screen, grouped, slices, with_bits, with_positions
from estero.events.stream_order import OrderCheck, in_order
from estero.events.tables.lazy_tables import LazyFrame
from estero.plan.plan import Classification

_LEAST: Final = 1 << 15
"""The number of rows below which batches are joined, both when read and when handed on."""

BySQL = Callable[[pa.Table, Screen | None], pa.RecordBatch]
"""Classifies a table by SQL: events numbered from the first one, or those that have passed a screen."""


class PlainReading:
    """Reads one input of Arrow data for a classification; `by_sql` classifies batches that are not plain."""

    def __init__(
        self,
        classification: Classification,
        source: Input,
        screen: Screen | None,
        classifier: PlainClassifier,
        by_sql: BySQL,
    ) -> None:
        self._source = source
        self._screen = screen
        self._classifier = classifier
        self._by_sql = by_sql
        self._keep_all = classification.keep_all
        self._timed = classification.schema.time is not None
        columns = [] if source.arrow_schema is None else source.arrow_schema.names
        asked = dict.fromkeys(screen.columns if screen is not None else _columns_asked(classification))
        self._asked = [name for name in asked if name in columns] or columns[:1]  # rows are counted

    def here(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The classified events of a small table, classified on demand."""
        with reading(self._source.file):
            parts = list(slices(_joined(table.select(self._asked).to_batches())))
            yield from _joined(self._classified(parts))

    def ahead(self, order: OrderCheck | None, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """The classified events of the input, computed by one or more threads some batches ahead."""
        stopped = threading.Event()

        def batches() -> Iterator[pa.RecordBatch]:
            stream = _until(stopped, in_order(self._stream(), order))
            parts = slices(_joined(stream))
            groups: Iterable[list[Part]] = ([part] for part in parts)
            if self._screen is not None and not self._source.one_shot:
                groups = grouped(parts, self._screen)
            return _joined(itertools.chain.from_iterable(mapped(self._classified, groups, threads)))

        with reading(self._source.file):
            yield from fetched(batches, lambda: None, stopped)

    def _stream(self) -> Iterator[pa.RecordBatch]:
        """The batches of the input, numbered if a lazy frame leaves rows out."""
        stream = self._source.stream
        if isinstance(stream, LazyFrame) and self._screen is not None and self._screen.pushed:
            yield from stream.numbered(self._asked, self._screen.pushed)
        else:
            yield from self._source.reader(self._asked)

    def _classified(self, parts: list[Part]) -> list[pa.RecordBatch]:
        """The classified events of adjacent batches; those that pass a screen are classified together."""
        if self._screen is None:
            batches = [with_positions(batch, base) for batch, base in parts]
        else:
            batches = list(_joined(self._screen.look(parts)))
        return [classified for batch in batches for classified in self._one(batch)]

    def _one(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The classified events of one batch, if there are any."""
        try:
            classified = self._classifier.classified(batch)
        except OddValueError:
            classified = self._odd(batch)
        if classified is not None and classified.num_rows:
            yield classified

    def _odd(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The classified events of a batch by SQL."""
        table = pa.Table.from_batches([batch])
        if self._screen is not None:
            classified = self._by_sql(table, self._screen)
            return classified if self._keep_all else with_bits(classified)
        classified = self._by_sql(table.drop_columns([POSITION]), None)
        base = numbers_in(batch.column(POSITION))[:1]
        for name in (POSITION,) if self._timed else (POSITION, TIME):
            place = classified.schema.get_field_index(name)
            shifted = array_of(numbers_in(classified.column(name)) + base)
            classified = classified.set_column(place, classified.schema.field(place), shifted)
        return classified


def _columns_asked(classification: Classification) -> Iterator[str]:
    """The columns that are read if nothing is screened, with repetitions."""
    conditions = [predicate.condition for predicate in classification.predicates]
    yield from columns_needed(classification, conditions)
    if classification.type_column is not None:
        yield classification.type_column


def _until(stopped: threading.Event, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, as long as they are being read."""
    for batch in batches:
        if stopped.is_set():
            raise AbandonedError
        yield batch


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same events, with small adjacent batches joined: each takes about 0.1 ms, whatever is in it."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not waiting and batch.num_rows >= _LEAST:
            yield batch
            continue
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _LEAST:
            yield from _together(waiting)
            waiting = []
    yield from _together(waiting)


def _together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same events in one batch, unless they do not fit into one, which dictionaries may not."""
    if len(batches) < 2:
        return batches
    try:
        return list(pa.Table.from_batches(batches).combine_chunks().to_batches())
    except pa.ArrowException:
        return batches
