"""Complex events out of run nodes and ED-index lists, with output-linear delay (chain-CEA, Lemma 11).

Iterative. A *choice* is an entry that a run node also goes with, and the path down to that node. Choices are
found one by one, each by one `find_next`, and each leads to a complex event: the steps between two of these
are as many as the second one has events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import kernel
from estero.engine.runs.run_chain import RunNodes
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import EdEntries, Sequences, find_next
from estero.engine.walk.count_chain import ChainCounter, ChainCounts
from estero.engine.walk.enumerate import DONE, FULL, GROW, Enumeration, Matches
from estero.engine.walk.roots import Roots
from estero.engine.walk.seek_chain import seek_chain
from estero.engine.walk.share import Part

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


class ChainRanges(NamedTuple):
    """Ranges of roots: of root i the complex events from number skip[i] on, take[i] of them.

    Both int64[r], or of no length where everything is wanted; skip is -1 where it passes a word. `counts` are
    those of a `ChainCounter`.
    """

    skip: NDArray[np.int64]
    take: NDArray[np.int64]
    counts: ChainCounts


class ChainEnumeration(Enumeration[ChainWalk]):
    """Complex events of roots that are run nodes, which `counter` counts; see `Enumeration`.

    What is inserted into the lists meanwhile changes nothing.
    """

    def __init__(
        self,
        nodes: RunNodes,
        entries: EdEntries,
        sequences: Sequences,
        widths: NDArray[np.int32],
        counter: ChainCounter,
        roots: Roots,
        *,
        limit: int | None = None,
        part: Part | None = None,
        first_batch: int = 256,
    ) -> None:
        super().__init__(new_chain_walk, roots, limit=limit, part=part, first_batch=first_batch)
        self._read = nodes, entries
        self._lists = sequences, widths
        self._counter = counter

    def ranges(self) -> ChainRanges:
        """What the walk is told of ranges and counts."""
        known = self._counter.known if self._part is None else self._counter.kept_up(*self._read)
        return ChainRanges(*self._ranges, known)

    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        read = *self._read, *self._lists, self._roots.root, self._roots.event
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            code: int = walk_chains(*read, self._limit, self.ranges(), self._walk, matches, sizes)
        return code

    def _seek(self, place: int, index: int) -> None:
        at = self._counter.seek(*self._read, int(self._roots.root[place]), index)
        walk = self._made_room(len(at.nodes))
        depth, choices = len(at.nodes), len(at.rest)
        nodes, _ = self._read
        walk.item_event[:depth], walk.item_marks[:depth] = nodes.event[at.nodes], nodes.mark[at.nodes]
        for choice, (entry, owner, above) in enumerate(at.rest):
            walk.choice_entry[choice], walk.choice_owner[choice] = entry, owner
            walk.choice_depth[choice] = above
        walk.cursor[:] = new_chain_walk(1).cursor
        walk.cursor[[ROOT, CHOICES, DEPTH]] = place + 1, choices, depth


@kernel
def walk_chains(nodes, entries, sequences, widths, roots, ends, limit, ranges, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """Fills `matches` with complex events of the roots (run nodes), at most `limit` for each end (0: all).

    sizes[0] counts complex events and sizes[1] items. Returns DONE, GROW (the walk is full), FULL
    (matches are) or SEEK (the next root's range begins beyond a word). Invariant: the items, then what the
    entry at hand or the node at hand leads to, are complex events; with neither at hand the items are one, or
    there are none.
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
    in_ranges = ranges.take.size > 0
    if in_ranges and root > 0:
        limit = ranges.take[root - 1]
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
        elif root < roots.size and in_ranges:
            limit = ranges.take[root]
            taken = 0
            code, owner, entry, choices, depth = seek_chain(
                nodes, entries, sequences, ranges.counts, widths, roots[root], ranges.skip[root], walk
            )
            if code != DONE:
                entry = NONE
                choices = 0
                depth = 0
                break
            root += 1
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
