"""Counts of complex events by run node: running sums along the lists of an ED-index (chain-CEA).

A node counts the entries that fit it by inclusion and exclusion over the sets of attributes. For each set, an
entry knows the previous one with the same values, and so their sum; a node knows the newest one with its
values. A count then takes a time that depends on the automaton alone. All of this is computed when a count is
requested: entries and nodes are visited in the order of their events, and each node sees what was inserted
before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLOATS, INT, UINT64S, Grid, inlined, kernel, pool
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import EdEntries, Sequences, find_next
from estero.engine.store.hash_index import (
    FREE,
    START,
    HashIndex,
    claim,
    find,
    heap_of,
    new_index,
    put,
    rebuilt,
)
from estero.engine.store.run_nodes import RunNodes
from estero.engine.store.schema import counters, derived, grown, new, scratch
from estero.engine.walk.roots import Roots

_CERTAIN = 2.0**52
"""The greatest lower bound: up to here sums of floats are exact."""

_SUMMED = 8
"""The number of entries that a lower bound adds up. One event may have several, so that two are too few."""

_NODES, _ENTRIES, _EVENT = 0, 1, 2
"""Places in `ListCounts.done`."""

_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


@pool
class Lists(NamedTuple):
    """Run nodes, and the lists that they read; widths int32[places]: how many attributes must differ."""

    nodes: RunNodes
    entries: EdEntries
    sequences: Sequences
    widths: NDArray[np.int32]


@pool
class ListCounts(NamedTuple):
    """The known sums of nodes and entries. Rows of nodes that only end are the last ones (see `row_of`).

    ====== ======= ================= ================================================================
    array  dtype   shape             meaning
    ====== ======= ================= ================================================================
    newest int32   [nodes, 2 ** d]   the newest entry that a node sees with its values of a set
    same   int32   [entries, 2 ** d] the entry before this one in its list with the same values of a set
    bottom int32   [entries]         the first entry ever of its list, which tells the list
    exact  uint64  [entries, 2 ** d] running sums along `same`, modulo 2**64
    most   float64 [entries]         not less than any of them
    least  float64 [entries]         not more than what its node alone counts
    done   int64   [3]               nodes that wait and entries that are done; the last event among them
    ====== ======= ================= ================================================================
    """

    newest: Grid[np.int32] = scratch(length="nodes", axes=("subsets",))
    same: Grid[np.int32] = derived(length="entries", axes=("subsets",))
    bottom: NDArray[np.int32] = derived(length="entries")
    exact: Grid[np.uint64] = derived(length="entries", axes=("subsets",))
    most: NDArray[np.float64] = derived(length="entries")
    least: NDArray[np.float64] = derived(length="entries")
    done: NDArray[np.int64] = counters("nodes", "entries", "event")

    @property
    def done_entries(self) -> int:
        """The number of entries that are done."""
        return int(self.done[_ENTRIES])


def new_list_counts(subsets: int) -> ListCounts:
    """Empty counts."""
    counts = new(ListCounts, nodes=0, entries=0, subsets=subsets)
    counts.done[_EVENT] = NONE
    return counts


def caught_up(counts: ListCounts, alike: HashIndex, lists: Lists) -> tuple[ListCounts, HashIndex]:
    """The counts including all new nodes and entries, which follow those that are done.

    `alike` leads from a list and values to the newest entry with these.
    """
    nodes, entries, subsets = counts.newest.shape[0], counts.most.size, counts.newest.shape[1]
    used = int(lists.entries.size[0])
    if lists.nodes.size.sum() > nodes or used > entries:
        rows = max(nodes, lists.nodes.mark.size)
        bigger = grown(counts, nodes=rows, entries=max(entries, lists.entries.node.size))
        waiting = int(counts.done[_NODES])
        bigger.newest[:waiting] = counts.newest[:waiting]
        bigger.newest[rows - nodes + waiting :] = counts.newest[waiting:]
        counts = bigger
    fresh = max(used - counts.done_entries, 0) * (subsets - 1)
    if 2 * (alike.used[0] + fresh) > alike.words.shape[0]:
        alike = rebuilt(alike, 0, fresh)
    _count_all(lists, counts, alike)
    return counts, alike


def nothing_alike() -> HashIndex:
    """An index of no values."""
    return new_index(1)


@inlined
def row_of(lists, counts, node):  # type: ignore[no-untyped-def]
    """The row of a node in `newest`: nodes that only end are numbered from its end, whatever its size."""
    if node < lists.nodes.size[0]:
        return node
    return counts.newest.shape[0] - lists.nodes.mark.size + node


@inlined
def _key_of(bottom, subset, values, row):  # type: ignore[no-untyped-def]
    """A hash of 128 bits of a list and of values[row] of a set of attributes."""
    one = np.uint64(bottom)
    two = one
    for attribute in range(values.shape[1]):
        if (subset >> attribute) & 1 == 1:
            one = (one ^ (one >> _SHIFT)) * _FIRST
            one = (one ^ (one >> _SHIFT)) * _SECOND + values[row, attribute, 0]
            two = (two ^ (two >> _SHIFT)) * _SECOND
            two = (two ^ (two >> _SHIFT)) * _FIRST + values[row, attribute, 1]
    return one, two


@inlined
def _see(lists, counts, alike, node, row):  # type: ignore[no-untyped-def]
    """Fills in what a node sees, which is everything inserted so far."""
    counts.done[_EVENT] = max(counts.done[_EVENT], lists.nodes.event[node])
    place = lists.nodes.place[node]
    if place == NONE:
        return
    top = lists.nodes.top[node]
    counts.newest[row, 0] = top
    for subset in range(1, 1 << lists.widths[place]):
        one, two = _key_of(counts.bottom[top], subset, lists.nodes.values, node)
        slot = find(alike, subset, one, two)
        counts.newest[row, subset] = NONE if slot == FREE else heap_of(alike, slot)


@inlined
def _sum_up(lists, counts, alike, entry):  # type: ignore[no-untyped-def]
    """Inserts an entry, with its sums."""
    entries = lists.entries
    before = entries.before[entry]
    bottom = entry if before == NONE else counts.bottom[before]
    counts.bottom[entry] = bottom
    exact, most = count_of(lists, counts, entries.node[entry])
    for subset in range(1 << lists.widths[entries.place[entry]]):
        same = before
        if subset > 0:
            one, two = _key_of(bottom, subset, entries.values, entry)
            slot = claim(alike, subset, one, two, 0)
            same = heap_of(alike, slot) if alike.entries[slot, START] >= 0 else NONE
            put(alike, slot, subset, entry, 0)
        counts.same[entry, subset] = same
        counts.exact[entry, subset] = exact
        if same != NONE:
            counts.exact[entry, subset] += counts.exact[same, subset]
    counts.most[entry] = most + (counts.most[before] if before != NONE else 0.0)
    counts.least[entry] = bound_of(lists, counts, entries.node[entry])


@kernel(Lists, ListCounts, HashIndex)
def _count_all(lists, counts, alike):  # type: ignore[no-untyped-def]
    """Continues after what is done; needs the capacity that `caught_up` provides.

    Invariant: before an entry is put in, all nodes of its event and of those before have seen what is there.
    """
    nodes, entries, _, _ = lists
    node = counts.done[_NODES]
    entry = counts.done[_ENTRIES]
    capacity = nodes.mark.size
    ended = nodes.size[1]
    while ended > 0 and nodes.event[capacity - ended] > counts.done[_EVENT]:
        ended -= 1
    while True:
        event = np.int64(-1)
        if entry < entries.size[0]:
            event = nodes.event[entries.node[entry]]
        while node < nodes.size[0] and (event < 0 or nodes.event[node] <= event):
            _see(lists, counts, alike, node, node)
            node += 1
        while ended < nodes.size[1] and (event < 0 or nodes.event[capacity - ended - 1] <= event):
            ended += 1
            _see(lists, counts, alike, capacity - ended, counts.newest.shape[0] - ended)
        if event < 0:
            break
        _sum_up(lists, counts, alike, entry)
        entry += 1
    counts.done[_NODES] = node
    counts.done[_ENTRIES] = entry


@kernel(Lists, INT, INT)
@inlined
def next_entry(lists, node, entry):  # type: ignore[no-untyped-def]
    """The entry that fits a node after `entry`, or NONE."""
    width = lists.widths[lists.nodes.place[node]]
    return find_next(lists.entries, lists.sequences, entry, width, lists.nodes.values, node)


@inlined
def count_of(lists, counts, node):  # type: ignore[no-untyped-def]
    """The number of complex events that end with a node, modulo 2**64, and an upper bound on it."""
    place = lists.nodes.place[node]
    if place == NONE:
        return np.uint64(1), 1.0
    row = row_of(lists, counts, node)
    exact = np.uint64(0)
    for subset in range(1 << lists.widths[place]):
        entry = counts.newest[row, subset]
        if entry == NONE:
            continue
        sign = 0
        for attribute in range(lists.widths[place]):
            sign ^= (subset >> attribute) & 1
        if sign == 0:
            exact += counts.exact[entry, subset]
        else:
            exact -= counts.exact[entry, subset]
    return exact, counts.most[lists.nodes.top[node]]


@inlined
def bound_of(lists, counts, node):  # type: ignore[no-untyped-def]
    """A lower bound on the number of a node: that of the first `_SUMMED` entries that fit it."""
    entry = lists.nodes.head[node]
    if entry == NONE:
        return 1.0
    least = 0.0
    for _ in range(_SUMMED):
        if entry == NONE:
            break
        least += counts.least[entry]
        entry = next_entry(lists, node, entry)
    return min(least, _CERTAIN)


@kernel(Lists, ListCounts, Roots, UINT64S, FLOATS, FLOATS)
def count_run_nodes(lists, counts, roots, exact, most, least):  # type: ignore[no-untyped-def]
    """See `Counter.count`; there is no rim, as there is no window."""
    for place in range(roots.root.size):
        exact[place], most[place] = count_of(lists, counts, roots.root[place])
        least[place] = bound_of(lists, counts, roots.root[place])
    return 0
