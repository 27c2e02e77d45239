"""From sequence numbers to the public table: the relevant events that are kept, and the columns of answers.

The public form (interface.md): one row per complex event with ``start``, ``end``, where there is a
time ``start_time`` and ``end_time``, the partition columns, and one list column per selected label.
A label column holds structs of the shown attributes and, last, ``position``; `with_positions` leaves only
the positions. A name that is taken already (a label called ``start``, an attribute called ``position``) gets
an underscore at its end; the metadata of the field keeps the label, see `label_of`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.column_names import POSITION, TIME, event_column, is_kept
from estero.classify.rows.classifier import ClassifiedRow
from estero.errors import DataError
from estero.events.tables.shown_types import plain, plain_type
from estero.language.tree.selection import Shown

if TYPE_CHECKING:
    from estero.engine.walk.matches import Matches

LABEL_KEY = b"estero:label"
MATCH_KEY = b"estero:match"
"""In the metadata of a column that says to which complex event a row belongs."""
_MANY, _FEW = 32, 2048
"""Beyond so many batches, those of at most so many events are joined: events may be appended one by one."""
_TOGETHER = 256
"""So many single events become one batch."""

Single = tuple[int, ClassifiedRow]
"""A classified event that came alone, with its position."""


class EventStore:
    """The relevant events of the window, addressed by sequence number: 0, 1, 2, … over the run.

    `schema` is that of the classified batches; key hashes, bits and values are not kept. Batches are kept as
    they come, and nothing is copied until events are taken, except where many small ones are joined.
    """

    def __init__(self, schema: pa.Schema) -> None:
        kept = [field for field in schema if is_kept(field.name)]
        self._names = [field.name for field in kept]
        self.schema: pa.Schema = pa.schema([pa.field(field.name, plain_type(field.type)) for field in kept])
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._single: list[Single] = []
        self.first = 0
        """The smallest sequence number that can still be taken."""
        self.next = 0
        """The sequence number that the next appended event gets."""

    def append(self, batch: pa.RecordBatch) -> None:
        """Keeps the events of `batch`; they get the next sequence numbers, in order."""
        if batch.num_rows == 0:
            return
        self._put_together()
        self._keep(batch, self.next)
        self.next += batch.num_rows

    def append_one(self, event: Single, as_batch: Callable[[Sequence[Single]], pa.RecordBatch]) -> None:
        """Keeps a single event, which gets the next sequence number; `as_batch` makes a batch of some."""
        self._single.append(event)
        self._as_batch = as_batch
        self.next += 1
        if len(self._single) == _TOGETHER:
            self._put_together()

    def _put_together(self) -> None:
        """Makes a batch of the single events that are kept last."""
        if self._single:
            single, self._single = self._single, []
            self._keep(self._as_batch(single), self.next - len(single))

    def _keep(self, batch: pa.RecordBatch, first: int) -> None:
        """Keeps the events of a batch, of which the first has this number."""
        self._chunks.append(_without_views(batch.select(self._names)))
        self._starts.append(first)
        while len(self._chunks) > _MANY and self._are_small(*self._chunks[-2:]):
            self._chunks[-2:] = [_joined(self._chunks[-2:])]
            self._starts.pop()

    @staticmethod
    def _are_small(older: pa.RecordBatch, newer: pa.RecordBatch) -> bool:
        """Whether to join the last two batches: sizes stay descending, so few copies are made."""
        return int(older.num_rows) <= int(newer.num_rows) <= _FEW

    def trim(self, first_needed: int) -> None:
        """Forgets whole batches whose events are all before the sequence number `first_needed`."""
        gone = bisect_right(self._starts, first_needed) - 1
        if first_needed >= self.next:
            gone = len(self._chunks)
            self._single.clear()
            self.first = self.next
        if gone > 0:
            del self._chunks[:gone], self._starts[:gone]
            self.first = self._starts[0] if self._starts else self.next

    def restart(self, events: pa.RecordBatch) -> None:
        """Keeps only these events, in place of all others; they are numbered from 0."""
        self._chunks.clear()
        self._starts.clear()
        self._single.clear()
        self.first = self.next = 0
        self.append(events)

    def take(self, sequence: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The events with these sequence numbers, in this order, as one batch of plain columns.

        `columns` are the columns to take, all where it is None. Raises IndexError for a sequence
        number that was trimmed or not yet appended.
        """
        names = self._names if columns is None else list(columns)
        events, (places,) = self.excerpt([sequence])
        arrays = [_take(events, name, places) for name in names]
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([self.schema.field(name) for name in names])
        )

    def excerpt(
        self, sequences: Sequence[NDArray[np.int64]]
    ) -> tuple[pa.RecordBatch, list[NDArray[np.int64]]]:
        """One batch that holds the events of all `sequences`, and the rows of each sequence in it.

        A batch that was appended is used as it is. Where several are needed, what lies between the
        first and the last event is joined if that is dense, and else the distinct events are taken
        from one batch after the other: what is copied stays within a constant factor of what is asked.
        """
        self._put_together()
        asked = [each for each in sequences if len(each)]
        if not asked:
            return pa.RecordBatch.from_pylist([], schema=self.schema), list(sequences)
        low, high = min(int(each.min()) for each in asked), max(int(each.max()) for each in asked)
        if low < self.first or high >= self.next:
            kept = f"{self.first} to {self.next - 1}"
            raise IndexError(f"events {low} to {high} were asked for, but {kept} are kept")
        i, j = bisect_right(self._starts, low) - 1, bisect_right(self._starts, high) - 1
        if i == j:
            return self._chunks[i], [each - self._starts[i] for each in sequences]
        if high - low < 4 * sum(map(len, asked)) + 1024:
            pieces = self._chunks[i : j + 1]
            pieces[0] = pieces[0].slice(low - self._starts[i])
            pieces[-1] = pieces[-1].slice(0, high - self._starts[j] + 1)
            return _joined(pieces), [each - low for each in sequences]
        distinct, rows = np.unique(np.concatenate(asked), return_inverse=True)
        return _joined(self._picked(distinct)), _divided(rows, [len(each) for each in sequences])

    def _picked(self, distinct: NDArray[np.int64]) -> list[pa.RecordBatch]:
        """The events with these ascending sequence numbers, one piece for each batch that has some."""
        cuts = [*np.searchsorted(distinct, self._starts).tolist(), len(distinct)]
        return [
            chunk.take(pa.array(distinct[a:b] - start))
            for chunk, start, (a, b) in zip(self._chunks, self._starts, pairwise(cuts), strict=True)
            if a < b
        ]


