"""The pass over the events that serves a query: decided once, when its plan is made.

Explanations, the opening of a plan and recognition all match on the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Listed(Enum):
    """What is enumerated at an end, among the complex events of a start that has one answer."""

    NOTHING = "nothing"
    """States alone decide where a start ends; the answer is read again, from its start to its end."""
    BEST = "best"
    """One complex event: states keep the best run of each start."""
    ALL = "all"
    """Every complex event, among which one is chosen afterwards."""


@dataclass(frozen=True, slots=True)
class AtEnd:
    """Complex events are enumerated at their ends; those that a strategy leaves out are dropped afterwards.

    If they are `sieved`, they are checked or compared with each other after the enumeration. If they are
    `tallied`, the automaton alone counts them, without the compact set.
    """

    sieved: bool = False
    tallied: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs are compared as they go on, so that only what MAX, NEXT or LAST keeps is enumerated at an end.

    If they are `sieved`, complex events that differ only in hidden labels or starts are given once.
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
