"""Join keys of events whose attributes are lists: one for each combination of elements.

Values are hashed here, because SQL has no single key for such an event. Equal numbers have equal hashes,
whatever their types, and so have equal times.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import known_in, numbers_in
from estero.classify.column_names import event_column
from estero.classify.join_keys import NULL_HALVES, Bits, Known, halves_of, hashed
from estero.plan.keys import KeyColumn, KeyPart

_REMEMBERED = 1 << 16


class _Choices(NamedTuple):
    """The values of a part of a key: those of event i are number first[i] … first[i] + choices[i] - 1."""

    low: Bits
    high: Bits
    first: NDArray[np.int64]
    choices: NDArray[np.int64]


def has_lists(columns: Sequence[KeyColumn]) -> bool:
    """Whether some part of a key is a list."""
    return any(part.listed is not None for column in columns for part in column.parts)


def spread_keys(
    columns: Sequence[KeyColumn], classified: pa.RecordBatch
) -> tuple[Bits, Known, NDArray[np.int64]]:
    """Keys uint64[r, K, 2] and known bool[r, K], and the row range of each event, spread int64[n, 2].

    An event has as many rows as its key column with the most keys, and at least one. NULLs in a list are no
    keys, unless there is nothing else and the part may be NULL. The keys of an event are distinct.

    >>> batch = pa.record_batch({event_column("tags"): [["a", "b"], None]})
    >>> keys, known, spread = spread_keys([KeyColumn((KeyPart((), listed="tags"),), exact=False)], batch)
    >>> known.tolist(), spread.tolist()
    ([[True], [True], [False]], [[0, 2], [2, 3]])
    """
    parts = {part: _choices(part, classified) for column in columns for part in column.parts}
    events = classified.num_rows
    counts = [
        np.prod([parts[part].choices for part in column.parts], axis=0, dtype=np.int64)
        if column.parts
        else np.ones(events, np.int64)
        for column in columns
    ]
    rows = np.maximum(np.max(counts, axis=0), 1)
    end = np.cumsum(rows)
    spread = np.column_stack((end - rows, end))
    event = np.repeat(np.arange(events), rows)
    number = np.arange(event.size) - spread[event, 0]
    keys = np.zeros((event.size, len(columns), 2), np.uint64)
    known = np.zeros((event.size, len(columns)), np.bool_)
    for place, (column, count) in enumerate(zip(columns, counts, strict=True)):
        here = number < count[event]
        known[:, place] = here
        halves = _combined([parts[part] for part in column.parts], event[here], number[here])
        if halves:
            keys[here, place, 0], keys[here, place, 1] = hashed(halves)
    return keys, known, spread


def _combined(parts: Sequence[_Choices], event: NDArray[np.int64], number: NDArray[np.int64]) -> list[Bits]:
    """The halves of the values of combination `number` of an event; those of the last part vary first."""
    halves: list[Bits] = []
    for part in reversed(parts):
        count = part.choices[event]
        chosen = part.first[event] + number % count
        number = number // count
        halves[:0] = [part.low[chosen], part.high[chosen]]
    return halves


def _choices(part: KeyPart, classified: pa.RecordBatch) -> _Choices:
    """The values of a part of a key."""
    events = classified.num_rows
    if part.listed is None:
        low, high, known = halves_of(part, classified)
        return _Choices(low, high, np.arange(events), known.astype(np.int64))
    event, values = _elements(classified.column(event_column(part.listed)))
    distinct = values.dictionary_encode()
    code = numbers_in(distinct.indices.cast(pa.int64()))
    _, first = np.unique(event * max(1, len(distinct.dictionary)) + code, return_index=True)
    kept = np.sort(first)
    of_values = np.array(
        [_hash_of(value) for value in _plain(distinct.dictionary)] or [(0, 0)], np.uint64
    ).reshape(-1, 2)
    count = np.bincount(event[kept], minlength=events).astype(np.int64)
    low, high = of_values[code[kept], 0], of_values[code[kept], 1]
    begins = np.cumsum(count) - count
    if part.null:
        low, high = np.append(low, NULL_HALVES[0]), np.append(high, NULL_HALVES[1])
        begins, count = np.where(count == 0, low.size - 1, begins), np.maximum(count, 1)
    return _Choices(low, high, begins, count)


def _elements(column: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The elements of lists, or the values of another column, and the event of each; without NULLs."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    event = np.arange(len(column))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = column.value_lengths().fill_null(0)
        event, column = np.repeat(event, numbers_in(lengths.cast(pa.int64()))), column.flatten()
    return event[known_in(column)], column.drop_null()


def _plain(values: pa.Array) -> list[Any]:
    """Values as Python objects; times as nanoseconds."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ns", values.type.tz)).cast(pa.int64())
    return list(values.to_pylist())


@lru_cache(_REMEMBERED)
def _hash_of(value: Any) -> tuple[int, int]:
    """Both halves of the hash of a value."""
    digest = blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _text(value: Any) -> str:
    """A text that is the same for equal values only."""
    match value:
        case bool() | str() | bytes():
            return f"{type(value).__name__} {value!r}"
        case float() | Decimal() if value == value // 1:
            return f"number {int(value)}"
        case Decimal():
            return f"number {value.normalize()}"
        case int() | float():
            return f"number {value}"
        case _:
            return f"{type(value).__name__} {value!r}"
