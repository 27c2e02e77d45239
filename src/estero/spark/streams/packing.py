"""Rows of a task → a few blobs of Arrow data for each bucket of keys, and back.

Spark moves and groups rows one by one; a blob is one row that holds thousands of events. All events of a key
are in one bucket, and a bucket has one row of state, however many keys there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import KEYS, TIME

GUARD = -1
"""The group that holds only the header of the state: it is never forgotten."""

NO_TIME = -(2**63)

RULES = -1
"""The task number of packed rows that have rules instead of events, as JSON."""

STATE = -2
"""The task number of packed rows that have the state of a bucket, with which a stream begins."""

_ROWS, _BYTES = 1 << 17, 1 << 24
"""The number of events, and of their bytes, at which a task packs those it has."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
PACKED = pa.schema(
    [
        ("clock", pa.timestamp("us", "UTC")),
        ("bucket", pa.int32()),
        ("task", pa.int32()),
        ("number", pa.int32()),
        ("newest", pa.int64()),
        ("events", pa.binary()),
    ]
)
"""The columns of packed rows. ``clock`` is NULL: Spark only checks that it has a watermark."""


class Packed(NamedTuple):
    """One packed row: the blob `number` that `task` has for a bucket.

    `newest` is the greatest time among all events of the task if this is its last row for the bucket, else
    `NO_TIME`: pandas turns integers that may be NULL into floats.
    """

    bucket: int
    task: int
    number: int
    newest: int
    events: bytes | None


@dataclass(frozen=True, slots=True)
class Packing:
    """The packing of events: the number of `buckets`, by the keys among the columns of `schema`, if any.

    `groups` are the numbers under which Spark groups the buckets; by default those of `group_numbers`.
    """

    buckets: int
    schema: pa.Schema
    groups: tuple[int, ...] | None = None

    def packed(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
        """The events of a task as packed rows; each bucket, and the guard, gets at least one."""
        groups = group_numbers(self.buckets) if self.groups is None else self.groups
        newest = NO_TIME
        number = 0
        for batch in gathered(batches, self.schema, rows=_ROWS, size=_BYTES):
            newest = max(newest, _greatest(batch))
            for bucket, blob in self._divided(batch):
                yield _rows([Packed(groups[bucket], task, number, NO_TIME, blob)])
            number += 1
        yield _rows([Packed(group, task, number, newest, None) for group in (*groups, GUARD)])

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        """The blob of each bucket that has events in the batch, events in their order."""
        if self.buckets == 1:
            yield 0, blob_of(batch)
            return
        places = buckets_of([batch.column(name).to_numpy() for name in KEYS], self.buckets)
        order = np.argsort(places, kind="stable")
        batch = batch.take(pa.array(order))
        cuts = np.searchsorted(places[order], np.arange(self.buckets + 1))
        for bucket, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first < last:
                yield bucket, blob_of(batch.slice(first, last - first))


def buckets_of(keys: list[NDArray[np.int64]], buckets: int) -> NDArray[np.uint16]:
    """The bucket of each key, the same on every machine; `keys` are the two halves of the keys."""
    mixed = (keys[0].view(np.uint64) * _ODD + keys[1].view(np.uint64)) * _ODD
    return ((mixed >> np.uint64(32)) % np.uint64(buckets)).astype(np.uint16)


def group_numbers(buckets: int) -> list[int]:
    """The number under which Spark groups each bucket.

    Spark finds the task of a group by the remainder of a hash. These numbers have all remainders modulo
    `buckets`, so as many tasks, or half of them, or a quarter, … have equally many buckets each.
    """
    number_of: dict[int, int] = {}
    for number in count():
        number_of.setdefault(_murmur3(number) % buckets, number)
        if len(number_of) == buckets:
            return [number_of[remainder] for remainder in range(buckets)]
    raise AssertionError  # the loop has no end


def blob_of(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes, without its schema."""
    return batch.serialize().to_pybytes()  # type: ignore[no-any-return]


def batch_of(blob: bytes | pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The batch of `blob_of`, with its columns inside the blob: nothing is copied."""
    return pa.ipc.read_record_batch(pa.py_buffer(blob), schema)


def joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows in one batch."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema)


def gathered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, rows: int, size: int
) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that end at a number of rows or of bytes."""
    waiting: list[pa.RecordBatch] = []
    has_rows = has_size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            has_rows, has_size = has_rows + batch.num_rows, has_size + batch.nbytes
        if has_rows >= rows or has_size >= size:
            yield joined(waiting, schema)
            waiting, has_rows, has_size = [], 0, 0
    if waiting:
        yield joined(waiting, schema)


def _greatest(batch: pa.RecordBatch) -> int:
    return int(batch.column(TIME).to_numpy().max())


def _rows(rows: list[Packed]) -> pa.RecordBatch:
    columns = [[None] * len(rows), *zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PACKED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)


def _murmur3(number: int) -> int:
    """Spark's hash of an integer of 32 bits (Murmur3 with seed 42), read as unsigned.

    The remainder that Spark takes of the signed hash is this one's where the divisor is a power of two.
    """
    mask = 0xFFFFFFFF

    def turned(word: int, bits: int) -> int:
        return (word << bits | word >> 32 - bits) & mask

    mixed = turned(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    hashed = (turned(42 ^ mixed, 13) * 5 + 0xE6546B64 & mask) ^ 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & mask
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & mask
    return hashed ^ hashed >> 16
