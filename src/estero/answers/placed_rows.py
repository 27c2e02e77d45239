"""Matches → rows of the common table of many rules, which shows only the positions of events."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_columns import EventColumns
from estero.answers.event_store import EventStore
from estero.answers.report import Reporter, first_known, with_events
from estero.answers.rule_rows import mapped, names_of, rule_schema, text_of
from estero.answers.wait import in_type
from estero.classify.arrays import array_of, numbers_as, texts_of
from estero.classify.column_names import POSITION, TIME, event_column
from estero.classify.vectors.taking import FEW_ROWS

if TYPE_CHECKING:
    from estero.engine.walk.matches import Matches


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Turns batches of matches into rows of the common table.

    `labels` has the place of each selected label in `lookup`, bool[places, marks], which says what sets of
    labels have it; `keys` has the alternatives of each bracket of PARTITION BY, by the name that is shown.
    """

    labels: Mapping[str, int]
    lookup: NDArray[np.bool_]
    keys: Mapping[str, Sequence[str]]
    time: pa.DataType | None

    @classmethod
    def of(cls, reporter: Reporter) -> PlacedRows:
        """The rows that show the same complex events as the tables of a reporter."""
        lookups = [reporter.label_lookup(place) for place in range(len(reporter.shown))]
        distinct = {lookup.tobytes(): lookup for lookup in lookups}
        places = {known: place for place, known in enumerate(distinct)}
        labels = {
            item.label: places[lookup.tobytes()] for item, lookup in zip(reporter.shown, lookups, strict=True)
        }
        table = np.array(list(distinct.values()), np.bool_).reshape(len(distinct), reporter.marks)
        names = reporter.schema.names[2 if reporter.time is None else 4 :]
        keys = dict(zip(names, reporter.keys, strict=False))  # labels follow
        return cls(labels, table, keys, reporter.time)

    def rows(
        self, matches: Matches, store: EventStore, names: Sequence[str], rules: NDArray[np.int64]
    ) -> pa.RecordBatch:
        """One row for each of `matches`, in their order, which has the name of its rule among `names`.

        `store` must hold all their events.
        """
        matches, events, first = with_events(matches, store)
        taking, schema = EventColumns(events), rule_schema(self.time)
        start, end = (rows - first for rows in (matches.start, matches.end))
        ends = [taking.taken((POSITION, TIME), rows) for rows in (start, end)]
        columns = [names_of(names, rules), *(positions for positions, _ in ends)]
        if self.time is not None:
            columns += [in_type(times, self.time) for _, times in ends]
        keys = {shown: _texts_of_key(taking, key, end) for shown, key in self.keys.items()}
        columns.append(mapped(keys, end.size, schema.field("keys").type))
        columns.append(self._positions(matches, taking, first, schema.field("positions").type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _positions(self, matches: Matches, taking: EventColumns, first: int, kind: pa.MapType) -> pa.Array:
        """The positions of the events of each label, by label; the first event at hand has this number."""
        rows = matches.start.size
        if self.labels and len(self.labels) * matches.event.size <= FEW_ROWS:
            return self._few_positions(matches, taking, first, kind)
        from estero.engine.walk.columns import select_labels  # here, because schemas need no kernels

        known = range(first, first + taking.events.num_rows)
        selected = select_labels(matches.offsets, matches.marks, matches.event, self.lookup, known)
        lists = [
            pa.ListArray.from_arrays(
                array_of(offsets), *taking.taken((POSITION,), chosen), type=kind.item_type
            )
            for offsets, chosen in selected
        ]
        return mapped({label: lists[place] for label, place in self.labels.items()}, rows, kind)

    def _few_positions(
        self, matches: Matches, taking: EventColumns, first: int, kind: pa.MapType
    ) -> pa.Array:
        """The same for a few events, one by one, which takes less time than calls of Arrow or of a kernel."""
        (placed,) = taking.taken((POSITION,), matches.event - first)
        has, positions = self.lookup[:, matches.marks].tolist(), placed.to_pylist()
        bounds, chosen, ends = matches.offsets.tolist(), array("q"), array("i", [0])
        for begin, end in pairwise(bounds):
            for place in self.labels.values():
                own = has[place]
                chosen.extend([positions[item] for item in range(begin, end) if own[item]])
                ends.append(len(chosen))
        size, rows = len(self.labels), len(bounds) - 1
        lists = pa.ListArray.from_arrays(
            numbers_as(ends, pa.int32()), numbers_as(chosen, pa.int64()), type=kind.item_type
        )
        offsets = numbers_as(array("i", range(0, rows * size + 1, size)), pa.int32())
        return pa.MapArray.from_arrays(
            offsets, texts_of([*self.labels] * rows, pa.string()), lists, type=kind
        )


def _texts_of_key(taking: EventColumns, key: Sequence[str], rows: NDArray[np.int64]) -> pa.Array:
    """The values of a key in some rows as texts: those of the first of some columns that has one."""
    columns = list(map(event_column, key))
    if len(columns) == 1 and rows.size <= FEW_ROWS:
        numbers = taking.integers(columns[0])
        if numbers is not None:
            return texts_of(list(map(str, numbers[rows].tolist())), pa.string())
    return text_of(first_known([taking.column(name, rows) for name in columns], key))
