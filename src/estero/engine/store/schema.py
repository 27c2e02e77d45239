"""Declared columns of pools, and the operations that follow: making, growing, writing, reading, checking.

A *pool* is a named tuple of columns (`kernels.pool`), which declares its columns as a data class does its
fields; a *store* is a named tuple of pools, which refer to each other by the names that they have there:

    @pool
    class Cells(NamedTuple):
        node: NDArray[np.int32] = ref("arena", live="start")
        next: NDArray[np.int32] = own()
        free: NDArray[np.int64] = free_rows()

Which rows are in use? Where a pool has `free_rows`, its rows are linked into lists by `own`, free ones among
them. Where it has `counters`, the first rows are in use. Where it has neither, all rows are.

In a snapshot a column is an array that is called after the pool and the column, such as "cells.node".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Column as Array
from estero.engine.kernels import kinds_of
from estero.engine.store.checks import Arrays, need, taken, within

NONE: Final = -1
"""Stands for a row where there is none."""

EVENTS, ROWS, STATES = "events", "rows", "states"
"""What integers may refer to in addition to pools: events, which are renumbered in snapshots; the automaton's
states. And the number of rows, where sizes are named."""

Pool = TypeVar("Pool", bound=tuple[Any, ...])

KEPT, DERIVED, SCRATCH, HEADS, NEXT, FREE, COUNTERS = range(7)
"""The purpose of a column: only `KEPT` ones are written; `SCRATCH` ones are lost when a pool grows."""


@dataclass(frozen=True)
class Column:
    """The declaration of a column.

    Its numbers are `low` … size of `to` - 1 + `more`, or any where `to` is empty. New rows have `fill`;
    without it nothing is read of a row before it is written. The array has `length` + `longer` rows, where
    `length` names a size, and further `axes`: numbers or names of sizes.
    """

    role: int = KEPT
    to: str = ""
    low: int = 0
    more: int = 0
    fill: int | None = None
    length: str = ROWS
    longer: int = 0
    axes: tuple[str | int, ...] = ()
    live: str = ""
    once: bool = False
    earlier: bool = False
    names: tuple[str, ...] = ()


def data(
    fill: int | None = None, *, length: str = ROWS, longer: int = 0, axes: tuple[str | int, ...] = ()
) -> Any:
    """Declares a column that refers to nothing."""
    return Column(fill=fill, length=length, longer=longer, axes=axes)


def ref(
    to: str,
    low: int = 0,
    *,
    fill: int | None = None,
    length: str = ROWS,
    axes: tuple[str | int, ...] = (),
    live: str = "",
    once: bool = False,
) -> Any:
    """Declares rows of the pool `to`, or numbers from `low` on that stand for something else.

    Rows are `live` if that column of the row they refer to is an event inside the window; in a list no live
    row comes after one that is not. `once`: no number occurs twice in a list.
    """
    return Column(to=to, low=low, fill=fill, length=length, axes=axes, live=live, once=once)


def earlier(*, axes: tuple[str | int, ...] = ()) -> Any:
    """Declares earlier rows of the same pool, or NONE."""
    return Column(low=NONE, earlier=True, axes=axes)


def count_of(to: str, least: int = 0) -> Any:
    """Declares a number of rows of the pool `to`."""
    return Column(to=to, low=least, more=1)


def offsets(of: str) -> Any:
    """Declares the first item of a row in columns of the length `of`; those of the next row come after it."""
    return Column(to=of, more=1, fill=0, longer=1)


def derived(
    fill: int | None = None, *, counts: str = "", length: str = ROWS, axes: tuple[str | int, ...] = ()
) -> Any:
    """Declares a column computed from others, so that snapshots omit it.

    `counts`: the number of rows of that pool in the list that the row heads, or more.
    """
    return Column(DERIVED, counts, fill=fill, length=length, axes=axes)


def scratch(fill: int | None = None, *, length: str = ROWS, axes: tuple[str | int, ...] = ()) -> Any:
    """Declares scratch, used during one step only or computed again when the pool grows."""
    return Column(SCRATCH, fill=fill, length=length, axes=axes)


def heads(to: str = "") -> Any:
    """Declares the first row of a list of rows of pool `to`, or NONE. A row is live if one of its list is."""
    return Column(HEADS, to, NONE, fill=NONE)


def own() -> Any:
    """Declares the next row of the list that a row is in, or of the free rows, or NONE."""
    return Column(NEXT)


def free_rows(*further: str) -> Any:
    """Declares the first free row, how many there are, and further counters: from 1 on."""
    return Column(FREE, names=further)


def counters(*names: str) -> Any:
    """Declares the number of rows in use, of items of columns of other lengths, and other counters.

    A counter with an empty name is reset to 0 when the pool grows.
    """
    return Column(COUNTERS, names=names or (ROWS,))


# ------------------------------------------------------------------------------------- making and growing


def columns_of(kind: type[Any]) -> dict[str, Column]:
    """The declared columns of a pool's class, by name."""
    return kind._field_defaults  # type: ignore[no-any-return]


