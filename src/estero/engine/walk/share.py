"""Sharing an enumeration among processes that each hold the compact set (distributed-cea, 4).

Every process counts each root and takes one contiguous range of its indexes, so they need no messages. The
chapter counts all paths below a root, in a word; here only those inside the window are counted, and numbers
have any size. Remainders are dealt in turn, by the number of complex events before, so that two shares of a
whole stream differ by at most one complex event, whatever the sizes of its roots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORD = 1 << 62
"""More than is ever enumerated: the ranges of kernels are cut here."""


@dataclass(frozen=True, slots=True)
class Share:
    """One of `of` shares: `number` is 0 … of - 1. Raises ValueError for any other number."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if self.of >= _WORD:
            raise ValueError(f"there are at most {_WORD - 1} shares, not {self.of}")
        if self.of < 1:
            raise ValueError(f"the number of shares must be at least 1, not {self.of}")
        if not 0 <= self.number < self.of:
            last = self.of - 1
            raise ValueError(f"there is no share {self.number}: shares are numbered from 0 to {last}")

    def size_of(self, count: int) -> int:
        """The number of `count` items in this share, if they are dealt to all shares in turn."""
        return (count + self.of - 1 - self.number) // self.of

    def range_of(self, count: int) -> tuple[int, int]:
        """The range of this share of `count` items, (first, behind the last); shares are in order."""
        even, rest = divmod(count, self.of)
        first = self.number * even + min(self.number, rest)
        return first, first + even + (self.number < rest)


class Part(NamedTuple):
    """The size[i] complex events of root number place[i] from index first[i] on.

    place int64[k], ascending; first, size > 0: int64[k], or objects where a number passes 2**62.
    """

    place: NDArray[np.int64]
    first: NDArray[Any]
    size: NDArray[Any]

    @property
    def total(self) -> int:
        """The number of these complex events."""
        return sum(self.size.tolist())

    def by_end(self, ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """(end, number of complex events in this part), for the ends int64[r] of all roots."""
        end, number = -1, 0
        for here, size in zip(ends[self.place].tolist(), self.size.tolist(), strict=True):
            if here != end and number:
                yield end, number
                number = 0
            end, number = here, number + size
        if number:
            yield end, number

    def at(self, indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(root number, index below it) of the complex events with these indexes in the part."""
        after = list(accumulate(self.size.tolist()))
        for index in indexes:
            row = bisect_right(after, index)
            before = after[row - 1] if row else 0
            yield int(self.place[row]), int(self.first[row]) + index - before


class Dealer:
    """Deals the complex events of one root after the other, and keeps the ranges of one share.

    `dealt` is the number dealt before, at which the dealing of remainders continues.
    """

    def __init__(self, share: Share, dealt: int = 0) -> None:
        self._share = share
        self._turn = dealt % share.of

    def deal(self, ends: NDArray[np.int64], counts: Sequence[int], limit: int | None = None) -> Part:
        """The ranges of this share; of each end the first `limit` complex events are dealt.

        ends int64[r], not falling; counts exact, or at least `limit`. All shares are dealt the same roots in
        the same order; in how many calls makes no difference, if none begins between two roots of one end.
        """
        dealt = _within_limit(ends, counts, limit)
        number, of = self._share.number, self._share.of
        even, rest = dealt // of, dealt % of
        turns = (np.cumsum(rest) - rest + self._turn) % of
        self._turn = (self._turn + int(rest.sum())) % of
        place = (number - turns) % of
        size = even + (place < rest)
        kept = np.flatnonzero(size)
        first = place * even + np.minimum(place, rest)
        return Part(kept, first[kept], size[kept])


WHOLE = Share(0, 1)
"""All that is dealt."""

NO_RANGES = np.empty(0, np.int64), np.empty(0, np.int64)
"""The ranges for kernels if everything is wanted."""


def for_kernels(part: Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(skip, take) int64[k]: skip is -1 if it exceeds a word; a take is cut beyond any practical size."""
    skip, take = (np.minimum(column, _WORD).astype(np.int64) for column in (part.first, part.size))
    skip[skip == _WORD] = -1
    return skip, take


def _within_limit(ends: NDArray[np.int64], counts: Sequence[int], limit: int | None) -> NDArray[Any]:
    """The number of complex events of each root that are among the first `limit` of its end."""
    if limit is None or not counts:
        return np.array(counts, np.int64 if max(counts, default=0) < _WORD else object)
    first = [min(count, limit) for count in counts]
    fits = max(limit, sum(first)) < _WORD
    numbers: NDArray[Any] = np.array(first, np.int64 if fits else object)
    before = np.cumsum(numbers) - numbers
    begins = np.flatnonzero(np.diff(ends, prepend=ends[0] - 1))
    before -= np.repeat(before[begins], np.diff([*begins.tolist(), ends.size]))
    within: NDArray[Any] = np.minimum(numbers, np.maximum(limit - before, 0))
    return within
