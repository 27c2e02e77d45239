"""The stage of shares: each of several processes gets the results that are dealt to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from estero.engine.walk.roots import by_end
from estero.engine.walk.share import Dealer, Share
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.stage import Stage

_DEALT_AT_ONCE = 1 << 14
"""The most complex events that are counted ahead of the reading, unless one end has more."""


class DealStage(Stage[EndedSets]):
    """Deals one share: all shares of a stream together are its answers, each of them once.

    Sizes differ by at most one complex event. If filters remain to be checked, this holds for the complex
    events before them; if filters, or LIMIT after them, compare the complex events of an end, whole ends are
    dealt.
    """

    def __init__(self, reader: SetReader, share: Share) -> None:
        self._reader = reader
        self._dealer = Dealer(share)
        self._at_once = 1

    def with_reader(self, reader: SetReader) -> DealStage:
        """This stage, for compact sets that `reader` reads from now on."""
        self._reader = reader
        return self

    def push(self, item: EndedSets) -> Iterator[EndedSets]:
        """The share of `item`, few ends after few, in order.

        How many depends on their size, so that results that are never read are not counted, either.
        """
        sieve = self._reader.sieve
        if item.sifted is None and (sieve is None or sieve.one_by_one):
            yield from self._one_by_one(item)
            return
        ends, _ = by_end(item.roots)
        own = ends[self._dealer.deal(ends, [1] * ends.size).place]
        yield item.at(np.flatnonzero(np.isin(item.roots.event, own)))

    def _one_by_one(self, item: EndedSets) -> Iterator[EndedSets]:
        """Deals complex events, not ends."""
        recognizer, limit = self._reader.recognizer, self._reader.limit
        ends, bounds = by_end(item.roots)
        first = 0
        while first < ends.size:
            last = min(first + self._at_once, ends.size)
            here = slice(bounds[first], bounds[last])
            few = EndedSets(item.roots.part(here.start, here.stop), item.position[here])
            counts = recognizer.counts(few.roots, limit)
            many = sum(counts) > _DEALT_AT_ONCE
            self._at_once = max(1, self._at_once // 4) if many else 2 * self._at_once
            yield replace(few, part=self._dealer.deal(few.roots.event, counts, limit))
            first = last
