"""The arrays of a snapshot, described; how they are written, numbered anew, read and checked follows.

A *table* has columns of one length. Each column says what its integers point at: where these are events,
they are numbered anew as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import NONE, PREFER

Arrays = dict[str, NDArray[Any]]
Pool = TypeVar("Pool", bound=tuple[NDArray[Any], ...])

EVENTS = "events"


class Column(NamedTuple):
    """Integers `low` … sizes[below] - 1 + `more`, or any where `below` is empty; `name` is the pool's, too.

    `inner` are the further axes of the array, numbers or names of sizes.
    """

    name: str
    kind: Any
    below: str = ""
    low: int = 0
    more: int = 0
    inner: tuple[str | int, ...] = ()


class Table(NamedTuple):
    """Columns of the length `rows`, a name of a size; in a snapshot their names begin with `prefix`."""

    rows: str
    columns: tuple[Column, ...]
    prefix: str = ""

    def written(self, pool: Any, count: int, events: NDArray[np.int64]) -> Arrays:
        """The first `count` rows of a pool, in terms of the ascending `events` that are kept."""
        arrays = {}
        for column in self.columns:
            kept = getattr(pool, column.name)[:count]
            if column.below == EVENTS:
                kept = np.searchsorted(events, kept)
            arrays[self.prefix + column.name] = kept
        return arrays

    def put(self, arrays: Arrays, pool: Pool) -> Pool:
        """The pool, with rows that were written in its first places."""
        for column in self.columns:
            array = arrays[self.prefix + column.name]
            getattr(pool, column.name)[: array.shape[0]] = array
        return pool

    def count(self, arrays: Arrays) -> int:
        """How many rows were written."""
        return int(arrays[self.prefix + self.columns[0].name].shape[0])

    def check(self, arrays: Arrays, sizes: Mapping[str, int]) -> list[NDArray[Any]]:
        """The columns. Raises ValueError unless each has its type and shape and points at what is there."""
        found = []
        for column in self.columns:
            name = self.prefix + column.name
            inner = [sizes[each] if isinstance(each, str) else each for each in column.inner]
            found.append(taken(arrays, name, column.kind, sizes[self.rows], *inner))
            if column.below:
                within(found[-1], column.low, sizes[column.below] + column.more, name)
        return found


def taken(arrays: Arrays, name: str, kind: Any, *shape: int | None) -> NDArray[Any]:
    """An array of this type and shape, of which None is any length."""
    array = arrays[name]
    fits = len(shape) == array.ndim and all(
        wanted in (None, there) for wanted, there in zip(shape, array.shape, strict=True)
    )
    if array.dtype != kind or not fits:
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
    return array


def within(numbers: NDArray[Any], low: int, high: int, what: str) -> None:
    """Checks that low <= number < high."""
    if numbers.size and not (low <= int(numbers.min()) and int(numbers.max()) < high):
        raise ValueError(f"{what} are not between {low} and {high}")


_HIGHEST = 32
"""The most levels of a tree of choices; each has twice as many nodes as the one below."""

NODES = Table(
    "nodes",
    (
        Column("kind", np.int32, "marks", PREFER - _HIGHEST),
        Column("left", np.int32, "nodes", NONE),
        Column("right", np.int32, "nodes", NONE),
        Column("event", np.int64, EVENTS),
        Column("start", np.int64, EVENTS),
    ),
)
"""`arena.Arena`. The event of a union is 0."""

PRODUCTS = Table(
    "products",
    (
        Column("mark", np.int32, "marks"),
        Column("event", np.int64, EVENTS),
        Column("start", np.int64, EVENTS),
        Column("made", np.int32, "heaps", more=1),
    ),
)
"""`heap.Products`, but for their children."""

HEAPS = Table(
    "heaps",
    (
        Column("product", np.int32, "products"),
        Column("left", np.int32, "heaps", NONE),
        Column("right", np.int32, "heaps", NONE),
        Column("weight", np.int32, "heaps", 1, 1),
        Column("start", np.int64, EVENTS),
    ),
    "heap_",
)
"""`heap.HeapNodes`."""

RUN_NODES = Table(
    "run nodes",
    (
        Column("event", np.int64, EVENTS),
        Column("mark", np.int32, "marks"),
        Column("place", np.int32, "places", NONE),
        Column("top", np.int32, "entries", NONE),
        Column("head", np.int32, "entries", NONE),
        Column("values", np.uint64, inner=("attributes", 2)),
    ),
    "node_",
)
"""`run_nodes.RunNodes`."""

ED_ENTRIES = Table(
    "entries",
    (
        Column("node", np.int32, "run nodes"),
        Column("place", np.int32, "places"),
        Column("values", np.uint64, inner=("attributes", 2)),
        Column("skips", np.int32, "entries", NONE, inner=("skips",)),
        Column("before", np.int32, "entries", NONE),
    ),
    "entry_",
)
"""`ed_index.EdEntries`."""