def new(kind: type[Pool], rows: int = 0, **sizes: int) -> Pool:
    """An unused pool with `rows` rows, or a store of such pools.

    `sizes` are further sizes that declarations name, and the rows of those pools of a store that have others.
    """
    declared, lengths = columns_of(kind), {**sizes, ROWS: rows}
    return kind(
        *(
            _made(declared[name], field, lengths)
            if isinstance(field, Array)
            else new(field, **{**lengths, ROWS: sizes.get(name, rows)})
            for name, field in kinds_of(kind).items()
        )
    )


def _made(column: Column, array: Array, sizes: Mapping[str, int]) -> NDArray[Any]:
    rows = sizes[ROWS]
    if column.role == NEXT:
        following = np.arange(1, rows + 1, dtype=array.dtype)
        following[-1] = NONE
        return following
    if column.role == FREE:
        return np.array([0, rows, *(1 for _ in column.names)], array.dtype)
    if column.role == COUNTERS:
        return np.zeros(len(column.names), array.dtype)
    shape = _shape(column, sizes)
    if column.fill is None:
        return np.empty(shape, array.dtype)
    return np.full(shape, column.fill, array.dtype) if column.fill else np.zeros(shape, array.dtype)


def _shape(column: Column, sizes: Mapping[str, int]) -> tuple[int, ...]:
    rows = sizes[column.length] + column.longer
    if not column.axes:
        return (rows,)
    return rows, *(axis if isinstance(axis, int) else sizes[axis] for axis in column.axes)


def _named(column: Column, shape: tuple[int, ...]) -> dict[str, int]:
    """The sizes that the declaration of a column of this shape names."""
    further = {axis: size for axis, size in zip(column.axes, shape[1:], strict=True) if isinstance(axis, str)}
    return {column.length: shape[0] - column.longer, **further}


def sizes_of(pool: Any) -> dict[str, int]:
    """The sizes that the declarations of a pool name."""
    sizes: dict[str, int] = {}
    for name, column in columns_of(type(pool)).items():
        if column.role not in (FREE, COUNTERS):
            sizes |= _named(column, getattr(pool, name).shape)
    return sizes


def _in_use(pool: Any) -> dict[str, int]:
    """The sizes of a pool reduced to what is in use."""
    sizes = sizes_of(pool)
    for name, column in columns_of(type(pool)).items():
        if column.role == COUNTERS:
            sizes |= dict(zip(column.names, getattr(pool, name).tolist(), strict=True))
    return sizes


def grown(pool: Pool, **sizes: int) -> Pool:
    """The same pool with other `sizes`, none of them less than what is in use."""
    bigger = new(type(pool), **{**sizes_of(pool), **sizes})
    in_use = _in_use(pool)
    for name, column in columns_of(type(pool)).items():
        old, fresh = getattr(pool, name), getattr(bigger, name)
        if column.role == COUNTERS:
            fresh[:] = [in_use[counted] if counted else 0 for counted in column.names]
        elif column.role == FREE:
            _link_free(pool, bigger)
        elif column.role not in (SCRATCH, NEXT):
            inner = (slice(0, size) for size in old.shape[1:])
            here = slice(0, in_use[column.length] + column.longer), *inner
            fresh[here] = old[here]
    return bigger


def _link_free(pool: Any, bigger: Any) -> None:
    """Links the rows of a grown pool as they were, and the new ones before the free ones."""
    old = pool.next.size
    bigger.next[:old] = pool.next
    bigger.next[-1] = pool.free[0]
    bigger.free[:2] = old, pool.free[1] + bigger.next.size - old
    bigger.free[2:] = pool.free[2:]


def with_free(pool: Pool, rows: int, ahead: int = 0) -> Pool:
    """The pool, or one more than twice as large if it has fewer free rows than `rows`.

    It is larger by `ahead`, too, which may be needed soon.
    """
    of_pool: Any = pool
    return pool if rows <= of_pool.free[1] else grown(pool, rows=2 * of_pool.next.size + max(rows, ahead))


def with_sizes(pool: Pool, **sizes: int) -> Pool:
    """The pool, or one twice as large as these sizes if some of its own are less."""
    known = sizes_of(pool)
    larger = {name: 2 * size for name, size in sizes.items() if size > known[name]}
    return grown(pool, **larger) if larger else pool


