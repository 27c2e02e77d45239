"""Compact sets of run nodes and ED-index lists: enumerating, seeking, exact counts (chain-CEA, Lemma 11).

A complex event is a chain of run nodes from its end backwards; each fits some of the entries of a list. These
entries are found one by one, each by one `find_next`, and the next one is a choice for later: so the number
of steps between two complex events is the number of events of the second one.

A node counts the entries that fit it by running sums (`list_counts`). In addition to the words there is the
rounded sum of everything in the list, which no difference makes inexact. To know only whether there are
enough, a lower bound is used as long as that will do: without a window exact numbers get as long as the
stream.

Lists have no places to jump to: in seeking, for each event the entries before the right one are skipped one
by one, which takes far less time than enumerating their complex events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, SEEK
from estero.engine.kernels import INT64S, Maybe, inlined, kernel
from estero.engine.store.arena import NONE
from estero.engine.walk.counter import FITS, Counter, Place
from estero.engine.walk.enumeration import STEPS, Asked, Walk, go_on, write_back
from estero.engine.walk.list_counts import (
    ListCounts,
    Lists,
    caught_up,
    count_of,
    count_run_nodes,
    new_list_counts,
    next_entry,
    nothing_alike,
)
from estero.engine.walk.matches import Matches


@inlined
def leave(walk, choices, entry, owner, depth):  # type: ignore[no-untyped-def]
    """Pushes a choice: an entry that fits run node `owner`, and the number of items above it.

    Without an entry it is the node itself. Returns the number of choices.
    """
    walk.choice[4 * choices] = entry
    walk.choice[4 * choices + 1] = owner
    walk.choice[4 * choices + 2] = depth
    return choices + 1


@inlined
def descend_chain(lists, oldest, walk, choices, most):  # type: ignore[no-untyped-def]  # noqa: ARG001 - as for each kind
    """Goes down a chain of run nodes from the top choice; see `enumeration.go_on`."""
    nodes = lists.nodes
    choices -= 1
    entry = walk.choice[4 * choices]
    owner = walk.choice[4 * choices + 1]
    depth = walk.choice[4 * choices + 2]
    above = depth
    capacity = walk.event.size
    longest = min(capacity, most)
    code = DONE
    while True:
        if depth >= longest or choices == capacity:
            code = GROW if max(depth, choices) == capacity else FULL
            choices = leave(walk, choices, entry, owner, depth)
            break
        if entry != NONE:
            following = next_entry(lists, owner, entry)
            if following != NONE:
                choices = leave(walk, choices, following, owner, depth)
            owner = lists.entries.node[entry]
        walk.event[depth] = nodes.event[owner]
        walk.marks[depth] = nodes.mark[owner]
        depth += 1
        entry = nodes.head[owner]
        if entry == NONE:
            break
    walk.cursor[STEPS] += depth - above
    return code, choices, depth, nodes.event[owner]


@inlined
def seek_chain(lists, counts, root, oldest, skip, walk):  # type: ignore[no-untyped-def]  # noqa: ARG001 - as for each kind
    """Goes to the complex event number `skip` of a root, leaving choices for those after it."""
    if counts is None:
        return DONE, leave(walk, 0, NONE, root, 0)
    nodes = lists.nodes
    node = root
    depth = 0
    choices = 0
    code = DONE
    if skip != 0:
        _, most = count_of(lists, counts, root)
        if skip < 0 or not most < FITS:
            code = SEEK
            skip = 0
    while skip > 0:
        if max(depth, choices) == walk.event.size:
            code = GROW
            break
        walk.event[depth] = nodes.event[node]
        walk.marks[depth] = nodes.mark[node]
        depth += 1
        entry = nodes.head[node]
        number, _ = count_of(lists, counts, lists.entries.node[entry])
        while np.int64(number) <= skip:
            skip -= np.int64(number)
            entry = next_entry(lists, node, entry)
            number, _ = count_of(lists, counts, lists.entries.node[entry])
        following = next_entry(lists, node, entry)
        if following != NONE:
            choices = leave(walk, choices, following, node, depth)
        node = lists.entries.node[entry]
    return code, leave(walk, choices, NONE, node, depth)


@kernel(Lists, Maybe(ListCounts), Asked, Walk, Matches, INT64S)
def walk_chains(lists, counts, asked, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """The walk over chains of run nodes; see `enumeration.go_on`."""
    return go_on(lists, counts, asked, walk, matches, sizes, seek_chain, descend_chain, write_back)


class ListCounter(Counter[Lists]):
    """Counts of run nodes.

    Sums of entries are kept, numbers of nodes are not: nodes that only end are soon replaced by others.
    """

    walk: ClassVar[Callable[..., int]] = staticmethod(walk_chains)
    count: ClassVar[Callable[..., int]] = staticmethod(count_run_nodes)

    def __init__(self, subsets: int) -> None:
        super().__init__()
        self._subsets = subsets
        self._large: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """Discards all counts, after nodes and entries have been renumbered."""
        super().forget()
        self.counts: Any = new_list_counts(self._subsets)
        self._alike = nothing_alike()
        self._large.clear()
        self._large_done = 0

    def catch_up(self, lists: Lists) -> None:
        """Counts the entries that are new."""
        self.counts, self._alike = caught_up(self.counts, self._alike, lists)

    @property
    def long_numbers(self) -> int:
        """The number of sums that had to be computed as Python integers."""
        return len(self._large)

    def numbers(self, compact: Lists, roots: NDArray[np.int32], oldest: int) -> list[int]:  # noqa: ARG002 - there is no window
        """See `Counter`."""
        self._sum_up(compact)
        return list(self._numbers_of(compact, roots))

    def _sum_up(self, lists: Lists) -> None:
        """Computes sums beyond a word, oldest first."""
        counts, subsets, done = self.counts, self._subsets, self.counts.done_entries
        fresh = np.flatnonzero(~(counts.most[self._large_done : done] < FITS)) + self._large_done
        widths = lists.widths[lists.entries.place[fresh]].tolist()
        same, numbers = counts.same[fresh].tolist(), self._numbers_of(lists, lists.entries.node[fresh])
        for entry, width, before, number in zip(fresh.tolist(), widths, same, numbers, strict=True):
            for subset in range(1 << width):
                total = number if before[subset] == NONE else number + self._sum(before[subset], subset)
                self._large[entry * subsets + subset] = total
        self._large_done = done

    def _number(self, lists: Lists, node: int) -> int:
        """The exact number of a run node."""
        return next(self._numbers_of(lists, np.array([node])))

    def _sum(self, entry: int, subset: int) -> int:
        """A running sum."""
        number = self._large.get(entry * self._subsets + subset)
        return self.counts.exact.item(entry, subset) if number is None else number

    def _numbers_of(self, lists: Lists, nodes: NDArray[np.int32]) -> Iterator[int]:
        """The exact number of each run node; the sums that it reads must be known by then."""
        places = lists.nodes.place[nodes]
        rows = np.where(nodes < lists.nodes.size[0], nodes, nodes - lists.nodes.mark.size)
        newest = self.counts.newest[rows].tolist()
        subsets = np.where(places == NONE, 0, 1 << lists.widths[places]).tolist()
        for entries, size in zip(newest, subsets, strict=True):
            total = 0
            for subset in range(size):
                if entries[subset] != NONE:
                    number = self._sum(entries[subset], subset)
                    total += -number if subset.bit_count() % 2 else number
            yield total if size else 1

    def seek(self, compact: Lists, root: int, oldest: int, index: int) -> Place:  # noqa: ARG002 - there is no window
        """The place of the complex event number `index` of a root, in the order of enumeration."""
        nodes, entries = compact.nodes, compact.entries
        choices: list[tuple[int, int, int]] = []
        items: list[tuple[int, int]] = []
        node = root
        while index:
            items.append((int(nodes.event[node]), int(nodes.mark[node])))
            entry = int(nodes.head[node])
            while index >= (number := self._number(compact, entries.node[entry])):
                index -= number
                entry = int(next_entry(compact, node, entry))
            following = int(next_entry(compact, node, entry))
            if following != NONE:
                choices.append((following, node, len(items)))
            node = int(entries.node[entry])
        choices.append((NONE, node, len(items)))
        return Place(np.array(choices), np.array(items, np.int64).reshape(-1, 2))
