"""The number of complex events in which each event takes part, in all or by partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import untaken
from estero.answers.participation import Participation
from estero.answers.rows import LABEL, MATCH, POSITION, RowsLayout
from estero.classify.arrays import array_of
from estero.classify.column_names import POSITION as PLACE
from estero.engine.walk.matches import Matches
from estero.recognize.batch_columns import numbers_of
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.partitions import Partitions
from estero.recognize.whole.sets_at_hand import SMALL, SetAtHand, sets_at_hand
from estero.recognize.whole.sums import integers


def participation_of(sets: ReadableSets, schema: pa.Schema, *, by_partition: bool) -> Participation:
    """The number of complex events in which each event takes part; `schema` is that of the answer."""
    layout = RowsLayout(schema)
    partitions = Partitions(schema, apart=by_partition)
    numbers = _Numbers()
    tables = [layout.schema.empty_table()]
    keys = [np.empty((2, 0), np.int64)]
    for at_hand in sets_at_hand(sets, partitions):
        for key, rows in _new_rows(at_hand, numbers, layout):
            keys.append(key)
            tables.append(rows)
    shown = layout.key_names if by_partition else []
    names = [*shown, *(name for name in layout.schema.names[1:] if name not in shown)]
    rows = pa.concat_tables(tables).select(names)
    every = np.concatenate(keys, axis=1)
    counts = numbers.of(every)
    labels = [label for label, _ in layout.labels]
    order_of = pc.index_in(rows[LABEL], pa.array(labels, pa.string())).to_numpy()
    position = rows[POSITION].to_numpy() * max(1, len(labels)) + order_of
    distinct, first, places = _distinct(np.stack([partitions.ranks()[every[0]], position]))
    total = np.zeros(distinct.shape[1], np.int64).astype(counts.dtype)
    np.add.at(total, places, counts)
    name = untaken("count", set(rows.column_names))
    column = integers(total.tolist())
    shown_rows = rows.take(array_of(first))
    field = pa.field(name, column.type, nullable=False)
    return Participation(shown_rows.append_column(field, column), [name])


def _distinct(pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs int64[2, n], ascending; the first place of each, and the pair of each row."""
    order = np.lexsort(pairs[::-1])
    ascending = pairs[:, order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (ascending[:, 1:] != ascending[:, :-1]).any(axis=0)
    places = np.empty(order.size, np.int64)
    places[order] = np.cumsum(new) - 1
    return ascending[:, new], order[new], places


class _Numbers:
    """Sums of numbers by key; keys are pairs and ascend."""

    def __init__(self) -> None:
        self._keys = np.empty((2, 0), np.int64)
        self._counts: NDArray[Any] = np.empty(0, np.int64)
        self._total = 0

    def add(self, keys: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.intp]:
        """Adds numbers; returns the places of new, distinct keys."""
        self._total += int(counts.sum(dtype=np.float64)) if counts.dtype != object else SMALL
        kind: Any = object if self._total >= SMALL else np.int64
        before = self._counts.size
        distinct, first, places = _distinct(np.concatenate([self._keys, keys], axis=1))
        total = np.zeros(first.size, np.int64).astype(kind)
        np.add.at(total, places, np.concatenate([self._counts.astype(kind), counts.astype(kind)]))
        self._keys, self._counts = distinct, total
        fresh: NDArray[np.intp] = first[first >= before] - before
        return fresh

    def of(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """The numbers of some keys that were added."""
        _, _, places = _distinct(np.concatenate([self._keys, keys], axis=1))
        return self._counts[places[self._counts.size :]]


def _new_rows(
    at_hand: SetAtHand, numbers: _Numbers, layout: RowsLayout
) -> list[tuple[NDArray[np.int64], pa.Table]]:
    """Adds the numbers of marked events by partition, position and mark; returns the rows of new ones."""
    circuit, store, marks = at_hand.circuit, at_hand.store, at_hand.reader.marks
    gates = np.flatnonzero(circuit.mark >= 0)
    events, of_event = np.unique(circuit.event[gates], return_inverse=True)
    if not events.size:
        return []
    position = numbers_of(store.take(events, [PLACE]), PLACE)
    keys = np.stack([at_hand.of_gates[gates], position[of_event] * marks + circuit.mark[gates]])
    fresh = numbers.add(keys, at_hand.taken[gates])
    if not fresh.size:
        return []
    event = circuit.event[gates[fresh]]
    single = Matches(event, event, np.arange(event.size + 1), event, circuit.mark[gates[fresh]])
    table = at_hand.reader.reporter.table(single, store, measured=False)
    return [
        (keys[:, fresh[batch.column(MATCH).to_numpy()]], pa.Table.from_batches([batch]))
        for batch in layout.batches([table])
    ]
