"""Lists of rows, and the lists that these rows head: listing, linking and checking, as declared (`schema`).

In a snapshot the rows of a pool are in the order of their lists, and "cells.count" has the lengths of those
of pool `cells`. Rows that are not live (`schema.ref`) or that head an empty list are left out. A row heads
one list at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, inlined, kernel, kinds_of
from estero.engine.store import schema
from estero.engine.store.checks import Arrays, counts, need
from estero.engine.store.schema import (
    NONE,
    ROWS,
    check,
    columns_of,
    count_written,
    kept_columns,
    new,
    put,
    sizes_of,
)

Store = TypeVar("Store", bound=tuple[Any, ...])


@inlined
def take_row(rows):  # type: ignore[no-untyped-def]
    """Takes a free row from a pool, which must have one."""
    row = rows.free[0]
    rows.free[0] = rows.next[row]
    rows.free[1] -= 1
    return row


@inlined
def give_back(rows, row):  # type: ignore[no-untyped-def]
    """Frees a row of a pool."""
    rows.next[row] = rows.free[0]
    rows.free[0] = row
    rows.free[1] += 1


@kernel(INT32S, INT32S, INT32S, INT32S)
def follow(heads, following, rows, lengths):  # type: ignore[no-untyped-def]
    """Writes the rows of lists, one list after the other, and their lengths; returns the number of rows."""
    total = 0
    for number in range(heads.size):
        before = total
        row = heads[number]
        while row != NONE:
            rows[total] = row
            total += 1
            row = following[row]
        lengths[number] = total - before
    return total


@kernel(INT32S, INT32S, INT32S, INT64S, INT, INT32S, INT32S)
def follow_live(heads, following, of, event, oldest, rows, lengths):  # type: ignore[no-untyped-def]
    """As `follow`, but a list ends before the first row whose event, event[of[row]], is before `oldest`."""
    total = 0
    for number in range(heads.size):
        before = total
        row = heads[number]
        while row != NONE and event[of[row]] >= oldest:
            rows[total] = row
            total += 1
            row = following[row]
        lengths[number] = total - before
    return total


def rows_of_lists(
    store: Any, name: str, first: NDArray[np.int32], oldest: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The live rows of lists of pool `name`, one list after the other, and the lengths of the lists."""
    pool = getattr(store, name)
    rows = np.empty(int(pool.next.size - pool.free[1]), np.int32)
    lengths = np.empty(first.size, np.int32)
    for field, column in columns_of(type(pool)).items():
        if column.live:
            event = getattr(getattr(store, column.to), column.live)
            total = follow_live(first, pool.next, getattr(pool, field), event, oldest, rows, lengths)
            break
    else:
        total = follow(first, pool.next, rows, lengths)
    return rows[:total], lengths


def listed(store: Any, name: str, first: NDArray[np.int32], oldest: int) -> tuple[Arrays, NDArray[np.int32]]:
    """The live rows of the lists of pool `name` that begin with `first`, and the lengths of the lists."""
    pool = getattr(store, name)
    rows, lengths = rows_of_lists(store, name, first, oldest)
    arrays: Arrays = {}
    for field, column in columns_of(type(pool)).items():
        if column.role == schema.HEADS:
            below, sizes = listed(store, column.to, getattr(pool, field)[rows], oldest)
            kept = sizes > 0
            rows, lengths = rows[kept], lengths_without(lengths, kept)
            arrays |= {**below, f"{column.to}.count": sizes[kept]}
    for array, field, _ in kept_columns(type(pool), name):
        arrays[array] = getattr(pool, field)[rows]
    return arrays, lengths


def lengths_without(lengths: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The lengths of lists after removing the items that are not `kept`."""
    before = np.zeros(kept.size + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    ends = np.cumsum(lengths)
    remaining: NDArray[np.int32] = before[ends] - before[ends - lengths]
    return remaining


def linked(store: Store, name: str, arrays: Arrays, lengths: NDArray[Any]) -> tuple[Store, NDArray[np.int32]]:
    """A store with the `listed` rows in place of all such lists, and their first rows; half is free."""
    old: Any = getattr(store, name)
    size = int(lengths.sum())
    pool = new(type(old), **{**sizes_of(old), ROWS: max(old.next.size, 2 * size)})
    put(pool, name, arrays)
    for field, column in columns_of(type(old)).items():
        if column.role == schema.HEADS:
            store, getattr(pool, field)[:size] = linked(
                store, column.to, arrays, arrays[f"{column.to}.count"]
            )
        elif column.role == schema.DERIVED and column.to:
            getattr(pool, field)[:size] = arrays[f"{column.to}.count"]
    of_store: Any = store
    return of_store._replace(**{name: pool}), link_lists(pool, lengths)


def link_lists(pool: Any, lengths: NDArray[Any]) -> NDArray[np.int32]:
    """Links the rows of a new pool into lists of these lengths, one after the other, and the rest as free.

    Returns the first row of each list, NONE for an empty one.
    """
    total, rows = int(lengths.sum()), pool.next.size
    ends = np.cumsum(lengths, dtype=np.int64)
    pool.next[ends[lengths > 0] - 1] = NONE
    pool.free[:2] = total if total < rows else NONE, rows - total
    return np.where(lengths > 0, ends - lengths, NONE).astype(np.int32)


def check_lists(
    store: type[Any],
    name: str,
    arrays: Arrays,
    lengths: NDArray[Any],
    sizes: Mapping[str, int],
    least: int = 1,
) -> None:
    """Raises ValueError unless the arrays are of the form returned by `listed`, of lists of these lengths.

    Lists headed by rows have at least `least` rows.
    """
    kinds = kinds_of(store)
    kind: Any = kinds[name]
    size = int(lengths.sum(dtype=np.int64))
    columns = check(kind, name, arrays, {**sizes, name: size})
    for field, column in columns_of(kind).items():
        values = getattr(columns, field)
        if column.role == schema.HEADS:
            total = count_written(kinds[column.to], column.to, arrays)
            below = counts(arrays, f"{column.to}.count", size, total, least=least)
            check_lists(store, column.to, arrays, below, sizes, least)
        if column.live:
            event = arrays[f"{column.to}.{column.live}"][values]
            need((event[1:] <= event[:-1]) | begins(lengths)[1:], f"{column.live} falls in lists of {name}")
        if column.once:
            _check_once(values, lengths, f"{name}.{field} is different in one list")


def begins(lengths: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each item of concatenated lists is the first of its list."""
    first = np.zeros(int(lengths.sum()), np.bool_)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return first


def _check_once(values: NDArray[Any], lengths: NDArray[Any], what: str) -> None:
    """Checks that no list has a value twice; most lists have one, and sorting is what takes time here."""
    several = np.flatnonzero(lengths > 1)
    owner = np.repeat(several, lengths[several])
    theirs = values[np.repeat(lengths > 1, lengths)]
    pairs = owner * (int(values.max(initial=0)) + 1) + theirs
    need(np.unique(pairs).size == theirs.size, what)


def references(store: type[Any], name: str, to: str) -> list[str]:
    """The arrays of lists of pool `name`, and of those below, that refer to `to`."""
    kinds = kinds_of(store)
    names = []
    for field, column in columns_of(kinds[name]).items():
        if column.role == schema.HEADS:
            names += references(store, column.to, to)
        elif column.role == schema.KEPT and column.to == to:
            names.append(f"{name}.{field}")
    return names
