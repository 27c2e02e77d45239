"""Circuits of long windows, linear in the events however long windows are.

Roots whose windows all reach over one event, the *middle*, make a block. One of their complex events starts
after the middle, where no window cuts, or it goes through a gate with all of its events up to the middle: an
*entry*, of which there are few. Above an entry no window cuts its complex events, either; below it they are
reversed, from the entry to their starts, so those that start at or after some event are a union that grows by
one start after the other, the last one first. A root has the pairs of both that its window admits. The order
is not that of enumeration.

This is the aggregation over sliding windows by two stacks, on the gates of automata (Tangwongsan, Hirzel,
Schneider and Wu, VLDB 2015, have it for values).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import BOTTOM, PREFER, UNION, Arena
from estero.engine.walk.circuit import GREATEST, Circuit, mark_above, mark_below
from estero.engine.walk.circuits import greatest, unfolded
from estero.engine.walk.counter import Counter
from estero.engine.walk.matches import offsets_of
from estero.engine.walk.roots import Roots

_LONG: Final = 256
"""The average number of roots of a block at which blocks begin to pay off."""
_ENTRIES: Final = 32
"""The most entries; with more, for example of many partitions, windows are short compared with partitions."""


class Block(NamedTuple):
    """A circuit, the gates of its roots int32, which roots these are, and where complex events start.

    `starts` are gates: each complex event has one of them. None where they are the gates without children.
    """

    circuit: Circuit
    gates: NDArray[np.int32]
    roots: slice
    starts: NDArray[np.intp] | None


def in_blocks(compact: Any, counter: Counter[Any], roots: Roots) -> Iterator[Block]:
    """The complex events below `roots` as circuits, in blocks where windows are long."""
    bounds = _bounds(compact, roots)
    if bounds is None:
        yield from (Block(*made, None) for made in unfolded(compact, counter, roots))
        return
    for first, last in pairwise(bounds):
        part = roots.part(first, last)
        middle = int(part.event[0])
        widest = Roots(part.event, part.root, np.full(last - first, part.oldest[0]))
        for circuit, gates, here in unfolded(compact, counter, widest):
            oldest = part.oldest[here]
            block = _block(circuit, gates, oldest, middle)
            whole = slice(first + here.start, first + here.stop)
            if block is not None:
                yield block._replace(roots=whole)
                continue
            cut = roots.part(whole.start, whole.stop)
            for apart, its, there in unfolded(compact, counter, cut):
                yield Block(apart, its, slice(whole.start + there.start, whole.start + there.stop), None)


def _bounds(compact: Any, roots: Roots) -> list[int] | None:
    """The beginnings of blocks, and the end of the last; None if they do not pay off or cannot be made."""
    oldest = roots.oldest
    if not isinstance(compact, Arena) or oldest.size < _LONG or (np.diff(oldest) < 0).any():
        return None
    if oldest[0] == oldest[-1] or (compact.kind[: compact.size[0]] <= PREFER).any():
        return None
    bounds = [0]
    while bounds[-1] < oldest.size:
        bounds.append(int(np.searchsorted(oldest, roots.event[bounds[-1]], "right")))
    return bounds if (len(bounds) - 1) * _LONG <= oldest.size else None


def _block(
    circuit: Circuit, gates: NDArray[np.int32], oldest: NDArray[np.int64], middle: int
) -> Block | None:
    """The circuit in which each root has only starts at its `oldest` or later; None with many entries."""
    size = circuit.event.size
    newest, _ = greatest(circuit, GREATEST, circuit.event, circuit.mark != UNION)
    early = newest <= middle
    owner = np.repeat(np.arange(size), np.diff(circuit.first))
    entered = np.zeros(size, np.bool_)
    entered[circuit.child[early[circuit.child] & ~early[owner]]] = True
    entered[gates[early[gates]]] = True
    entries = np.flatnonzero(entered)
    if entries.size > _ENTRIES:
        return None
    late = _cut(circuit, ~early | entered, entered)
    number = np.cumsum(~early | entered) - 1
    made = _Made()
    pairs: list[NDArray[np.int64]] = []  # a root, and a gate with some of its complex events
    leaves = (np.diff(late.first) == 0) & ~entered[~early | entered]
    starts = [made.above(late, leaves, number[gates], pairs)]
    for entry in entries.tolist():
        base, begin, begun = made.below(circuit, entry, middle)
        starts.append(begin)
        admitted = np.searchsorted(-begun, -oldest, "right")
        above = _only(late.event.size, number[entry])
        made.above(
            late,
            above,
            number[gates],
            pairs,
            beside=np.where(admitted, base + admitted - 1, -1),
            middle=middle,
        )
    return made.with_roots(pairs, gates.size, np.concatenate(starts))


def _only(size: int, gate: int) -> NDArray[np.bool_]:
    marked = np.zeros(size, np.bool_)
    marked[gate] = True
    return marked


def _cut(circuit: Circuit, kept: NDArray[np.bool_], ends: NDArray[np.bool_]) -> Circuit:
    """The gates that are kept, with the children that are; `ends` become events without mark or children."""
    size = circuit.event.size
    owner = np.repeat(np.arange(size), np.diff(circuit.first))
    both = kept[owner] & kept[circuit.child] & ~ends[owner]
    number = (np.cumsum(kept) - 1).astype(np.int32)
    degrees = np.bincount(owner[both], minlength=size)[kept]
    mark = np.where(ends, np.int32(BOTTOM), circuit.mark)[kept]
    event = np.where(ends, 0, circuit.event)[kept]
    return Circuit(event, mark, offsets_of(degrees).astype(np.int32), number[circuit.child[both]])


class _Made:
    """A circuit that is composed of parts, one after the other."""

    def __init__(self) -> None:
        self._parts: list[Circuit] = []
        self._size = 0

    def _add(self, part: Circuit) -> int:
        """Adds a circuit whose children are numbered within it; returns the number of its first gate."""
        base = self._size
        self._parts.append(part._replace(child=part.child + np.int32(base)))
        self._size += part.event.size
        return base

    def _add_gates(self, event: Any, mark: int, children: NDArray[np.int64], first: NDArray[np.int64]) -> int:
        """Adds gates whose children are numbered from the start of all; returns the number of the first."""
        base = self._size
        count = first.size - 1
        events = np.full(count, event, np.int64)
        marks = np.full(count, mark, np.int32)
        self._parts.append(Circuit(events, marks, first.astype(np.int32), children.astype(np.int32)))
        self._size += count
        return base

    def above(
        self,
        late: Circuit,
        leaves: NDArray[np.bool_],
        roots: NDArray[np.int64],
        pairs: list[NDArray[np.int64]],
        *,
        beside: NDArray[np.int64] | None = None,
        middle: int = 0,
    ) -> NDArray[np.intp]:
        """Adds what leads from roots to these leaves, and pairs each root with its gate.

        `beside` are the gates that go with those of roots, below a common gate; -1 for none. Returns the
        gates of the leaves.
        """
        kept = leaves.copy()
        mark_above(late, kept)
        part = _cut(late, kept, np.zeros(kept.size, np.bool_))
        if beside is not None:  # what an entry stands for is below
            part = part._replace(event=np.where(leaves[kept], middle, part.event))
        base = self._add(part)
        number = base + np.cumsum(kept) - 1
        has = kept[roots] if beside is None else kept[roots] & (beside >= 0)
        which, gates = np.flatnonzero(has), number[roots[has]]
        if beside is not None:
            both = np.stack([gates, beside[has]], axis=1).ravel()
            gates = np.arange(which.size) + self._add_gates(
                middle, BOTTOM, both, 2 * np.arange(which.size + 1)
            )
        pairs.append(np.stack([which, gates]))
        return number[leaves]

    def below(
        self, circuit: Circuit, entry: int, middle: int
    ) -> tuple[int, NDArray[np.intp], NDArray[np.int64]]:
        """Adds what is below an entry, down to the starts, and unions of these, the last one first.

        Returns the first of these unions, the gates of starts and their events, descending.
        """
        kept = _only(circuit.event.size, entry)
        mark_below(circuit, kept)
        part = _cut(circuit, kept, np.zeros(kept.size, np.bool_))
        turned, where = _turned(part, middle)
        base = self._add(turned)
        leaves = np.flatnonzero(np.diff(part.first) == 0)
        leaves = leaves[np.argsort(-part.event[leaves], kind="stable")]
        starts = base + where[leaves]
        union = self._size
        children = np.stack([np.arange(union - 1, union + starts.size - 1), starts], axis=1).ravel()[1:]
        first = np.concatenate([[0], np.arange(1, 2 * starts.size, 2)])
        return self._add_gates(0, UNION, children, first), starts, part.event[leaves]

    def with_roots(self, pairs: list[NDArray[np.int64]], count: int, starts: NDArray[np.intp]) -> Block:
        """The whole circuit with a union for each of `count` roots, without gates in no complex event."""
        which, gates = np.concatenate(pairs, axis=1)
        order = np.argsort(which, kind="stable")
        roots = self._add_gates(0, UNION, gates[order], offsets_of(np.bincount(which, minlength=count)))
        event, mark, child = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in ("event", "mark", "child")
        )
        degrees = np.concatenate([np.diff(part.first) for part in self._parts])
        whole = Circuit(event, mark, offsets_of(degrees).astype(np.int32), child)
        kept = np.zeros(event.size, np.bool_)
        kept[roots:] = True
        mark_below(whole, kept)
        number = np.cumsum(kept) - 1
        cut = _cut(whole, kept, np.zeros(kept.size, np.bool_))
        own = number[roots + np.arange(count)].astype(np.int32)
        return Block(cut, own, slice(0, count), number[starts[kept[starts]]])


def _turned(part: Circuit, middle: int) -> tuple[Circuit, NDArray[np.int64]]:
    """The reverse of a circuit whose last gate is the root, and the gate that each gate has become.

    Each gate is a union of those it was a part of, followed by its event; the root is an end without a mark.
    """
    size = part.event.size
    is_event = part.mark != UNION
    counts = 1 + is_event[::-1].astype(np.int64)
    before = 1 + np.cumsum(counts) - counts
    union = before[::-1]
    where = union + is_event
    owner = np.repeat(np.arange(size), np.diff(part.first))
    total = 1 + int(counts.sum())
    owners = np.concatenate([union[part.child], [union[-1]], where[is_event]])
    children = np.concatenate([where[owner], [0], union[is_event]])
    order = np.argsort(owners, kind="stable")
    event, mark = np.zeros(total, np.int64), np.full(total, UNION, np.int32)
    event[0], mark[0] = middle, BOTTOM
    event[where[is_event]], mark[where[is_event]] = part.event[is_event], part.mark[is_event]
    first = offsets_of(np.bincount(owners, minlength=total))
    return Circuit(event, mark, first.astype(np.int32), children[order].astype(np.int32)), where
