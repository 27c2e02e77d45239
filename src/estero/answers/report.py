"""From sequence numbers to the public table (`answer_schema`): its columns, built from the kept events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import answer_schema, common_type, label_of, measures_of, names_for_measures
from estero.answers.event_columns import EventColumns
from estero.answers.event_store import EventStore
from estero.answers.measures.marked import EventsAtHand, Marked
from estero.answers.wait import Wait, in_type
from estero.classify.arrays import array_of
from estero.classify.column_names import POSITION, TIME, event_column
from estero.errors import DataError
from estero.events.tables.shown_types import plain
from estero.language.tree.selection import Measure, Shown
from estero.language.tree.words import named

if TYPE_CHECKING:
    from estero.answers.measures.measures import Measures
    from estero.engine.walk.matches import Matches


class Reporter:
    """Turns batches of matches into batches of the public table.

    `shown` are the selected labels, `keys` the alternatives of each bracket of PARTITION BY,
    `label_sets[id]` the labels of an event marked `id`, `events` the schema of the classified
    batches, `time` the type of the time column (None: no time), `measures` the values of each complex event.
    """

    marks: int

    def __init__(  # noqa: PLR0913  (one argument per kind of column)
        self,
        shown: Sequence[Shown],
        label_sets: Sequence[frozenset[str]],
        events: pa.Schema,
        *,
        keys: Sequence[Sequence[str]] = (),
        time: pa.DataType | None = None,
        positions: bool = True,
        suppressed: bool = False,
        measures: Sequence[Measure] = (),
        wait: int | None = None,
    ) -> None:
        self.schema: pa.Schema = answer_schema(
            shown,
            events,
            keys=keys,
            time=time,
            positions=positions,
            suppressed=suppressed,
            measures=measures,
            waits=wait is not None,
        )
        self._wait = None if wait is None or time is None else Wait(wait, time)
        self.shown = tuple(shown)
        self.keys = tuple(tuple(alternatives) for alternatives in keys)
        self.time = time
        self._suppressed = suppressed
        self._places = (POSITION,) if positions else ()
        self._of_ends = (*self._places, *((TIME,) if time is not None else ()))
        self.marks = sets = len(label_sets)
        lookups = [
            np.fromiter((item.label in labels for labels in label_sets), np.bool_, sets) for item in shown
        ]
        distinct: dict[tuple[bytes, tuple[str, ...]], int] = {}
        self._same = [
            distinct.setdefault((lookup.tobytes(), item.attributes), len(distinct))
            for lookup, item in zip(lookups, shown, strict=True)
        ]
        """The column of each label: a type and its variable often show the same one, which is made once."""
        self._lookup = np.array(
            [lookups[self._same.index(column)] for column in range(len(distinct))], np.bool_
        )
        self._lookup = self._lookup.reshape(len(distinct), sets)
        kinds = self.schema.types[len(self.schema) - len(shown) :]
        self._lists = [(kind, list(kind.value_type)) for kind in kinds]
        """The types of the columns of labels, and the fields of events there."""
        self._shown_columns = [(*map(event_column, item.attributes), *self._places) for item in shown]
        self._measures = measures_of(measures, events, keys, time) if measures else None
        if self._measures is not None:
            asked = [[label in labels for labels in label_sets] for label in self._measures.variables]
            self._asked = np.array(asked, np.bool_).reshape(len(asked), sets)

    def label_lookup(self, place: int) -> NDArray[np.bool_]:
        """Whether each label set has the label numbered `place` among those shown; bool[marks]."""
        lookup: NDArray[np.bool_] = self._lookup[self._same[place]]
        return lookup

    def table(
        self,
        matches: Matches,
        store: EventStore,
        suppressed: NDArray[np.int64] | None = None,
        *,
        measured: bool = True,
    ) -> pa.RecordBatch:
        """One row for each of `matches`, in their order; `store` must hold all their events.

        `suppressed` is the number left out before each, if the table shows it; None for zero. Unless the
        matches are `measured`, the values that SELECT computes are NULL.
        """
        from estero.engine.walk.columns import select_labels  # here, because schemas need no kernels

        matches, events, first = with_events(matches, store)
        taking = EventColumns(events)
        ends = [taking.numbered(self._of_ends, rows, first) for rows in (matches.start, matches.end)]
        columns = [of_end[0] for of_end in ends if self._places]
        if self.time is not None:
            columns += [in_type(of_end[-1], self.time) for of_end in ends]
        end = matches.end - first if self.keys and first else matches.end
        for alternatives in self.keys:
            values = [taking.column(event_column(name), end) for name in alternatives]
            columns.append(first_known(values, alternatives))
        if self._wait is not None:
            columns.append(self._wait.over(ends[1][-1]))
        if self._suppressed:
            none = np.zeros(matches.start.size, np.int64)
            columns.append(array_of(none if suppressed is None else suppressed))
        if self._measures is not None and measured:
            columns += self._measured(self._measures, matches, events, first, columns)
        elif self._measures is not None:
            columns += [pa.nulls(matches.start.size, kind) for kind in self._measures.types]
        here = range(first, first + events.num_rows)
        selected = select_labels(matches.offsets, matches.marks, matches.event, self._lookup, here)
        lists: list[pa.Array] = []
        for names, same, (kind, fields) in zip(self._shown_columns, self._same, self._lists, strict=True):
            if same == len(lists):
                offsets, chosen = selected[same]
                values = taking.taken(names, chosen)
                items = pa.StructArray.from_arrays(values, fields=fields)
                buffers = [None, pa.py_buffer(offsets)]  # `from_arrays` would check the offsets
                lists.append(pa.Array.from_buffers(kind, offsets.size - 1, buffers, children=[items]))
            columns.append(lists[same])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _measured(
        self,
        measures: Measures,
        matches: Matches,
        events: pa.RecordBatch,
        first: int,
        columns: Sequence[pa.Array],
    ) -> list[pa.Array]:
        """The columns of measures; `columns` are those before them, `first` the number of the first event."""
        from estero.engine.walk.columns import select_labels

        at_hand = EventsAtHand(events, matches.event - first)
        known = range(at_hand.count)
        selected = select_labels(matches.offsets, matches.marks, at_hand.rows, self._asked, known)
        of = {
            label: Marked(offsets.astype(np.int64), rows)
            for label, (offsets, rows) in zip(measures.variables, selected, strict=True)
        }
        names, shown = names_for_measures(self.keys, self.time), columns[2 * len(self._places) :]
        named = dict(zip(names, shown, strict=False))  # a query that does not wait has no decision time
        return measures.columns(of, at_hand, named, len(matches.start))


def with_events(matches: Matches, store: EventStore) -> tuple[Matches, pa.RecordBatch, int]:
    """The matches, a batch that has all their events, and the sequence number of its first event.

    If these are few and far between, they are renumbered.
    """
    starts, ends, events = matches.start, matches.end, matches.event
    if starts.size:
        asked = 2 * starts.size + events.size
        stretch = store.stretch(int(starts.min()), int(ends.max()), asked)
        if stretch is not None:
            return matches, *stretch
    batch, (starts, ends, events) = store.excerpt([starts, ends, events])
    return matches._replace(start=starts, end=ends, event=events), batch, 0


def positions_in(marked: pa.StructArray) -> pa.Array:
    """The positions of events as answers show them: the last field of the structs, under any name."""
    return marked.field(marked.type.num_fields - 1)


def with_positions(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` with positions in place of events; `schema` is its `positions_schema`."""
    columns = [
        column
        if label_of(field) is None
        else pa.ListArray.from_arrays(column.offsets, positions_in(column.values))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def key_column(events: pa.RecordBatch, alternatives: Sequence[str]) -> pa.Array:
    """The first non-NULL alternative of each event."""
    return first_known([plain(events.column(event_column(name))) for name in alternatives], alternatives)


def first_known(values: Sequence[pa.Array], alternatives: Sequence[str]) -> pa.Array:
    """The first non-NULL value among `alternatives`; an event without one is in no partition."""
    wanted = common_type([value.type for value in values])
    if len(values) == 1:
        return values[0]
    try:
        return pc.coalesce(*(value.cast(wanted) for value in values))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a key cannot be shown exactly in its column, which is of type {wanted}: {error}",
            column=named(alternatives[0]),
            hint=f"give {' and '.join(map(named, alternatives))} the same type",
        ) from error
