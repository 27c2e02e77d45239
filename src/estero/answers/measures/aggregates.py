"""Aggregates of the events of a variable: one value for each instance, as defined by `reference.filters`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.measures.decimals import sums_of_decimals
from estero.answers.measures.evaluator import Evaluator
from estero.answers.measures.marked import EventsAtHand, Integers, Marked, Mask
from estero.classify.columns import ColumnType
from estero.classify.compared import as_integers
from estero.errors import DataError, QueryError
from estero.language.tree.expressions import Aggregate
from estero.language.tree.functions import SUMMED
from estero.language.tree.schema import Kind

_Numbers = NDArray[np.int64] | NDArray[np.float64]

_SAFE = 2.0**62
"""The bound below which sums of absolute values, added as floats, do not overflow 64-bit integers."""


def aggregate(node: Aggregate, marked: Marked, events: EventsAtHand, evaluator: Evaluator) -> pa.Array:
    """One value for each instance, NULL (for count, 0) of no values; an overflow of sum is a `DataError`.

    The values of min, max, first and last have the type of the column, those of list are lists of that type,
    and sums are of its kind.
    """
    if node.operand is None:
        return pa.array(marked.sizes)
    column = evaluator.type_of_operand(node.operand)
    if column.kind is Kind.NULL and node.function != "list":
        nothing = np.zeros(len(marked.sizes), np.int64)
        return pa.array(nothing) if node.function == "count" else pa.nulls(len(nothing), pa.int64())
    values, rows = evaluator.values(node.operand, events, marked.rows)
    marked = Marked(marked.offsets, rows)
    match node.function:
        case "first":
            return _at(values, rows, marked.offsets[:-1], marked.sizes == 0)
        case "last":
            return _at(values, rows, marked.offsets[1:] - 1, marked.sizes == 0)
        case "list":
            return _lists(values, marked)
    if values.null_count:
        known: Mask = pc.is_valid(values).to_numpy(zero_copy_only=False)
        marked = marked.only(known[rows])
    return _of_known(node, values, marked, column, evaluator)


def _of_known(
    node: Aggregate, values: pa.Array, marked: Marked, column: ColumnType, evaluator: Evaluator
) -> pa.Array:
    """An aggregate of the non-NULL values; `marked` has the events of each instance."""
    match node.function:
        case "count" if node.distinct:
            return pa.array(_different(evaluator.read(values, column), marked))
        case "count":
            return pa.array(marked.sizes)
        case "min" | "max":
            return _extreme(node.function, values, marked)
    if column.kind not in SUMMED:
        raise QueryError(f"{node.function} takes numbers, not {column.kind.value}", span=node.span)
    read = evaluator.read(values, column)
    if column.kind is Kind.DECIMAL and node.function == "sum":
        return sums_of_decimals(read, marked)
    read = evaluator.floats(read) if column.kind is Kind.DECIMAL else read
    if read.null_count:
        read = read.fill_null(pa.scalar(0, read.type))
    with np.errstate(all="ignore"):
        return _COMPUTED[node.function](read.to_numpy(), marked)


def _at(values: pa.Array, rows: Integers, places: Integers, missing: Mask) -> pa.Array:
    if not missing.any():
        return pc.take(values, pa.array(rows[places]), boundscheck=False)
    safe_places = np.where(missing, 0, places)
    chosen = rows[safe_places] if len(rows) else safe_places
    return pc.take(values, pa.array(chosen, mask=missing))


def _lists(values: pa.Array, marked: Marked) -> pa.Array:
    items = pc.take(values, pa.array(marked.rows), boundscheck=False)
    empty = marked.sizes == 0
    mask = pa.array(empty) if empty.any() else None
    return pa.ListArray.from_arrays(pa.array(marked.offsets.astype(np.int32)), items, mask=mask)


def _over(reduced: np.ufunc, items: NDArray[np.generic], marked: Marked) -> NDArray[np.generic]:
    """One value for each instance that has events, in order."""
    begins = marked.offsets[:-1][marked.sizes > 0]
    values: NDArray[np.generic] = reduced.reduceat(items, begins) if len(begins) else items[:0]
    return values


def _spread(values: NDArray[np.generic], marked: Marked, data_type: pa.DataType) -> pa.Array:
    """The values of the instances that have events, with NULL for the others."""
    filled = marked.sizes > 0
    if filled.all():
        return pa.array(values, data_type)
    spread = np.zeros(len(filled), values.dtype)
    spread[filled] = values
    return pa.array(spread, data_type, mask=~filled)


def _extreme(function: str, values: pa.Array, marked: Marked) -> pa.Array:
    """The smallest or largest value: NaN is the largest number, and strings are in order of code points."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        numbers = (pc.fill_null(values, pa.scalar(0, kind)) if values.null_count else values).to_numpy()
        best = _over(np.fmin if function == "min" else np.maximum, numbers[marked.rows], marked)
        return _spread(best, marked, kind)
    ranks = pc.rank(values, tiebreaker="first").to_numpy().astype(np.int64) - 1
    row_of = np.empty(len(ranks), np.int64)
    row_of[ranks] = np.arange(len(ranks))
    reduced = np.minimum if function == "min" else np.maximum
    places = _spread(row_of[_over(reduced, ranks[marked.rows], marked)], marked, pa.int64())
    return pc.take(values, places)


