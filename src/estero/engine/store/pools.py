"""Pools of places that are linked into lists, free ones among them.

A pool is a named tuple of columns; `next` int32 links its places, and `free` int64 heads the free ones and
counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import NONE, Pool


def free_places(capacity: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """`next` and `free` of a pool whose places are all free."""
    following = np.arange(1, capacity + 1, dtype=np.int32)
    following[-1] = NONE
    return following, np.array([0, capacity], np.int64)


def grown_pool(pool: Pool, bigger: Pool, without: Collection[str] = ()) -> Pool:
    """`bigger`, whose places are all free, with the places of `pool` first, but for some columns."""
    of_pool: Any = pool  # a named tuple
    fields: dict[str, NDArray[Any]] = of_pool._asdict()
    following, free = fields["next"], fields.pop("free")
    old = following.size
    for name, column in fields.items():
        if name not in without:
            getattr(bigger, name)[:old] = column
    of_bigger: Any = bigger
    of_bigger.next[-1] = free[0]
    of_bigger.free[:2] = old, free[1] + of_bigger.next.size - old
    of_bigger.free[2:] = free[2:]
    return bigger


def with_free(pool: Pool, places: int, new: Callable[[int], Pool], ahead: int = 0) -> Pool:
    """The pool, or one more than twice as large if it has not so many free places.

    It is larger by `ahead`, too, if so many may be needed soon.
    """
    of_pool: Any = pool
    if places <= of_pool.free[1]:
        return pool
    return grown_pool(pool, new(2 * of_pool.next.size + max(places, ahead)))


def lists_of(
    following: NDArray[np.int32], free: NDArray[np.int64], counts: NDArray[Any]
) -> NDArray[np.int32]:
    """Links the places of a new pool into lists of `counts` items, one after the other, and the rest as free.

    Returns the first place of each list, NONE for an empty one.
    """
    used = int(counts.sum())
    ends = np.cumsum(counts, dtype=np.int64)
    following[ends[counts > 0] - 1] = NONE
    free[0] = used if used < following.size else NONE
    free[1] = following.size - used
    return np.where(counts > 0, ends - counts, NONE).astype(np.int32)
