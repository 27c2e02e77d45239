"""In how many complex events each event is: the table of `estero.answers.participation.Participation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.participation import text_of
from estero.answers.report import untaken
from estero.answers.rows import LABEL, MATCH, POSITION, RowsLayout
from estero.classify.arrays import array_of
from estero.classify.column_names import POSITION as PLACE
from estero.engine.walk.matches import Matches
from estero.recognize.batch_columns import numbers_of
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.sets_at_hand import SMALL, SetAtHand, sets_at_hand

_DIGITS = 38
"""Of a decimal number of Arrow, of 128 bits."""


def participation_table(sets: ReadableSets, schema: pa.Schema) -> pa.Table:
    """The columns of `Participation`; `schema` is that of the answer."""
    layout = RowsLayout(schema)
    numbers = _Numbers()
    tables = [layout.schema.empty_table()]
    keys = [np.empty(0, np.int64)]
    for at_hand in sets_at_hand(sets):
        for key, rows in _new_rows(at_hand, numbers, layout):
            keys.append(key)
            tables.append(rows)
    rows = pa.concat_tables(tables).select(layout.schema.names[1:])
    counts = numbers.of(np.concatenate(keys))
    labels = [label for label, _ in layout.labels]
    order_of = pc.index_in(rows[LABEL], pa.array(labels, pa.string())).to_numpy()
    position = rows[POSITION].to_numpy() * max(1, len(labels)) + order_of
    distinct, first, places = np.unique(position, return_index=True, return_inverse=True)
    total = np.zeros(distinct.size, np.int64).astype(counts.dtype)
    np.add.at(total, places, counts)
    name = untaken("count", set(rows.column_names))
    shown = rows.take(array_of(first))
    return shown.append_column(pa.field(name, (column := _column(total)).type, nullable=False), column)


class _Numbers:
    """Numbers by key, added up; keys ascend."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self._counts: NDArray[Any] = np.empty(0, np.int64)
        self._total = 0

    def add(self, keys: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.int64]:
        """Adds numbers; returns the keys that are new, each once, ascending."""
        self._total += int(counts.sum(dtype=np.float64)) if counts.dtype != object else SMALL
        wide = self._total >= SMALL
        kind: Any = object if wide else np.int64
        every = np.concatenate([self._keys, keys])
        distinct, places = np.unique(every, return_inverse=True)
        total = np.zeros(distinct.size, np.int64).astype(kind)
        parts = [self._counts.astype(kind), counts.astype(kind)]
        np.add.at(total, places, np.concatenate(parts))
        fresh = np.setdiff1d(distinct, self._keys, assume_unique=True)
        self._keys, self._counts = distinct, total
        return fresh

    def of(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """The numbers of some keys."""
        return self._counts[np.searchsorted(self._keys, keys)]


def _new_rows(
    at_hand: SetAtHand, numbers: _Numbers, layout: RowsLayout
) -> list[tuple[NDArray[np.int64], pa.Table]]:
    """Adds up the numbers of marked events, by position and mark; the rows of those that are new."""
    circuit, store, marks = at_hand.circuit, at_hand.store, at_hand.reader.marks
    gates = np.flatnonzero(circuit.mark >= 0)
    events, of_event = np.unique(circuit.event[gates], return_inverse=True)
    if not events.size:
        return []
    position = numbers_of(store.take(events, [PLACE]), PLACE)
    keys = position[of_event] * marks + circuit.mark[gates]
    fresh = numbers.add(keys, at_hand.taken[gates])
    if not fresh.size:
        return []
    event = events[np.searchsorted(position, fresh // marks)]
    single = Matches(event, event, np.arange(event.size + 1), event, (fresh % marks).astype(np.int32))
    table = at_hand.reader.reporter.table(single, store, measured=False)
    return [
        (fresh[batch.column(MATCH).to_numpy()], pa.Table.from_batches([batch]))
        for batch in layout.batches([table])
    ]


def _column(counts: NDArray[Any]) -> pa.Array:
    """Numbers as int64 where they fit, else as decimals, and else as text."""
    most = int(counts.max()) if counts.size else 0
    if most < 1 << 63:
        return array_of(counts.astype(np.int64))
    if most < 10**_DIGITS:
        return pa.array(counts.tolist(), pa.decimal128(_DIGITS, 0))
    return pa.array([text_of(number) for number in counts.tolist()], pa.string())
