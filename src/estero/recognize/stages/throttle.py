"""The stage of LIMIT … PER: at most n complex events pass in an interval of time, counted at each end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from estero.classify.column_names import TIME
from estero.engine.store.checks import Arrays
from estero.engine.throttle import MOST_COUNTED, Throttle
from estero.engine.walk.matches import Matches, chosen, joined
from estero.engine.walk.roots import by_end
from estero.engine.walk.share import Part
from estero.recognize.batch_columns import numbers_of, side_by_side
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.stage import Stage

Integers = NDArray[np.int64]


class ThrottleStage(Stage[EndedSets]):
    """Lets through what a throttle admits; `keys` are the columns that tell partitions apart."""

    takes_single = True

    def __init__(self, throttle: Throttle, reader: SetReader, keys: Sequence[str]) -> None:
        self._throttle = throttle
        self._reader = reader
        self._keys = keys

    def push(self, item: EndedSets) -> Iterator[EndedSets]:
        """Yields the complex events let through, enumerated, and how many were left out before them."""
        sifted = item.sifted
        if sifted is None and self._reader.sieve is not None:
            sifted = list(self._reader.matches(item))
        admitted = self._counted(item) if sifted is None else self._listed(item, sifted)
        if admitted.sifted:
            yield admitted

    def idle(self, time: int) -> bool:
        """Whether no interval is open."""
        del time
        return self._throttle.idle

    def snapshot(self) -> Arrays:
        """The intervals."""
        return self._throttle.arrays()

    def resume(self, arrays: Arrays) -> None:
        """Takes the intervals out of `arrays`."""
        self._throttle.resume(arrays)

    def _counted(self, ended: EndedSets) -> EndedSets:
        """Lets complex events through that are not enumerated but counted."""
        recognizer, roots = self._reader.recognizer, ended.roots
        ends, bounds = by_end(roots)
        of_roots = np.array(recognizer.counts(roots, MOST_COUNTED), np.int64)
        rough = np.add.reduceat(of_roots.astype(np.float64), bounds[:-1])
        exact = np.minimum(np.add.reduceat(of_roots, bounds[:-1]), MOST_COUNTED)
        take, before = self._admitted(ended, ends, np.where(rough < MOST_COUNTED, exact, MOST_COUNTED))
        matches = list(self._reader.passing(roots, _first_of(bounds, of_roots, take)))
        return _given(ended, matches, (ends, before))

    def _listed(self, ended: EndedSets, sifted: list[Matches]) -> EndedSets:
        """Lets complex events through that are enumerated."""
        ends, _ = by_end(ended.roots)
        counts = np.zeros(ends.size, np.int64)
        for matches in sifted:
            np.add.at(counts, np.searchsorted(ends, matches.end), 1)
        take, before = self._admitted(ended, ends, counts)
        if sifted:
            together = joined(sifted)
            of_end = np.searchsorted(ends, together.end)
            place = np.arange(of_end.size) - np.searchsorted(of_end, of_end)
            sifted = [chosen(together, np.flatnonzero(place < take[of_end]))]
        return _given(ended, sifted, (ends, before))

    def _admitted(self, ended: EndedSets, ends: Integers, counts: Integers) -> tuple[Integers, Integers]:
        """How many are let through at each end, and how many were left out before."""
        events = (ended.store or self._reader.store).take(ends, [TIME, *self._keys])
        keys = side_by_side(events, self._keys) if self._keys else np.zeros((ends.size, 2), np.uint64)
        return self._throttle.admitted(keys, numbers_of(events, TIME), counts)


def _given(ended: EndedSets, matches: list[Matches], suppressed: tuple[Integers, Integers]) -> EndedSets:
    nonempty = [part for part in matches if part.start.size]
    return replace(ended, sifted=nonempty, suppressed=suppressed)


def _first_of(bounds: Sequence[int], counts: Integers, take: Integers) -> Part:
    """The first take[i] complex events of end i, which has the roots between bounds[i] and bounds[i + 1]."""
    sizes = np.diff(bounds)
    wanted = np.repeat(take, sizes)
    taken = np.minimum(counts, wanted)
    after = np.cumsum(taken)
    before = after - taken
    size = np.clip(wanted - (before - np.repeat(before[list(bounds[:-1])], sizes)), 0, taken)
    place = np.flatnonzero(size)
    return Part(place, np.zeros(place.size, np.int64), size[place])
