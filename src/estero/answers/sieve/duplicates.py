"""Complex events that were found twice: different runs show the same start, end and visible marks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.answers.measures.marked import Integers, Mask
from estero.engine.walk.matches import Matches

Words = NDArray[np.uint64]

_SALTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


class Duplicates:
    """Drops complex events seen before from the chunks of a run; an end may span several chunks."""

    def __init__(self) -> None:
        self._end = -1
        self._seen = Seen()

    def without(self, matches: Matches, last: int) -> Integers:
        """The rows of a chunk that are new; `last` is the end with which the chunk ends."""
        hashes = hashes_of(matches)
        is_new = first_of_each(hashes)
        going_on = np.flatnonzero(matches.end == self._end)
        is_new[going_on] &= ~self._seen.has(hashes[:, going_on])
        if last != self._end:
            self._end, self._seen = last, Seen()
        self._seen.add(hashes[:, is_new & (matches.end == last)])
        return np.flatnonzero(is_new)


class Seen:
    """The complex events seen at one end position, as hashes of 128 bits: 16 bytes for each.

    They are kept in sorted runs, each at least twice as long as the next, so that n of them are merged in O(n
    log n) and one is looked up in O(log² n).
    """

    def __init__(self) -> None:
        self._runs: list[Words] = []

    def add(self, hashes: Words) -> None:
        """Adds hashes that are not there yet; uint64 [2, n]."""
        if not hashes.shape[1]:
            return
        run = hashes[:, np.lexsort(hashes[::-1])]
        while self._runs and self._runs[-1].shape[1] < 2 * run.shape[1]:
            run = np.concatenate([self._runs.pop(), run], axis=1)
            run = run[:, np.lexsort(run[::-1])]
        self._runs.append(run)

    def has(self, hashes: Words) -> Mask:
        """Which of the hashes are there, bool [n]."""
        present = np.zeros(hashes.shape[1], np.bool_)
        for first, second in self._runs:
            place = np.searchsorted(first, hashes[0])
            asked = np.flatnonzero(place < len(first))
            while len(asked):  # more than once only if first halves are equal by chance
                at = place[asked]
                same = first[at] == hashes[0, asked]
                present[asked] |= same & (second[at] == hashes[1, asked])
                place[asked] += 1
                asked = asked[same & ~present[asked] & (place[asked] < len(first))]
        return present


def hashes_of(matches: Matches) -> Words:
    """uint64 [2, m]: two independent hashes of start, end and marks of each match."""
    hashes = np.empty((2, len(matches.start)), np.uint64)
    for half, salt in enumerate(_SALTS):
        items = _mixed(matches.event.view(np.uint64), salt) ^ matches.marks.astype(np.uint64)
        sums = np.zeros(len(items) + 1, np.uint64)
        np.cumsum(_mixed(items, salt), out=sums[1:])
        total = sums[matches.offsets[1:]] - sums[matches.offsets[:-1]]
        start = _mixed(matches.start.view(np.uint64), salt ^ 1)
        end = _mixed(matches.end.view(np.uint64), salt ^ 2)
        hashes[half] = _mixed(total ^ _mixed(start ^ end, salt), salt)
    return hashes


def first_of_each(hashes: Words) -> Mask:
    """Which hashes are the first of their kind, bool [n]."""
    order = np.argsort(hashes[0])
    first, second = hashes[:, order]
    same = first[1:] == first[:-1]
    is_first = np.ones(len(order), np.bool_)
    if not same.any():
        return is_first
    if (second[1:] != second[:-1])[same].any():  # halves that are equal by chance
        order = np.lexsort(hashes[::-1])
        first, second = hashes[:, order]
        same = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    begins = np.flatnonzero(~np.concatenate([[False], same]))
    is_first[:] = False
    is_first[np.minimum.reduceat(order, begins)] = True
    return is_first


def _mixed(values: Words, salt: int) -> Words:
    """The finalizer of SplitMix64 (Steele, Lea, Flood, 2014), after adding `salt`."""
    mixed = values + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