class Reporter:
    """Turns batches of matches into batches of the public table.

    `shown` are the selected labels, `keys` the alternatives of each bracket of PARTITION BY,
    `label_sets[id]` the labels of an event marked `id`, `events` the schema of the classified
    batches, `time` the type of the time column (None: no time).
    """

    def __init__(
        self,
        shown: Sequence[Shown],
        label_sets: Sequence[frozenset[str]],
        events: pa.Schema,
        *,
        keys: Sequence[Sequence[str]] = (),
        time: pa.DataType | None = None,
        positions: bool = True,
    ) -> None:
        self.schema: pa.Schema = answer_schema(shown, events, keys=keys, time=time, positions=positions)
        self._shown = tuple(shown)
        self._keys = tuple(tuple(alternatives) for alternatives in keys)
        self._time = time
        self._places = (POSITION,) if positions else ()
        self.marks = sets = len(label_sets)
        lookups = [
            np.fromiter((each.label in labels for labels in label_sets), np.bool_, sets) for each in shown
        ]
        found: dict[tuple[bytes, tuple[str, ...]], int] = {}
        self._same = [
            found.setdefault((lookup.tobytes(), each.attributes), len(found))
            for lookup, each in zip(lookups, shown, strict=True)
        ]
        """For each label its column: a type and its variable often show the same, which is made once."""
        self._lookup = np.array([lookups[self._same.index(column)] for column in range(len(found))], np.bool_)
        self._lookup = self._lookup.reshape(len(found), sets)

    def table(self, matches: Matches, store: EventStore) -> pa.RecordBatch:
        """One row for each of `matches`, in their order; `store` must hold all their events."""
        from estero.engine.walk.columns import select_labels  # here, so that schemas are known without Numba

        events, (start, end, marked) = store.excerpt([matches.start, matches.end, matches.event])
        columns = [_take(events, name, rows) for name in self._places for rows in (start, end)]
        if self._time is not None:
            columns += [_in_type(_take(events, TIME, rows), self._time) for rows in (start, end)]
        columns += [key_column(events, alternatives, end) for alternatives in self._keys]
        selected = select_labels(matches.offsets, matches.marks, marked, self._lookup)
        lists: list[pa.Array] = []
        for shown, same in zip(self._shown, self._same, strict=True):
            if same == len(lists):
                offsets, chosen = selected[same]
                names = (*map(event_column, shown.attributes), *self._places)
                values = [_take(events, name, chosen) for name in names]
                fields = list(self.schema.field(len(columns)).type.value_type)
                items = pa.StructArray.from_arrays(values, fields=fields)
                lists.append(pa.ListArray.from_arrays(pa.array(offsets), items))
            columns.append(lists[same])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def answer_schema(
    shown: Sequence[Shown],
    events: pa.Schema,
    *,
    keys: Sequence[Sequence[str]] = (),
    time: pa.DataType | None = None,
    positions: bool = True,
) -> pa.Schema:
    """The schema of the public table, known before any event is read.

    `events` gives the types of the shown attributes and of the keys: the schema of the classified
    batches. `time` is the type of the time column, or None. Without `positions`, ``start``, ``end`` and the
    ``position`` of each event are left out.
    """
    ends = ("start", "end") if positions else ()
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ends]
    if time is not None:
        fields += [pa.field(name, time, nullable=False) for name in ("start_time", "end_time")]
    names = iter(
        column_names([key[0] for key in keys], [each.label for each in shown], timed=time is not None)
    )
    for alternatives in keys:
        key_type = common_type([_shown_type(events, name) for name in alternatives])
        fields.append(pa.field(next(names), key_type))
    for each in shown:
        event = _event_type(each, events, positions=positions)
        column = pa.list_(pa.field("item", event, nullable=False))
        metadata = {LABEL_KEY: each.label.encode()}
        fields.append(pa.field(next(names), column, nullable=False, metadata=metadata))
    return pa.schema(fields)


