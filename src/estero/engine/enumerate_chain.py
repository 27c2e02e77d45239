"""Complex events out of run nodes and ED-index lists, with output-linear delay (chain-CEA, Lemma 11).

Iterative. A *choice* is an entry that a run node also goes with, and the path down to that node. Choices are
found one by one, each by one `find_next`, and each leads to a complex event: the steps between two of these
are as many as the second one has events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.arena import NONE
from estero.engine.ed_index import EdEntries, Sequences, find_next
from estero.engine.enumerate import DONE, FULL, GROW, Enumeration, Matches
from estero.engine.jit import kernel
from estero.engine.roots import Roots
from estero.engine.run_chain import RunNodes

ROOT, NODE, OWNER, ENTRY, CHOICES, DEPTH, TAKEN, STEPS = range(8)
"""Places in a walk's cursor: next root; run node at hand, or entry at hand and the node whose it is (NONE:
none); choices left; items so far; complex events already given for the end at hand; nodes visited in all."""


class ChainWalk(NamedTuple):
    """Where an enumeration stands: cursor; choices: entry, owner, depth; items, from the end backwards."""

    cursor: NDArray[np.int64]
    choice_entry: NDArray[np.int32]
    choice_owner: NDArray[np.int32]
    choice_depth: NDArray[np.int32]
    item_event: NDArray[np.int64]
    item_marks: NDArray[np.int32]


def new_chain_walk(depth: int = 256) -> ChainWalk:
    """A walk before the first root, with room for complex events of `depth` marked events."""
    cursor = np.zeros(8, np.int64)
    cursor[[NODE, OWNER, ENTRY]] = NONE
    entry, owner, choice_depth, marks = (np.empty(depth, np.int32) for _ in range(4))
    return ChainWalk(cursor, entry, owner, choice_depth, np.empty(depth, np.int64), marks)


class ChainEnumeration(Enumeration[ChainWalk]):
    """The complex events of roots that are run nodes, at most `limit` for each end.

    What is inserted into the lists meanwhile changes nothing.
    """

    def __init__(
        self,
        nodes: RunNodes,
        entries: EdEntries,
        sequences: Sequences,
        widths: NDArray[np.int32],
        roots: Roots,
        limit: int | None = None,
        first_batch: int = 256,
    ) -> None:
        super().__init__(new_chain_walk, roots.event, first_batch)
        self._read = nodes, entries, sequences, widths
        self._roots = roots
        self._limit = limit or 0

    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        roots = self._roots
        code: int = walk_chains(*self._read, roots.root, roots.event, self._limit, self._walk, matches, sizes)
        return code


@kernel
def walk_chains(nodes, entries, sequences, widths, roots, ends, limit, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """Fills `matches` with complex events of the roots (run nodes), at most `limit` for each end (0: all).

    sizes[0] counts complex events and sizes[1] items. Returns DONE, GROW (the walk is full) or FULL
    (matches are). Invariant: the items, then what the entry at hand or the node at hand leads to, are
    complex events; with neither at hand the items are one, or there are none.
    """
    cursor = walk.cursor
    root = cursor[ROOT]
    node = cursor[NODE]
    owner = cursor[OWNER]
    entry = cursor[ENTRY]
    choices = cursor[CHOICES]
    depth = cursor[DEPTH]
    taken = cursor[TAKEN]
    steps = cursor[STEPS]
    count = sizes[0]
    items = sizes[1]
    room = walk.item_event.size
    code = DONE
    while True:
        if entry != NONE:
            if choices == room:
                code = GROW
                break
            following = find_next(entries, sequences, entry, widths[nodes.place[owner]], nodes.values, owner)
            if following != NONE:
                walk.choice_entry[choices] = following
                walk.choice_owner[choices] = owner
                walk.choice_depth[choices] = depth
                choices += 1
            node = entries.node[entry]
            entry = NONE
        if node != NONE:
            if depth == room:
                code = GROW
                break
            walk.item_event[depth] = nodes.event[node]
            walk.item_marks[depth] = nodes.mark[node]
            depth += 1
            steps += 1
            owner = node
            entry = nodes.head[node]
            node = NONE
            if entry != NONE:
                continue
        if depth > 0:
            if count == matches.start.size or items + depth > matches.event.size:
                code = FULL
                break
            for place in range(depth - 1, -1, -1):
                matches.event[items] = walk.item_event[place]
                matches.marks[items] = walk.item_marks[place]
                items += 1
            matches.start[count] = walk.item_event[depth - 1]
            matches.end[count] = ends[root - 1]
            count += 1
            matches.offsets[count] = items
            taken += 1
            depth = 0
            if limit > 0 and taken >= limit:
                choices = 0
        if choices > 0:
            choices -= 1
            entry = walk.choice_entry[choices]
            owner = walk.choice_owner[choices]
            depth = walk.choice_depth[choices]
        elif root < roots.size:
            if root > 0 and ends[root] != ends[root - 1]:
                taken = 0
            if limit == 0 or taken < limit:
                node = roots[root]
            root += 1
        else:
            break
    cursor[ROOT] = root
    cursor[NODE] = node
    cursor[OWNER] = owner
    cursor[ENTRY] = entry
    cursor[CHOICES] = choices
    cursor[DEPTH] = depth
    cursor[TAKEN] = taken
    cursor[STEPS] = steps
    sizes[0] = count
    sizes[1] = items
    return code
