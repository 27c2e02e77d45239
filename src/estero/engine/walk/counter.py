"""Exact counts of any size without enumerating, of every kind of compact set (docs/architecture.md).

Kernels count in words modulo 2**64 and keep a rounded float next to each: while that is below `FITS` the word
is correct. Larger numbers are computed as Python integers, only for the parts that are requested.

Inside a window only the *rim* needs counts of its own: nodes with some starts that have expired and some that
have not. All other nodes have one number for good.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import groupby
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import inlined, pool, step
from estero.engine.store.schema import counters, data, grown, new
from estero.engine.walk.roots import Roots

FITS = 2.0**62
"""Float counts below this are known to fit a signed 64-bit word in spite of their rounding."""
SURE = FITS / 2
"""Where a float count is at least FITS, the exact one is at least this."""

SUMS = 2.0**52
"""Sums of counts below this are exact as floats, and known to be below 2**53 in spite of their rounding."""

SHORT = 64
"""The most nodes of the rim that are visited anew for each root, without noting their counts."""

S = TypeVar("S", bound=tuple[Any, ...])
"""The pools of a compact set: a named tuple."""


Counted = tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]
"""For each root, the count modulo 2**64, the rounded count, and a lower bound (see `Counter.count`)."""


@pool
class Counts(NamedTuple):
    """The known counts of each node (or product).

    exact uint64: its complex events modulo 2**64; rough float64: the same, rounded; earliest int64: the first
    start below. rim_exact and rim_rough are the counts inside the window at hand, where `stamp` int64 is that
    window's. window int64[2]: the `oldest` of the window at hand, and its stamp.
    """

    exact: NDArray[np.uint64] = data(0)
    rough: NDArray[np.float64] = data(0)
    earliest: NDArray[np.int64] = data(0)
    rim_exact: NDArray[np.uint64] = data(0)
    rim_rough: NDArray[np.float64] = data(0)
    stamp: NDArray[np.int64] = data(0)
    window: NDArray[np.int64] = counters("oldest", "stamp")


def new_counts(window: NDArray[np.int64]) -> Counts:
    """Empty counts, with a window that others may share."""
    return new(Counts, 0)._replace(window=window)


def grown_counts(counts: Counts, capacity: int) -> Counts:
    """The same counts in arrays for `capacity` nodes."""
    return grown(counts, rows=capacity)._replace(window=counts.window)


@inlined
def enter(counts, oldest):  # type: ignore[no-untyped-def]
    """Makes the window from `oldest` on the current one; no count on its rim is known."""
    if counts.window[0] != oldest:
        counts.window[0] = oldest
        counts.window[1] += 1


@inlined
def set_count(counts, node, exact, rough, earliest):  # type: ignore[no-untyped-def]
    """Notes the count of a node outside of any window."""
    counts.exact[node] = exact
    counts.rough[node] = rough
    counts.earliest[node] = earliest


@inlined
def set_rim_count(counts, node, exact, rough):  # type: ignore[no-untyped-def]
    """Notes the count of a node on the rim of the window at hand."""
    counts.rim_exact[node] = exact
    counts.rim_rough[node] = rough
    counts.stamp[node] = counts.window[1]


@inlined
def is_done(counts, node):  # type: ignore[no-untyped-def]
    """Whether a node on the rim has been counted in the current window."""
    return counts.stamp[node] == counts.window[1]


@step
def known(counts, node, start, oldest):  # type: ignore[no-untyped-def]
    """The count inside the window, exact and rough, of a node of max_start `start`; its rim must be done."""
    if start < oldest:
        return np.uint64(0), 0.0
    if counts.earliest[node] >= oldest:
        return counts.exact[node], counts.rough[node]
    return counts.rim_exact[node], counts.rim_rough[node]


@inlined
def waits(counts, node, start, oldest):  # type: ignore[no-untyped-def]
    """Whether a node is on the rim and not counted yet."""
    return start >= oldest and counts.earliest[node] < oldest and counts.stamp[node] != counts.window[1]


def known_word(counts: Counts, node: int, oldest: int) -> int | None:
    """The count of a node that has something inside the window, None if it is not a word."""
    if counts.earliest.item(node) >= oldest:
        return counts.exact.item(node) if counts.rough.item(node) < FITS else None
    done = counts.window.item(0) == oldest and counts.stamp.item(node) == counts.window.item(1)
    return counts.rim_exact.item(node) if done and counts.rim_rough.item(node) < FITS else None


class Place(NamedTuple):
    """A complex event below a root: the position of a walk before it (see `enumeration.Walk` for the rows).

    choices int64[., up to 4], items int64[., 2] (event, label-set id), agenda int64[., 2].
    """

    choices: NDArray[np.int64]
    items: NDArray[np.int64]
    agenda: NDArray[np.int64] = np.empty((0, 2), np.int64)


class Counter(ABC, Generic[S]):
    """Counts of one compact set, kept up to date as it grows; call `forget` when its nodes are renumbered.

    `steps` is the number of nodes on rims counted so far.
    """

    walk: ClassVar[Callable[..., int]]
    """The kernel that enumerates (see `enumeration.go_on`)."""
    count: ClassVar[Callable[..., int]]
    """The kernel that counts: ``count(compact, counts, roots, exact, rough, least)`` fills for each root the
    number of its complex events modulo 2**64 (uint64), rounded, and a bound from below (float64); returns how
    many nodes on rims it counted. `exact` is right where `rough` is below FITS."""
    counts: Any
    """The argument of kernels: the counts of the nodes that existed at the last count."""

    def __init__(self) -> None:
        self.steps: int = 0
        self._window = np.array([-1, 0])

    def forget(self) -> None:
        """Discards all counts, after nodes have been renumbered."""
        self._window[0] = -1

    @abstractmethod
    def catch_up(self, compact: S) -> None:
        """Counts the nodes that are new."""

    def of_roots(self, compact: S, roots: Roots, enough: int | None = None) -> list[int]:
        """The exact number of complex events below each root that start at or after its `oldest`.

        If there are more than `enough`, it is that number.
        """
        self.catch_up(compact)
        return self._exact(compact, roots, self._counted(compact, roots), enough)

    def words(self, compact: S, roots: Roots) -> NDArray[np.uint64] | None:
        """The numbers of `of_roots`; None unless the float that is their sum is surely exact."""
        self.catch_up(compact)
        words, rough, _ = self._counted(compact, roots)
        return words if rough.sum() < SUMS else None

    def total(self, compact: S, roots: Roots) -> int:
        """The exact number of complex events below all roots together."""
        self.catch_up(compact)
        counted = self._counted(compact, roots)
        if counted[1].sum() < FITS:
            return int(counted[0].sum())
        return sum(self._exact(compact, roots, counted, None))

    def _exact(self, compact: S, roots: Roots, counted: Counted, enough: int | None) -> list[int]:
        """See `of_roots`."""
        words, rough, least = counted
        unknown = ~(rough < FITS)
        if enough is not None and enough < FITS:
            np.minimum(words, np.uint64(enough), out=words)
            words[unknown & (least >= enough)] = enough
            unknown &= least < enough
        numbers: list[int] = words.tolist()
        if not unknown.any():
            return numbers
        for oldest, places in groupby(np.flatnonzero(unknown).tolist(), roots.oldest.item):
            group = list(places)
            for place, number in zip(group, self.numbers(compact, roots.root[group], oldest), strict=True):
                numbers[place] = number if enough is None else min(number, enough)
        return numbers

    def _counted(self, compact: S, roots: Roots) -> Counted:
        """The results of `count`."""
        size = roots.root.size
        sums = np.zeros(size, np.uint64), np.zeros(size), np.zeros(size)
        self.steps += self.count(compact, self.counts, roots, *sums)
        return sums

    @abstractmethod
    def seek(self, compact: S, root: int, oldest: int, index: int) -> Place:
        """The place of the complex event number `index` below `root`, in the order of enumeration.

        This is what kernels do if numbers are words; no other complex event is visited.
        """

    @abstractmethod
    def numbers(self, compact: S, roots: NDArray[np.int32], oldest: int) -> list[int]:
        """The exact number of complex events below each root that start at or after `oldest`."""
