"""The stage of LONGEST and SHORTEST: one complex event of each start passes, once it is known which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from estero.answers.sieve.starts import Starts
from estero.classify.column_names import POSITION
from estero.engine.store.checks import Arrays
from estero.engine.walk.matches import Matches, chosen
from estero.engine.walk.roots import Roots, ranks_of_ends
from estero.language.tree.query import Strategy
from estero.recognize.batch_columns import numbers_of
from estero.recognize.consumed import Consumed
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.stage import Stage
from estero.recognize.state_bytes import batch_as_array, batch_of_array

_OF_CANDIDATES: Final = "events_of_candidates"


class StartStage(Stage[EndedSets]):
    """Chooses among the complex events of each start, except those that are `consumed` before they end."""

    def __init__(self, starts: Starts, reader: SetReader, consumed: Consumed | None) -> None:
        self._starts = starts
        self._reader = reader
        self._plan = reader.plan
        self._consumed = consumed

    def push(self, item: EndedSets) -> Iterable[EndedSets]:
        """Collects the complex events that may be chosen for their starts; yields nothing yet."""
        self._add(item.roots)
        return ()

    def advance(self, until: int | None) -> Iterator[EndedSets]:
        """The complex events chosen for the starts that are decided."""
        decided = self._starts.decided(until)
        if decided is not None:
            ends, first = np.unique(decided.matches.end, return_index=True)
            roots = Roots(ends, np.zeros(ends.size, np.int32), np.zeros(ends.size, np.int64))
            position = decided.position[first]
            yield EndedSets(roots, position, sifted=[decided.matches], store=decided.store)

    def idle(self, time: int) -> bool:
        """Whether no start is open."""
        del time
        return self._starts.idle

    def snapshot(self) -> Arrays:
        """The candidates and their events."""
        candidates, events = self._starts.arrays()
        return {**candidates, _OF_CANDIDATES: batch_as_array(events)}

    def resume(self, arrays: Arrays) -> None:
        """Takes the candidates out of `arrays`."""
        events = batch_of_array(arrays.pop(_OF_CANDIDATES))
        self._starts.resume(arrays, events, self._reader.marks)

    def _add(self, roots: Roots) -> None:
        """Adds those complex events of `roots` that may be chosen for their start."""
        reader, starts = self._reader, self._starts
        if self._plan.selects_in_kernel:  # those below a root have one start
            nodes = reader.recognizer.runs.compact
            if not self._plan.best_per_start:
                ranks = ranks_of_ends(roots, nodes, last=self._plan.strategy is Strategy.LONGEST)
                if reader.sieve is not None:
                    self._add_passing(roots, ranks)
                    return
                roots = roots.chosen(np.flatnonzero(ranks == 0))
            elif starts.wanted is not None:
                begun = reader.store.take(nodes.start[roots.root], [POSITION])
                roots = roots.chosen(np.flatnonzero(starts.wants(numbers_of(begun, POSITION))))
        if not roots.event.size:
            return
        for matches in reader.passing(roots):
            starts.add(self._seen(matches), reader.store)

    def _seen(self, matches: Matches) -> Matches:
        """The complex events whose starts are not forgotten before their ends."""
        if self._consumed is None or not matches.start.size:
            return matches
        store = self._reader.store
        until = self._consumed.until(store.take(matches.start, self._consumed.columns))
        ends = numbers_of(store.take(matches.end, [POSITION]), POSITION)
        return chosen(matches, np.flatnonzero(ends <= until))

    def _add_passing(self, roots: Roots, ranks: NDArray[np.int64]) -> None:
        """Adds for each start what passes at its best ends, trying twice as many ends in each round."""
        reader = self._reader
        begun = reader.recognizer.runs.compact.start[roots.root]
        passed, low, high = np.zeros(begun.size, np.bool_), 0, 1
        while (asked := np.flatnonzero(~passed & (low <= ranks) & (ranks < high))).size:
            for matches in reader.passing(roots.chosen(asked)):
                self._starts.add(matches, reader.store)
                passed |= np.isin(begun, matches.start)
            low, high = high, 2 * high
