"""Ranks of supports under NEXT and LAST: a bit for each event that has marked something in a partition."""

from __future__ import annotations

from estero.engine.kernels import inlined, step
from estero.engine.store.arena import NONE

NO_ORDER, NEXT, LAST = 0, 1, 2
"""The best support of those of one end: any; that of the earliest events; that of the latest."""

BITS = 62
"""The number of events that have bits of their own."""

LARGEST_STEP = 1 << BITS - 1

FIRST_STEP = {NO_ORDER: 0, NEXT: LARGEST_STEP, LAST: 1}
"""The amount that the first mark adds to a rank; 0 says that ranks must be renumbered first."""


@step
def ranked(elements, keys, groups, partitions, partition, ranks):  # type: ignore[no-untyped-def]
    """Writes the ranks of a partition's elements to ranks[1:], as far as they fit; returns their number."""
    count = 0
    group = partitions.first[partition]
    while group != NONE:
        key = groups.first[group]
        while key != NONE:
            element = keys.first[key]
            while element != NONE:
                count += 1
                if count < ranks.size:
                    ranks[count] = elements.rank[element]
                element = elements.next[element]
            key = keys.next[key]
        group = groups.next[group]
    return count


@step
def renumber_ranks(elements, keys, groups, partitions, partition, order, ranks, count):  # type: ignore[no-untyped-def]
    """Renumbers the ranks of a partition, so that the next marks have bits of their own.

    A rank has a bit for each event that marked something in the partition since, which stands below the older
    ones under NEXT and above them under LAST. The empty support stays 0. `ranks` has the `count` ranks, as
    `ranked` writes them.
    """
    ranks[0] = 0
    _sort(ranks, count + 1)
    last = 0
    for place in range(1, count + 1):
        if ranks[place] != ranks[last]:
            last += 1
            ranks[last] = ranks[place]
    bits = 0
    while last >> bits > 0:
        bits += 1
    free = BITS - bits if order == NEXT else 0
    group = partitions.first[partition]
    while group != NONE:
        key = groups.first[group]
        while key != NONE:
            element = keys.first[key]
            while element != NONE:
                elements.rank[element] = _place_of(ranks, last, elements.rank[element]) << free
                element = elements.next[element]
            key = keys.next[key]
        group = groups.next[group]
    partitions.step[partition] = 1 << (free - 1 if order == NEXT else bits)


@inlined
def _sort(values, count):  # type: ignore[no-untyped-def]
    """Sorts the first `count` in ascending order (Shell's sort: they are few)."""
    gap = count // 2
    while gap > 0:
        for place in range(gap, count):
            value = values[place]
            at = place
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 2


@inlined
def _place_of(values, last, value):  # type: ignore[no-untyped-def]
    """The place of a value among the first last + 1, which are distinct and ascending."""
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
