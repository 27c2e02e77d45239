"""The counters of recognizers, and the size of their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from estero.recognize.ended_sets import EndedSets


class Extent(NamedTuple):
    """The part of a stream that is needed to continue, as a snapshot would have it now.

    `events` are kept because future complex events may mark them; `partitions` are those in which something
    is open, or the keys by which runs wait; `nodes` are those of compact sets, `bytes` all of that in memory.
    `states` are the states of the automaton known so far, and `compactions` how often unneeded memory was
    given back.
    """

    events: int = 0
    partitions: int = 0
    nodes: int = 0
    bytes: int = 0
    states: int = 0
    compactions: int = 0

    @classmethod
    def of_all(cls, extents: Iterable[Extent]) -> Extent:
        """The sums of several."""
        return cls(*map(sum, zip(cls(), *extents, strict=True)))


class Meter:
    """The numbers of one recognizer since it was made, and where its time went, in seconds."""

    def __init__(self) -> None:
        self.relevant = 0
        self.answers = 0
        self.shed_partitions = self.shed_events = 0
        self.by_rule: Counter[str] = Counter()
        self._classify = self._recognize = 0.0
        self._since = 0.0

    def begin(self) -> None:
        """Begins the classification of events."""
        self._since = perf_counter()

    def classified(self, relevant: int) -> None:
        """Ends their classification, with the number of relevant ones, and begins their recognition."""
        self._classify += self._passed()
        self.relevant += relevant

    def recognized(self, answers: int) -> None:
        """Ends their recognition, with the number of events at which something ended."""
        self._recognize += self._passed()
        self.answers += answers

    def recognized_of(self, rules: Mapping[str, int]) -> None:
        """As `recognized`, by rule."""
        self.recognized(sum(rules.values()))
        self.by_rule.update(rules)

    def _passed(self) -> float:
        """The seconds since the last call, or since the meter began."""
        before, self._since = self._since, perf_counter()
        return self._since - before

    def shed(self, partitions: int, events: int) -> None:
        """Counts partitions that were dropped, and events that only they needed."""
        self.shed_partitions += partitions
        self.shed_events += events

    def shown(self, known: Mapping[str, int], extent: Extent) -> dict[str, Any]:
        """All numbers, those that are `known` of events first."""
        return {
            **known,
            "relevant": self.relevant,
            "answers": self.answers,
            "open_events": extent.events,
            "partitions": extent.partitions,
            "nodes": extent.nodes,
            "states": extent.states,
            "compactions": extent.compactions,
            "state_bytes": extent.bytes,
            "shed_partitions": self.shed_partitions,
            "shed_events": self.shed_events,
            "seconds": {"classify": self._classify, "recognize": self._recognize},
        }


def number_of_ends(sets: Iterable[EndedSets]) -> int:
    """The number of events at which complex events of these compact sets end."""
    return sum(
        int(np.unique(ended.position).size) if ended.position.size > 1 else ended.position.size
        for ended in sets
    )