def _different(values: pa.Array, marked: Marked) -> Integers:
    """The number of different values of each instance: NaN equals itself, and 0.0 equals -0.0."""
    sizes = marked.sizes
    if not len(sizes) or sizes.max() <= 1:
        return sizes
    if pa.types.is_floating(values.type):
        values = pa.array(as_integers(values)[0])
    codes = values.dictionary_encode().indices.fill_null(0).to_numpy(zero_copy_only=False)
    many = len(codes) + 1
    pairs = np.unique(marked.owners * many + codes[marked.rows])
    return np.bincount(pairs // many, minlength=len(sizes)).astype(np.int64)


def _sums(numbers: _Numbers, marked: Marked) -> NDArray[np.generic]:
    """The sums in stream order; floats are added one after the other, as by `bincount`."""
    items = numbers[marked.rows]
    if numbers.dtype == np.float64:
        return np.bincount(marked.owners, items, len(marked.sizes))[marked.sizes > 0]
    for instance in _perhaps_too_large(numbers, marked):
        low, high = marked.offsets[instance : instance + 2]
        _check_partial_sums(items[low:high].tolist())
    return _over(np.add, items, marked)


def _perhaps_too_large(numbers: _Numbers, marked: Marked) -> list[int]:
    """The instances with a sum of integers that might not fit in 64 bits."""
    largest = max(abs(int(numbers.max(initial=0))), abs(int(numbers.min(initial=0))))
    if largest * int(marked.sizes.max(initial=0)) <= _SAFE:
        return []
    sizes = np.bincount(marked.owners, np.abs(numbers[marked.rows].astype(np.float64)), len(marked.sizes))
    instances: list[int] = np.flatnonzero(sizes > _SAFE).tolist()
    return instances


def _check_partial_sums(numbers: list[int]) -> None:
    total = 0
    for number in numbers:
        total += number
        if not -(2**63) <= total < 2**63:
            raise DataError(
                f"a sum of integers comes to {total}, which does not fit into 64 bits",
                hint="add up floats: sum(CAST(X.a AS FLOAT))",
            )


def _sum(numbers: _Numbers, marked: Marked) -> pa.Array:
    return _spread(_sums(numbers, marked), marked, pa.from_numpy_dtype(numbers.dtype))


def _mean(numbers: _Numbers, marked: Marked) -> pa.Array:
    """The sum as a float (of integers the exact one, of any size) divided by the number of values."""
    if numbers.dtype == np.float64:
        sums = _sums(numbers, marked).astype(np.float64)
    else:
        items = numbers[marked.rows]
        sums = _over(np.add, items, marked).astype(np.float64)  # sums that are too large wrap around
        places = np.cumsum(marked.sizes > 0) - 1
        for instance in _perhaps_too_large(numbers, marked):
            low, high = marked.offsets[instance : instance + 2]
            sums[places[instance]] = float(sum(items[low:high].tolist()))
    return _spread(sums / marked.sizes[marked.sizes > 0], marked, pa.float64())


def _deviation(numbers: _Numbers, marked: Marked) -> pa.Array:
    """The sample standard deviation, in two passes; NULL for fewer than two values."""
    items, counts, owners = numbers[marked.rows].astype(np.float64), marked.sizes, marked.owners
    means = np.bincount(owners, items, len(counts)) / np.maximum(counts, 1)
    apart = items - means[owners]
    squares = np.bincount(owners, apart * apart, len(counts))
    return pa.array(np.sqrt(squares / np.maximum(counts - 1, 1)), mask=counts < 2)


def _median(numbers: _Numbers, marked: Marked) -> pa.Array:
    """The median, with NaN sorted last; for an even number of values the mean of the two in the middle."""
    items = numbers[marked.rows].astype(np.float64)
    items = items[np.lexsort((items, marked.owners))]
    filled = marked.sizes > 0
    begins, sizes = marked.offsets[:-1][filled], marked.sizes[filled]
    lower, upper = items[begins + (sizes - 1) // 2], items[begins + sizes // 2]
    return _spread(np.where(sizes % 2 == 1, lower, (lower + upper) / 2), marked, pa.float64())


_COMPUTED: Final[Mapping[str, Callable[[_Numbers, Marked], pa.Array]]] = {
    "sum": _sum,
    "avg": _mean,
    "stddev": _deviation,
    "median": _median,
}
