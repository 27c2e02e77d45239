"""Compact sets of complex events that end in one batch, and the known facts about their ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.engine.walk.matches import Matches, chosen
from estero.engine.walk.roots import Roots
from estero.engine.walk.share import Part, Share


@dataclass(frozen=True, slots=True)
class EndedSets:
    """Compact sets of complex events that end in one batch; `position` is the stream position of each end."""

    roots: Roots
    position: NDArray[np.int64]
    sifted: list[Matches] | None = None
    """The answers among them, if they had to be known before the next event (CONSUME BY)."""
    part: Part | None = None
    """The requested part of the complex events, if that is a share of them."""
    suppressed: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """The ends, and how many complex events were left out before the first one there, if LIMIT … PER has
    chosen.
    """
    store: EventStore | None = None
    """The events, if they are stored separately from those of the window."""

    def at(self, places: NDArray[np.intp]) -> EndedSets:
        """The sets of the roots at these places, which have all roots of an end or none."""
        if places.size == self.roots.event.size:
            return self
        roots, sifted = self.roots.chosen(places), self.sifted
        if sifted is not None:
            here = (chosen(part, np.flatnonzero(np.isin(part.end, roots.event))) for part in sifted)
            sifted = [part for part in here if part.start.size]
        return replace(self, roots=roots, position=self.position[places], sifted=sifted)

    def positions_of(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of some of the ends, in any order; fast if equal ones are adjacent."""
        begins = np.ones(ends.size, np.bool_)
        np.not_equal(ends[1:], ends[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        positions = self.position[np.searchsorted(self.roots.event, ends[first])]
        return np.repeat(positions, np.diff(first, append=ends.size))


class EndBounds(NamedTuple):
    """The ends of compact sets; end i has those from number bounds[i] to before number bounds[i + 1].

    before(i) is the exact number of complex events at ends 0 … i - 1.
    """

    bounds: list[int]
    before: Callable[[int], int]

    @property
    def total(self) -> int:
        """The number of complex events at all ends."""
        return self.before(len(self.bounds) - 1)

    def roots_of(self, end: int) -> range:
        """The numbers of the compact sets of an end."""
        return range(self.bounds[end], self.bounds[end + 1])

    def with_index(self, index: int, share: Share, dealt: int) -> int:
        """The end of the complex event with an index in a share; `dealt` were dealt before to all shares."""
        ends = range(len(self.bounds) - 1)
        return bisect_right(ends, index, key=lambda end: share.size_of(dealt + self.before(end + 1)))
