"""The relevant events, kept until they are shown or read again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_columns import EventColumns
from estero.classify.arrays import array_of, empty_batch, numbers_in
from estero.classify.column_names import is_kept
from estero.classify.rows.classified import ClassifiedRow
from estero.events.tables.shown_types import plain, plain_type

_MANY, _FEW = 32, 2048
"""The number of batches beyond which small ones are joined, and the most events of a small one."""
_TOGETHER = 256
"""The number of single events that become one batch."""

Single = tuple[int, ClassifiedRow]
"""A classified event that came alone, with its position."""


class EventStore:
    """The relevant events of the window, addressed by sequence number: 0, 1, 2, … over the run.

    `schema` is that of the classified batches; key hashes, bits and values are not kept, except for the
    columns in `also`. Batches are kept as they come, and nothing is copied until events are taken, except
    where many small batches are joined.
    """

    def __init__(self, schema: pa.Schema, also: Sequence[str] = ()) -> None:
        kept = [field for field in schema if is_kept(field.name) or field.name in also]
        self._names = [field.name for field in kept]
        self.schema: pa.Schema = pa.schema([pa.field(field.name, plain_type(field.type)) for field in kept])
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._single: list[Single] = []
        self._last: pa.Schema = pa.schema([])
        self._has_views = False
        self.first: int = 0
        """The smallest sequence number that can still be taken."""
        self.next: int = 0
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
        """Makes one batch of the last events that were kept singly."""
        if self._single:
            single, self._single = self._single, []
            self._keep(self._as_batch(single), self.next - len(single))

    def _keep(self, batch: pa.RecordBatch, first: int) -> None:
        """Keeps the events of a batch whose first event has this number."""
        if not batch.schema.equals(self._last):  # which tells the types of most batches
            self._last, self._has_views = batch.schema, any(map(_is_view, batch.schema.types))
        kept = batch.select(self._names)
        self._chunks.append(_without_views(kept) if self._has_views else kept)
        self._starts.append(first)
        while len(self._chunks) > _MANY and self._are_small(*self._chunks[-2:]):
            self._chunks[-2:] = [joined_events(self._chunks[-2:])]
            self._starts.pop()

    @staticmethod
    def _are_small(older: pa.RecordBatch, newer: pa.RecordBatch) -> bool:
        """Whether to join the last two batches: their sizes stay descending, so that few copies are made."""
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
        """Keeps only these events, in place of all others, numbered from 0."""
        self._chunks.clear()
        self._starts.clear()
        self._single.clear()
        self.first = self.next = 0
        self.append(events)

    def take(self, sequence: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The events with these sequence numbers, in this order, as one batch of plain columns.

        `columns` are the columns to take, or None for all. Raises IndexError for a sequence number that was
        trimmed or not yet appended.
        """
        names = self._names if columns is None else list(columns)
        events, (places,) = self.excerpt([sequence])
        arrays = EventColumns(events).taken(names, places)
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([self.schema.field(name) for name in names])
        )

    def numbers(self, sequence: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """A column of integers, none of them NULL, of the events with these sequence numbers, in order."""
        events, (rows,) = self.excerpt([sequence])
        numbers: NDArray[np.int64] = numbers_in(events.column(name))[rows]
        return numbers

    def excerpt(
        self, sequences: Sequence[NDArray[np.int64]]
    ) -> tuple[pa.RecordBatch, list[NDArray[np.int64]]]:
        """A batch with the events of all `sequences`, and the rows of each sequence in it.

        It is a `stretch`, or else the distinct events are taken from one batch after the other: the copied
        amount stays within a constant factor of the requested one.
        """
        asked = [sequence for sequence in sequences if len(sequence)]
        if not asked:
            return empty_batch(self.schema), list(sequences)
        if len(asked) == len(asked[0]) == 1:
            low = high = int(asked[0][0])
        else:
            low, high = min(int(rows.min()) for rows in asked), max(int(rows.max()) for rows in asked)
        stretch = self.stretch(low, high, sum(map(len, asked)))
        if stretch is not None:
            events, first = stretch
            return events, [sequence - first if first else sequence for sequence in sequences]
        distinct, rows = np.unique(np.concatenate(asked), return_inverse=True)
        return joined_events(self._picked(distinct)), _divided(
            rows, [len(sequence) for sequence in sequences]
        )

    def stretch(self, low: int, high: int, asked: int) -> tuple[pa.RecordBatch, int] | None:
        """A batch with the events from number `low` to number `high`, and the number of its first one.

        A batch that was appended is used as it is. If several are needed they are joined, unless they have
        far more events than the number `asked` for: then the result is None. Raises IndexError as `take`
        does.
        """
        self._put_together()
        if low < self.first or high >= self.next:
            kept = f"{self.first} to {self.next - 1}"
            raise IndexError(f"events {low} to {high} were asked for, but {kept} are kept")
        i, j = bisect_right(self._starts, low) - 1, bisect_right(self._starts, high) - 1
        if i == j:
            return self._chunks[i], self._starts[i]
        if high - low >= 4 * asked + 1024:
            return None
        pieces = self._chunks[i : j + 1]
        pieces[0] = pieces[0].slice(low - self._starts[i])
        pieces[-1] = pieces[-1].slice(0, high - self._starts[j] + 1)
        return joined_events(pieces), low

    def _picked(self, distinct: NDArray[np.int64]) -> list[pa.RecordBatch]:
        """The events with these ascending sequence numbers, one piece for each batch that contains some."""
        cuts = [*np.searchsorted(distinct, self._starts).tolist(), len(distinct)]
        return [
            chunk.take(array_of(distinct[a:b] - start))
            for chunk, start, (a, b) in zip(self._chunks, self._starts, pairwise(cuts), strict=True)
            if a < b
        ]


def joined_events(pieces: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The events of several batches as one; dictionaries that differ are decoded first."""
    names = pieces[0].schema.names
    arrays = [pa.concat_arrays([plain(piece.column(name)) for piece in pieces]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _divided(rows: NDArray[np.int64], lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    cuts = [0, *accumulate(lengths)]
    return [rows[a:b] for a, b in pairwise(cuts)]


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with plain strings and bytes in place of views, which Arrow cannot take from."""
    arrays = [array if pa.types.is_dictionary(array.type) else plain(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
