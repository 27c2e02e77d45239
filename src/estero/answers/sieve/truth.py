"""Three-valued logic over arrays, and conditions on tuples of events, folded for each instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.answers.sieve.marked import Integers
from estero.errors import LimitExceeded

Truths = NDArray[np.int8]
"""One of the three for each: AND is the minimum, OR the maximum, NOT is ``2 - truth``."""

Number = TypeVar("Number", bound=np.integer)

FALSE, UNKNOWN, TRUE = np.int8(0), np.int8(1), np.int8(2)

BLOCK: Final = 1 << 18
"""Tuples that are evaluated at once: bounds the memory of a condition on several variables."""

_MOST = 2.0**62


def as_number(truth: bool | None) -> np.int8:
    """The number of one truth value."""
    return UNKNOWN if truth is None else TRUE if truth else FALSE


def fold(values: NDArray[Number], owners: Integers, into: NDArray[Number]) -> None:
    """Each of `into` becomes the smallest of its `values` and itself: of truths, all of them by AND.

    `owners` are the places in `into` that `values` belong to, ascending.
    """
    if len(owners) == 0:
        return
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    places = owners[starts]
    into[places] = np.minimum(into[places], np.minimum.reduceat(values, starts))


def tuples(sizes: Sequence[Integers], instances: int) -> Iterator[tuple[Integers, list[Integers]]]:
    """All tuples of one element of each of `sizes`, in blocks of bounded size: (instance, element of each).

    ``sizes[v][i]`` is how many elements there are in instance i for the v-th of the tuple. Instances ascend.
    Without `sizes` each instance has the one empty tuple.
    """
    if all(bool((size == 1).all()) for size in sizes):
        for low in range(0, instances, BLOCK):
            instance = np.arange(low, min(low + BLOCK, instances))
            yield instance, [np.zeros_like(instance) for _ in sizes]
        return
    counts = np.ones(instances, np.int64)
    roughly = np.ones(instances)
    for size in sizes:
        counts, roughly = counts * size, roughly * size
    if roughly.sum() > _MOST:
        raise LimitExceeded(f"a condition has about {roughly.sum():.1e} tuples of events to look at")
    stops = np.cumsum(counts)
    for low in range(0, int(stops[-1]), BLOCK):
        number = np.arange(low, min(low + BLOCK, int(stops[-1])))
        instance = np.searchsorted(stops, number, side="right")
        rest = number - (stops - counts)[instance]
        places: list[Integers] = []
        for size in reversed(sizes):
            rest, place = np.divmod(rest, size[instance])
            places.append(place)
        yield instance, places[::-1]