def picked(pool: Pool, kept: NDArray[np.intp] | slice, rows: int) -> Pool:
    """A pool with `rows` rows; the first are those `kept`, in that order."""
    bigger = new(type(pool), **{**sizes_of(pool), ROWS: rows})
    for old, fresh in zip(pool, bigger, strict=True):
        part = old[kept]
        fresh[: part.shape[0]] = part
    return bigger


def drop_first(pool: Any, first: Mapping[str, int], name: str) -> None:
    """Drops the rows of pool `name` before first[name], to which no others refer, and renumbers these.

    All columns have one length. References to rows that other pools leave out are renumbered likewise.
    """
    used_rows = _in_use(pool)[ROWS]
    kept = used_rows - first[name]
    for field, column in columns_of(type(pool)).items():
        array = getattr(pool, field)
        if column.role == KEPT:
            array[:kept] = array[first[name] : used_rows].copy()
            if column.earlier or column.to in first:
                array[:kept] -= first[name if column.earlier else column.to]
                np.maximum(array[:kept], column.low, out=array[:kept])
        elif column.names[:1] == (ROWS,):
            array[0] = kept


# ------------------------------------------------------------------------- writing, reading and checking


def kept_columns(kind: type[Any], name: str) -> Iterator[tuple[str, str, Column]]:
    """The columns of pool `name` that are written: the array, the field and the declaration of each."""
    for field, column in columns_of(kind).items():
        if column.role == KEPT:
            yield f"{name}.{field}", field, column


def written(pool: Any, name: str, events: NDArray[np.int64]) -> Arrays:
    """The part of a pool that is in use, in terms of the ascending `events` that are kept."""
    in_use = _in_use(pool)
    arrays = {}
    for array, field, column in kept_columns(type(pool), name):
        rows = getattr(pool, field)[: in_use[column.length] + column.longer]
        arrays[array] = np.searchsorted(events, rows) if column.to == EVENTS else rows
    return arrays


def count_written(kind: type[Any], name: str, arrays: Arrays) -> int:
    """The number of rows of a pool that were written."""
    columns = kept_columns(kind, name)
    first = next(array for array, _, column in columns if column.length == ROWS and not column.longer)
    return int(arrays[first].shape[0])


def read(kind: type[Pool], name: str, arrays: Arrays, least: int) -> Pool:
    """A pool with the written rows, twice as large, and with at least `least` rows."""
    in_use: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for array, _, column in kept_columns(kind, name):
        sizes |= _named(column, arrays[array].shape)
        in_use[column.length] = sizes[column.length]
    sizes |= {length: max(least, 2 * size) for length, size in in_use.items()}
    pool = new(kind, **sizes)
    put(pool, name, arrays)
    for field, column in columns_of(kind).items():
        if column.role == COUNTERS:
            getattr(pool, field)[:] = [in_use.get(counted, 0) for counted in column.names]
    return pool


def put(pool: Any, name: str, arrays: Arrays) -> None:
    """Puts rows that were written in the first places of a pool."""
    for array, field, _ in kept_columns(type(pool), name):
        rows = arrays[array]
        getattr(pool, field)[: rows.shape[0]] = rows


def check(kind: type[Pool], name: str, arrays: Arrays, sizes: Mapping[str, int]) -> Any:
    """The written columns of a pool, as a named tuple in which the others are None.

    Raises ValueError unless each has its type and shape and refers to what is there. `sizes` are those of the
    pools and other things that columns refer to, and of their axes.
    """
    lengths = {**sizes, ROWS: sizes[name]}
    for array, _, column in kept_columns(kind, name):
        if column.length != ROWS:
            lengths[column.length] = arrays[array].shape[0] - column.longer
    columns: dict[str, Any] = dict.fromkeys(columns_of(kind))
    for array, field, column in kept_columns(kind, name):
        shape = _shape(column, lengths)
        columns[field] = values = taken(arrays, array, kinds_of(kind)[field].dtype, *shape)
        if column.to:
            within(values, column.low, lengths[column.to] + column.more, array)
        elif column.earlier:
            row = np.arange(lengths[ROWS]).reshape(-1, *(1 for _ in column.axes))
            need((values >= NONE) & (values < row), f"{array} refers to rows before its own")
        if column.longer:
            need(
                (values[0] == 0) & (values[-1] == lengths[column.to]),
                f"{array} begin at 0 and end at the end",
            )
            need(values[1:] >= values[:-1], f"{array} do not fall")
    return kind(**columns)
