"""Roots of compact sets as recognizers hand them out, whichever kind of compact set is below them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported
from estero.engine.kernels import pool
from estero.engine.store.arena import Arena
from estero.engine.store.schema import new


@pool
class Roots(NamedTuple):
    """Roots of compact sets, in order of `event` (their end).

    They stand for the complex events below `root` that start at or after `oldest`. Valid until the recognizer
    continues.
    """

    event: NDArray[np.int64]
    root: NDArray[np.int32]
    oldest: NDArray[np.int64]

    def part(self, first: int, last: int) -> Roots:
        """The roots from number `first` to before number `last`."""
        return Roots(self.event[first:last], self.root[first:last], self.oldest[first:last])

    def chosen(self, places: NDArray[np.int64]) -> Roots:
        """The roots with these ascending numbers."""
        return Roots(self.event[places], self.root[places], self.oldest[places])


def new_reported(capacity: int) -> Reported:
    """An empty pool for `capacity` roots."""
    return new(Reported, capacity)


def roots_of(reported: Reported, *, copied: bool = False) -> Roots:
    """The roots reported so far: valid until the kernel goes on, or for longer if `copied`."""
    roots = Roots(reported.event, reported.root, reported.oldest).part(0, int(reported.size[0]))
    return Roots(roots.event.copy(), roots.root.copy(), roots.oldest.copy()) if copied else roots


def by_end(roots: Roots) -> tuple[NDArray[np.int64], list[int]]:
    """The ends of `roots`, each once; roots bounds[i] … bounds[i + 1] - 1 are those of end i."""
    begins = np.ones(roots.event.size + 1, np.bool_)
    np.not_equal(roots.event[1:], roots.event[:-1], out=begins[1:-1])
    bounds = np.flatnonzero(begins)
    return roots.event[bounds[:-1]], bounds.tolist()


def ranks_of_ends(roots: Roots, nodes: Arena, *, last: bool) -> NDArray[np.int64]:
    """The number of ends of a root's start that are later, or earlier if not `last`, for each root.

    All complex events below a root must have one start; `nodes` are those of the compact set.
    """
    start = nodes.start[roots.root]
    order = np.lexsort((-roots.event if last else roots.event, start))
    begins = np.diff(start[order], prepend=-1) != 0
    distinct = np.cumsum(begins | (np.diff(roots.event[order], prepend=-1) != 0))
    ranks = np.empty(start.size, np.int64)
    ranks[order] = distinct - np.maximum.accumulate(np.where(begins, distinct, 0))
    return ranks


def counts_by_end(
    roots: Roots, limit: int | None, count: Callable[[Roots, int | None], list[int]]
) -> tuple[NDArray[np.int64], list[int]]:
    """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`.

    `count` gives the number of complex events of each root, exact or at least `limit`.
    """
    ends, bounds = by_end(roots)
    counts = count(roots, limit)
    if ends.size < len(counts):  # else there is one root at each end
        counts = [sum(counts[a:b]) for a, b in pairwise(bounds)]
    return ends, capped(counts, limit)


def capped(numbers: list[int], limit: int | None) -> list[int]:
    """The numbers, none of them above `limit`."""
    return numbers if limit is None else [min(number, limit) for number in numbers]
