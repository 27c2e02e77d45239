"""Aggregates of the events of a variable, one value for each instance, as `reference.filters` means them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.sieve.evaluator import Evaluator
from estero.answers.sieve.instances import EventsAtHand, Integers, Marked, Mask, fold
from estero.errors import DataError, QueryError
from estero.language.tree.expressions import Aggregate
from estero.language.tree.schema import Kind

_Numbers = NDArray[np.int64] | NDArray[np.float64]

_SAFE = 2.0**62
"""Sums of absolute values below this, added up in floats, do not overflow 64-bit integers."""


def aggregate(node: Aggregate, marked: Marked, events: EventsAtHand, evaluator: Evaluator) -> pa.Array:
    """One value for each instance, NULL (for count, 0) of no values; an overflow of sum is a `DataError`.

    The values of min, max, first and last have the type of the column, sums that of its kind.
    """
    if node.attribute is None:
        return pa.array(marked.sizes)
    column = evaluator.type_of(node.attribute)
    if column.kind is Kind.NULL:
        nothing = np.zeros(len(marked.sizes), np.int64)
        return pa.array(nothing) if node.function == "count" else pa.nulls(len(nothing), pa.int64())
    values = events.values(node.attribute, marked.rows)
    known: Mask = pc.is_valid(values).to_numpy(zero_copy_only=False)
    match node.function:
        case "count":
            return pa.array(_counts(marked.owners[known], len(marked.sizes)))
        case "first":
            return _at(values, marked.offsets[:-1], marked.sizes == 0)
        case "last":
            return _at(values, marked.offsets[1:] - 1, marked.sizes == 0)
        case "min" | "max":
            return _extreme(node.function, values, known, marked)
    if column.kind not in {Kind.INT, Kind.FLOAT}:
        raise QueryError(f"{node.function} takes numbers, not {column.kind.value}", span=node.span)
    numbers = evaluator.read(values, column).drop_null().to_numpy()
    owners = marked.owners[known]
    counts = _counts(owners, len(marked.sizes))
    if node.function == "stddev":
        return _deviation(numbers.astype(np.float64), owners, counts)
    sums = _sums(numbers, owners, counts)
    if node.function == "sum":
        return pa.array(sums, mask=counts == 0)
    return pa.array(sums / np.maximum(counts, 1), mask=counts == 0)


def _counts(owners: Integers, instances: int) -> Integers:
    counts: Integers = np.bincount(owners, minlength=instances).astype(np.int64)
    return counts


def _at(values: pa.Array, places: Integers, missing: Mask) -> pa.Array:
    return pc.take(values, pa.array(places, mask=missing))


def _extreme(function: str, values: pa.Array, known: Mask, marked: Marked) -> pa.Array:
    """Found by rank: Arrow sorts NaN after all numbers, and strings by code point, as semantics.md says."""
    ranks = pc.rank(values, tiebreaker="first").to_numpy().astype(np.int64) - 1
    row_of = np.empty(len(ranks), np.int64)
    row_of[ranks] = np.arange(len(ranks))
    none = len(ranks)
    best = np.full(len(marked.sizes), none)
    wanted = ranks if function == "min" else none - 1 - ranks
    fold(wanted[known], marked.owners[known], best)
    missing = best == none
    if function == "max":
        best = none - 1 - best
    return _at(values, row_of[np.where(missing, 0, best)] if none else best, missing)


def _sums(numbers: _Numbers, owners: Integers, counts: Integers) -> _Numbers:
    """Sums in stream order; floats are added one after the other, as `bincount` does."""
    if numbers.dtype == np.float64:
        return np.bincount(owners, numbers, len(counts))
    sizes = np.bincount(owners, np.abs(numbers.astype(np.float64)), len(counts))
    sums = np.zeros(len(counts), np.int64)
    np.add.at(sums, owners, numbers)
    for instance in np.flatnonzero(sizes > _SAFE).tolist():
        low, high = np.searchsorted(owners, [instance, instance + 1])
        _check_partial_sums(numbers[low:high].tolist())
    return sums


def _check_partial_sums(numbers: list[int]) -> None:
    total = 0
    for number in numbers:
        total += number
        if not -(2**63) <= total < 2**63:
            raise DataError(f"{total} is not a 64-bit integer")


def _deviation(numbers: NDArray[np.float64], owners: Integers, counts: Integers) -> pa.Array:
    """The deviation of a sample, in two passes; NULL of fewer than two values."""
    with np.errstate(all="ignore"):
        means = np.bincount(owners, numbers, len(counts)) / np.maximum(counts, 1)
        apart = numbers - means[owners]
        squares = np.bincount(owners, apart * apart, len(counts))
        return pa.array(np.sqrt(squares / np.maximum(counts - 1, 1)), mask=counts < 2)
