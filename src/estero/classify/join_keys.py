"""The 128-bit keys by which an automaton joins classified events.

A single value is its own key, and so are two integers. Other keys are two independent hashes of their
values; a float that is an integer is hashed as that integer, so that 1 and 1.0 join. In a query with
PARTITION BY the partition key is part of every key: as it is where it is alone, else hashed with the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import known_in, numbers_in, without_nulls
from estero.classify.column_names import value_name
from estero.classify.compared import as_integers
from estero.plan.keys import KeyColumn, KeyPart

Bits = NDArray[np.uint64]
Known = NDArray[np.bool_]

_SEEDS: Final = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NAN: Final = np.uint64(0x7FF8000000000000)
_NULLS: Final = (
    np.array([0x8CB92BA72F3D8DD7, 0xAEF17502108EF2D9], np.uint64),
    np.array([0xD6E8FEB86659FD93, 0xCA5A826395121157], np.uint64),
)
"""The stand-ins for NULL on the left and right side of a comparison that NULL makes true."""
NULL_HALVES: Final = _NULLS[0]
"""The stand-in for NULL as a part of a key that may be NULL."""


def join_keys(
    columns: Sequence[KeyColumn], classified: pa.RecordBatch, partition: Bits | None
) -> tuple[Bits, Known]:
    """Keys uint64[n, K, 2] and known bool[n, K]: key column k of event i, NULL unless it is known.

    `partition` uint64[n, 2] are the partition keys of the events.

    >>> from estero.plan.keys import KeyColumn, KeyPart
    >>> batch = pa.record_batch({"__value0": [1, None], "__value1": [1.0, 2.5]})
    >>> plain = [KeyColumn((KeyPart(((number,),)),), exact=True) for number in (0, 1)]
    >>> keys, known = join_keys(plain, batch, None)
    >>> keys[0].tolist(), known.tolist()
    ([[1, 0], [1, 0]], [[True, True], [False, True]])
    """
    count = classified.num_rows
    keys = np.zeros((count, len(columns), 2), np.uint64)
    known = np.ones((count, len(columns)), np.bool_)
    parts: dict[KeyPart, tuple[Bits, Bits, Known]] = {}
    for number, column in enumerate(columns):
        key_parts = [_part(part, classified, parts) for part in column.parts]
        for _, _, part_known in key_parts:
            known[:, number] &= part_known
        pairs = [(low, high) for low, high, _ in key_parts]
        if partition is not None:
            pairs.append((partition[:, 0], partition[:, 1]))
        if len(pairs) == 1 or (column.exact and partition is None):
            for place, half in enumerate(_exact(pairs)):
                keys[:, number, place] = half
        else:
            for place, seed in enumerate(_SEEDS):
                keys[:, number, place] = _hash([half for pair in pairs for half in pair], seed)
        if column.null is not None:
            keys[~known[:, number], number] = _NULLS[column.null]
            known[:, number] = True
    return keys, known


def halves_of(part: KeyPart, classified: pa.RecordBatch) -> tuple[Bits, Bits, Known]:
    """Both halves of the value of a part of a key, and a mask of the non-NULL ones."""
    return _part(part, classified, {})


def hashed(halves: Sequence[Bits]) -> tuple[Bits, Bits]:
    """Both halves of a key made from the halves of several values."""
    first, second = (_hash(halves, seed) for seed in _SEEDS)
    return first, second


def _exact(parts: Sequence[tuple[Bits, Bits]]) -> tuple[Bits, ...]:
    """The two halves of an exact key: both of one value, or the first of each of two."""
    if len(parts) == 1:
        return parts[0]
    return tuple(low for low, _ in parts)


def _part(
    part: KeyPart, classified: pa.RecordBatch, parts: dict[KeyPart, tuple[Bits, Bits, Known]]
) -> tuple[Bits, Bits, Known]:
    """Both halves of the key of a value, and a mask of the non-NULL values."""
    if part not in parts:
        nothing = np.zeros(classified.num_rows, np.uint64)
        low, high, known = nothing, nothing, nothing != 0
        for number, numbers in enumerate(part.values):
            other_low, other_high, other_known = _value(numbers, classified)
            if number == 0:
                low, high, known = other_low, other_high, other_known
                continue
            low, high = np.where(known, low, other_low), np.where(known, high, other_high)
            known = known | other_known
        if part.null:
            low, high = np.where(known, low, NULL_HALVES[0]), np.where(known, high, NULL_HALVES[1])
            known = np.ones_like(known)
        parts[part] = low, high, known
    return parts[part]


def _value(numbers: tuple[int, ...], classified: pa.RecordBatch) -> tuple[Bits, Bits, Known]:
    columns = [classified.column(value_name(number)) for number in numbers]
    if len(columns) == 2:  # the hashes of a string
        (low, known), (high, _) = (as_integers(column) for column in columns)
        return low.view(np.uint64), high.view(np.uint64), known
    if pa.types.is_floating(columns[0].type):
        return _number(columns[0])
    low, known = as_integers(columns[0])
    return low.view(np.uint64), np.broadcast_to(np.uint64(0), low.size), known


def _number(column: pa.Array) -> tuple[Bits, Bits, Known]:
    """The halves of a float: an integer and 0, or its bits and 1; all NaNs are the same."""
    known, floats = known_in(column), numbers_in(without_nulls(column)).astype(np.float64)
    whole = (floats >= -(2.0**63)) & (floats < 2.0**63) & (floats == np.floor(floats))
    integers = np.where(whole, floats, 0.0).astype(np.int64).view(np.uint64)
    bits = np.where(np.isnan(floats), _NAN, floats.view(np.uint64))
    return np.where(whole, integers, bits), (~whole).astype(np.uint64), known


def _hash(halves: Sequence[Bits], seed: int) -> Bits:
    """A hash of the halves in their order (the finaliser of SplitMix64 after each)."""
    mixed = np.full(halves[0].size, seed, np.uint64)
    for half in halves:
        mixed = mixed * _FIRST + half
        mixed ^= mixed >> np.uint64(30)
        mixed *= _FIRST
        mixed ^= mixed >> np.uint64(27)
        mixed *= _SECOND
        mixed ^= mixed >> np.uint64(31)
    return mixed
