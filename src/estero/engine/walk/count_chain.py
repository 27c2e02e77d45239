"""Exact counts of run nodes without enumerating, and the complex event with a given index.

A node counts what it goes with: by inclusion and exclusion over the sets of attributes, each of which has a
running sum along the entries with the same values (`EdEntries.same`). So a count costs a time that depends
on the automaton alone. Sums are words modulo 2**64; beside them stands the sum of everything in the list,
rounded, which no difference makes inexact: while that fits the word is right, and beyond there are Python
integers. Who asks only whether there are enough is answered by a bound from below as long as that will do:
without a window exact numbers get as long as the stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import inlined, kernel
from estero.engine.runs.run_chain import RunNodes
from estero.engine.store.arena import NONE, copy_columns
from estero.engine.store.ed_index import EdEntries, Sequences, find_next
from estero.engine.walk.count import FITS

_CERTAIN = 2.0**52
"""Where bounds from below end: up to here sums of floats are exact."""

_SUMMED = 8
"""Entries that a bound from below adds up. One event may have several entries, so that two are too few."""


class ChainCounts(NamedTuple):
    """What is known of each entry.

    exact uint64[entries, 2 ** d]: running sums modulo 2**64; most float64[entries]: not less than any of
    them; least float64[entries]: not more than what its node alone counts.
    """

    exact: NDArray[np.uint64]
    most: NDArray[np.float64]
    least: NDArray[np.float64]


@inlined
def count_of(nodes, counts, widths, node):  # type: ignore[no-untyped-def]
    """The complex events that end with a node, modulo 2**64, and a number that is at least as many."""
    place = nodes.place[node]
    if place == NONE:
        return np.uint64(1), 1.0
    exact = np.uint64(0)
    for subset in range(1 << widths[place]):
        entry = nodes.newest[node, subset]
        if entry == NONE:
            continue
        sign = 0
        for attribute in range(widths[place]):
            sign ^= (subset >> attribute) & 1
        if sign == 0:
            exact += counts.exact[entry, subset]
        else:
            exact -= counts.exact[entry, subset]
    return exact, counts.most[nodes.newest[node, 0]]


@inlined
def bound_of(nodes, entries, sequences, counts, widths, node):  # type: ignore[no-untyped-def]
    """A number that is at most that of a node: of the first `_SUMMED` entries it goes with."""
    entry = nodes.head[node]
    if entry == NONE:
        return 1.0
    least = 0.0
    for _ in range(_SUMMED):
        if entry == NONE:
            break
        least += counts.least[entry]
        entry = find_next(entries, sequences, entry, widths[nodes.place[node]], nodes.values, node)
    return min(least, _CERTAIN)


@kernel
def count_entries(nodes, entries, sequences, counts, widths, first):  # type: ignore[no-untyped-def]
    """Fills the sums of the entries from `first` on; those before are done.

    Invariant: what a node goes with is done before the node's own entries.
    """
    for entry in range(first, entries.size[0]):
        exact, most = count_of(nodes, counts, widths, entries.node[entry])
        for subset in range(1 << widths[entries.place[entry]]):
            before = entries.same[entry, subset]
            counts.exact[entry, subset] = exact
            if before != NONE:
                counts.exact[entry, subset] += counts.exact[before, subset]
        before = entries.same[entry, 0]
        counts.most[entry] = most + (counts.most[before] if before != NONE else 0.0)
        counts.least[entry] = bound_of(nodes, entries, sequences, counts, widths, entries.node[entry])


@kernel
def count_nodes(nodes, entries, sequences, counts, widths, roots, exact, most, least):  # type: ignore[no-untyped-def]
    """Fills exact uint64, most and least float64 for each root: `exact` is right if `most` is below FITS."""
    for place in range(roots.size):
        exact[place], most[place] = count_of(nodes, counts, widths, roots[place])
        least[place] = bound_of(nodes, entries, sequences, counts, widths, roots[place])


@kernel
def pick_entry(nodes, entries, sequences, counts, widths, node, index):  # type: ignore[no-untyped-def]
    """The entry of a node below which complex event number `index` is, and its number there.

    For nodes whose count fits; linear in the entries before it.
    """
    entry = nodes.head[node]
    while True:
        number, _ = count_of(nodes, counts, widths, entries.node[entry])
        if index < number:
            return entry, index
        index -= number
        entry = find_next(entries, sequences, entry, widths[nodes.place[node]], nodes.values, node)


@kernel
def entry_after(nodes, entries, sequences, widths, node, entry):  # type: ignore[no-untyped-def]
    """The entry that a node goes with after `entry`, or NONE."""
    return find_next(entries, sequences, entry, widths[nodes.place[node]], nodes.values, node)


class ChainPlace(NamedTuple):
    """A complex event of a root, and what comes after it.

    `nodes` are its run nodes from the end backwards, `rest` the entries that were left for later, each with
    the node that goes with it and the number of nodes down to that one.
    """

    nodes: list[int]
    rest: list[tuple[int, int, int]]


class ChainCounter:
    """Counts of run nodes, kept up as the lists grow; `forget` when entries are renumbered."""

    def __init__(self, widths: NDArray[np.int32], sequences: Sequences) -> None:
        self._widths = widths
        self._sequences = sequences
        self._counts = _new_counts(0, 1)
        self._done = 0
        self._large: dict[tuple[int, int], int] = {}
        self._large_done = 0

    @property
    def long_sums(self) -> int:
        """How many sums had to be worked out as Python integers."""
        return len(self._large)

    def forget(self) -> None:
        """Numbers of nodes and entries have changed: start again."""
        self._done = self._large_done = 0
        self._large.clear()

    def of_roots(
        self, nodes: RunNodes, entries: EdEntries, roots: NDArray[np.int32], enough: int | None = None
    ) -> list[int]:
        """The exact number of complex events of each root, or `enough` where there are more."""
        self._catch_up(nodes, entries)
        exact, most, least = np.zeros(roots.size, np.uint64), np.zeros(roots.size), np.zeros(roots.size)
        parts = (nodes, entries, self._sequences, self._counts, self._widths)
        with np.errstate(over="ignore"):  # words wrap around
            count_nodes(*parts, roots, exact, most, least)
        numbers: list[int] = exact.tolist()
        for place in np.flatnonzero(~(most < FITS)).tolist():
            if enough is not None and least[place] >= enough:
                numbers[place] = enough
                continue
            self._catch_up_large(nodes, entries)
            numbers[place] = self._number(nodes, int(roots[place]))
        return numbers if enough is None else [min(number, enough) for number in numbers]

    def path(self, nodes: RunNodes, entries: EdEntries, root: int, index: int) -> list[tuple[int, int]]:
        """The (event, label-set id) pairs, ascending, of the complex event number `index` of a root.

        In the order of enumeration. For each of its events the entries before the right one are passed.
        """
        items = self.seek(nodes, entries, root, index).nodes
        return [(int(nodes.event[node]), int(nodes.mark[node])) for node in reversed(items)]

    def seek(self, nodes: RunNodes, entries: EdEntries, root: int, index: int) -> ChainPlace:
        """Where the complex event number `index` of a root is."""
        self.of_roots(nodes, entries, np.array([root], np.int32))
        place = ChainPlace([root], [])
        parts = (nodes, entries, self._sequences, self._counts, self._widths)
        while nodes.place[node := place.nodes[-1]] != NONE:
            if self._fits(nodes, node):
                with np.errstate(over="ignore"):
                    entry, rest = pick_entry(*parts, node, np.uint64(index))
                index = int(rest)
            else:
                entry = int(nodes.head[node])
                while index >= (number := self._number(nodes, int(entries.node[entry]))):
                    index -= number
                    entry = entry_after(nodes, entries, self._sequences, self._widths, node, entry)
            following = int(entry_after(nodes, entries, self._sequences, self._widths, node, entry))
            if following != NONE:
                place.rest.append((following, node, len(place.nodes)))
            place.nodes.append(int(entries.node[entry]))
        return place

    def kept_up(self, nodes: RunNodes, entries: EdEntries) -> ChainCounts:
        """The counts of all entries."""
        self._catch_up(nodes, entries)
        return self._counts

    @property
    def known(self) -> ChainCounts:
        """The counts of the entries that were there when something was counted last."""
        return self._counts

    def _fits(self, nodes: RunNodes, node: int) -> bool:
        newest = int(nodes.newest[node, 0])
        return bool(nodes.place[node] == NONE or self._counts.most[newest] < FITS)

    def _number(self, nodes: RunNodes, node: int) -> int:
        """The exact number of a node; the large sums below must be done."""
        place = int(nodes.place[node])
        if place == NONE:
            return 1
        total = 0
        for subset in range(1 << int(self._widths[place])):
            entry = int(nodes.newest[node, subset])
            if entry != NONE:
                number = self._sum(entry, subset)
                total += -number if subset.bit_count() % 2 else number
        return total

    def _sum(self, entry: int, subset: int) -> int:
        if entry == NONE:
            return 0
        if self._counts.most[entry] < FITS:
            return int(self._counts.exact[entry, subset])
        return self._large[entry, subset]

    def _catch_up(self, nodes: RunNodes, entries: EdEntries) -> None:
        used = int(entries.size[0])
        if self._counts.most.size < used:
            bigger = _new_counts(entries.node.size, entries.same.shape[1])
            copy_columns(self._counts, bigger, self._done)
            self._counts = bigger
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            count_entries(nodes, entries, self._sequences, self._counts, self._widths, self._done)
        self._done = used

    def _catch_up_large(self, nodes: RunNodes, entries: EdEntries) -> None:
        """Sums beyond a word, oldest first."""
        if self._large_done == self._done:
            return
        fresh = np.flatnonzero(~(self._counts.most[self._large_done : self._done] < FITS))
        for entry in (self._large_done + fresh).tolist():
            number = self._number(nodes, int(entries.node[entry]))
            for subset in range(1 << int(self._widths[entries.place[entry]])):
                before = int(entries.same[entry, subset])
                self._large[entry, subset] = number + self._sum(before, subset)
        self._large_done = self._done


def _new_counts(capacity: int, subsets: int) -> ChainCounts:
    return ChainCounts(np.zeros((capacity, subsets), np.uint64), np.zeros(capacity), np.zeros(capacity))