def column_names(keys: Sequence[str], labels: Sequence[str], *, timed: bool) -> list[str]:
    """What the columns of keys and labels are called in an answer: those whose name is taken get underscores.

    >>> column_names(["user"], ["start", "user"], timed=False)
    ['user', 'start_', 'user_']
    """
    taken = {"start", "end", "start_time", "end_time"} if timed else {"start", "end"}
    return [untaken(name, taken) for name in (*keys, *labels)]


def label_of(field: pa.Field) -> str | None:
    """The label that a column of an answer shows, or None for the other columns."""
    label: bytes | None = (field.metadata or {}).get(LABEL_KEY)
    return None if label is None else label.decode()


def positions_in(marked: pa.StructArray) -> pa.Array:
    """The positions of events as answers show them: their last field, whatever it is called."""
    return marked.field(marked.type.num_fields - 1)


def positions_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of an answer whose label columns hold positions in place of events."""
    item = pa.field("item", pa.int64(), nullable=False)
    return pa.schema(
        [field if label_of(field) is None else field.with_type(pa.list_(item)) for field in schema]
    )


def with_positions(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` with positions in place of events; `schema` is its `positions_schema`."""
    columns = [
        column
        if label_of(field) is None
        else pa.ListArray.from_arrays(column.offsets, positions_in(column.values))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _event_type(shown: Shown, events: pa.Schema, *, positions: bool) -> pa.DataType:
    fields = [pa.field(name, _shown_type(events, name)) for name in shown.attributes]
    if positions:
        fields.append(pa.field(untaken("position", set(shown.attributes)), pa.int64(), nullable=False))
    return pa.struct(fields)


def _shown_type(events: pa.Schema, name: str) -> pa.DataType:
    return plain_type(events.field(event_column(name)).type)


def untaken(name: str, taken: set[str]) -> str:
    """`name`, with as many underscores as make it new; it is `taken` from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The one type that holds the values of all alternatives of a key."""
    if all(each == types[0] for each in types):
        return types[0]
    if all(pa.types.is_integer(each) for each in types):
        return pa.int64()
    if all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in types):
        return pa.float64()
    if all(pa.types.is_timestamp(each) for each in types):
        zones = {each.tz for each in types}
        unit = "ns" if any(each.unit == "ns" for each in types) else "us"
        return pa.timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")
    return pa.string()


def key_column(events: pa.RecordBatch, alternatives: Sequence[str], rows: NDArray[np.int64]) -> pa.Array:
    """The first of `alternatives` that is not NULL; an event without any is in no partition."""
    values = [_take(events, event_column(name), rows) for name in alternatives]
    wanted = common_type([each.type for each in values])
    try:
        return pc.coalesce(*(each.cast(wanted) for each in values))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a key cannot be shown exactly in its column, which is of type {wanted}: {error}",
            column=alternatives[0],
            hint=f"give {' and '.join(alternatives)} one type",
        ) from error


def _take(events: pa.RecordBatch, name: str, rows: NDArray[np.int64]) -> pa.Array:
    return plain(pc.take(events.column(name), pa.array(rows), boundscheck=False))


def _in_type(ticks: pa.Array, wanted: pa.DataType) -> pa.Array:
    return ticks.view(wanted) if pa.types.is_timestamp(wanted) else ticks.cast(wanted)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch; dictionaries that differ from piece to piece are decoded first."""
    names = pieces[0].schema.names
    arrays = [pa.concat_arrays([plain(piece.column(name)) for piece in pieces]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _divided(rows: NDArray[np.int64], lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    cuts = [0, *accumulate(lengths)]
    return [rows[a:b] for a, b in pairwise(cuts)]


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with plain strings and bytes in place of views, which Arrow cannot take from."""
    arrays = [array if pa.types.is_dictionary(array.type) else plain(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
