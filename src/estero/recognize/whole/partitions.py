"""Numbers for partitions, for results by partition (``by_partition=True``)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.answers.report import key_column
from estero.answers.rows import RowsLayout
from estero.classify.arrays import array_of, as_key
from estero.classify.column_names import event_column
from estero.plan.plan import Plan


class Partitions:
    """The partitions seen so far, numbered from 0 on; number 0 is the whole stream unless they are `apart`.

    `answer` is the schema of the answer. A query without PARTITION BY has one.
    """

    def __init__(self, answer: pa.Schema, *, apart: bool) -> None:
        fields = [answer.field(place) for place in RowsLayout(answer).keys] if apart else []
        self._known: pa.Table = pa.schema(fields).empty_table()

    @property
    def number(self) -> int:
        """The number of partitions."""
        return int(self._known.num_rows) if self._known.column_names else 1

    def of_events(self, plan: Plan, store: EventStore, events: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the partitions that these events are in."""
        fields = self._known.schema
        if not fields.names:
            return np.zeros(events.size, np.int64)
        distinct, places = np.unique(events, return_inverse=True)
        names = list(dict.fromkeys(event_column(name) for bracket in plan.shown_keys for name in bracket))
        rows = store.take(distinct, names)
        keys = [key_column(rows, bracket) for bracket in plan.shown_keys]
        columns = [as_key(key.cast(field.type)) for key, field in zip(keys, fields, strict=True)]
        together = pa.concat_tables([self._known, pa.table(columns, schema=fields)])
        _, first, inverse = np.unique(_codes(together), return_index=True, return_inverse=True)
        order = np.argsort(first)  # known ones keep their numbers
        self._known = together.take(array_of(first[order])).combine_chunks()
        numbers = np.empty(order.size, np.int64)
        numbers[order] = np.arange(order.size)
        of_distinct: NDArray[np.int64] = numbers[inverse[-distinct.size :]] if distinct.size else inverse
        return of_distinct[places]

    def in_order(self) -> tuple[NDArray[np.int64], pa.Table]:
        """The numbers of all partitions in order of their keys, NULL last, and the columns of these keys."""
        names = self._known.column_names
        if not names:
            return np.zeros(1, np.int64), self._known
        plain = pa.table(self._known.columns, [f"k{place}" for place in range(len(names))])
        order = pc.sort_indices(plain, [(name, "ascending") for name in plain.column_names])
        return order.to_numpy().astype(np.int64), self._known.take(order)

    def ranks(self) -> NDArray[np.int64]:
        """The place of each partition in the order of keys."""
        order, _ = self.in_order()
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        return ranks


def _codes(keys: pa.Table) -> NDArray[np.int64]:
    """A number for each row, equal for equal keys."""
    codes = np.zeros(keys.num_rows, np.int64)
    for column in keys.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        here = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + here, return_inverse=True)
    return codes
