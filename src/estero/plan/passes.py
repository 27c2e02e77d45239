"""The pass over the events that serves a query: decided once, when its plan is made.

Explanations, what opens a plan and what recognizes by it match on the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Listed(Enum):
    """What is enumerated at an end, of the complex events of a start that has one answer."""

    NOTHING = "nothing"
    """States alone tell where a start ends; what is given is read once more, from its start to its end."""
    BEST = "best"
    """One complex event: states keep the best run of each start."""
    ALL = "all"
    """Every complex event, among which one is chosen afterwards."""


@dataclass(frozen=True, slots=True)
class AtEnd:
    """Complex events are enumerated at their ends; what a strategy leaves out is dropped behind that.

    If they are `sieved`, they are checked or compared with each other after they are enumerated. If they are
    `tallied`, the automaton alone counts them, without a look at the compact set.
    """

    sieved: bool = False
    tallied: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs are compared as they go on, so that only what MAX, NEXT or LAST keeps is enumerated at an end.

    If they are `sieved`, what hidden labels or starts alone tell apart is given once.
    """

    sieved: bool = False


@dataclass(frozen=True, slots=True)
class PerStart:
    """Each start has one answer, given when its window has passed (LONGEST, SHORTEST).

    If they are `sieved`, what is `listed` is checked before one is chosen. With `drops_overlaps` recognition
    itself drops what DISJOINT leaves out.
    """

    listed: Listed
    sieved: bool = False
    drops_overlaps: bool = False


Pass = AtEnd | Compared | PerStart
