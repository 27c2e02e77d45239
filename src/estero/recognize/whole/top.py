"""The best complex events of an answer, best first, without looking at the others (docs/papers.md).

The best one below each gate is known by a pass over the circuit. Where the way to one takes an alternative of
a union, each other alternative is what remains: a set with a best one of its own, which waits in a heap with
the way before it. So each complex event costs its own length, a look at the unions on its way, which a kernel
takes, and the logarithm of what waits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush, heappushpop
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.asked_values import Asked
from estero.engine.walk.circuits import Others, ranked
from estero.engine.walk.matches import Matches
from estero.language.tree.selection import END_TIME, START_TIME
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.aggregates import checked_numbers, summable
from estero.recognize.whole.partitions import Partitions
from estero.recognize.whole.sets_at_hand import SetAtHand, sets_at_hand

_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1
"""The least and the greatest worth that is a word."""


class Pending(NamedTuple):
    """A gate that a complex event still needs one of, and those after it.

    best, ways and place are of all of them together: the greatest sum, how many there are, and which is it.
    """

    gate: int
    then: Pending | None
    best: Any
    ways: int
    place: int


class Item(NamedTuple):
    """A gate with an event on the way to a complex event, and those before it."""

    gate: int
    before: Item | None


class Candidate(NamedTuple):
    """Complex events of a root that begin with the same way, told by the best of them.

    In the order of `heapq`: the greatest value, the first root, the first of its complex events.
    """

    worth: Any
    root: int
    place: int
    gate: int
    pending: Pending | None
    items: Item | None
    gained: Any
    passed: int


def top_table(sets: ReadableSets, n: int, by: Asked, *, ascending: bool, schema: pa.Schema) -> pa.Table:
    """The `n` best rows of an answer, best first, those of one worth in the order of the answer."""
    tables: list[pa.RecordBatch] = []
    worths: list[Any] = []
    for at_hand in sets_at_hand(sets, Partitions(schema, apart=False)) if n else ():
        parts = at_hand.listed() if by.operand.whole is not None and at_hand.circuit.branches else [at_hand]
        for part in parts:
            least = None if len(worths) < n else sorted(worths, reverse=True)[n - 1]
            best = list(_best(part, n, by, ascending=ascending, more_than=least))
            if best:
                tables.append(part.reader.reporter.table(_matches_of(part, best), part.store))
                worths += [worth for worth, *_ in best]
            if len(worths) > 4 * n:
                tables, worths = _cut(tables, worths, n, schema)
    tables, worths = _cut(tables, worths, n, schema)
    return pa.Table.from_batches(tables, schema)


def _cut(
    tables: list[pa.RecordBatch], worths: list[Any], n: int, schema: pa.Schema
) -> tuple[list[pa.RecordBatch], list[Any]]:
    """The `n` best rows, best first."""
    order = sorted(range(len(worths)), key=lambda row: (-worths[row], row))[:n]
    rows = pa.Table.from_batches(tables, schema).take(pa.array(order, pa.int64()))
    return rows.combine_chunks().to_batches(), [worths[row] for row in order]


Best = tuple[Any, int, list[int]]
"""A worth, a root and the gates of a complex event."""


def _best(at_hand: SetAtHand, n: int, by: Asked, *, ascending: bool, more_than: Any) -> Iterator[Best]:
    """The `n` best of a set that are worth more than `more_than`, best first."""
    of_roots, of_gates = _values(at_hand, by)
    if ascending:
        of_roots, of_gates = -of_roots, -of_gates
    numbers, circuit = at_hand.numbers, at_hand.circuit
    best, place = ranked(circuit, numbers, summable(of_gates, circuit.event.size))
    value = best[at_hand.gates] + of_roots
    roots = np.argsort(-value, kind="stable")[:n]
    floor = _Floor(n, more_than, _LOWEST if best.dtype == np.int64 else -math.inf)
    heap: list[Candidate] = []
    for root in roots.tolist():
        gate, worth = int(at_hand.gates[root]), value.item(root)
        if floor.admits(worth):
            start = Candidate(-worth, root, int(place[gate]), gate, None, None, of_roots.item(root), 0)
            heappush(heap, start)
    walk = _Walk(at_hand, of_gates, best, place, floor)
    while heap and n:
        candidate = heappop(heap)
        yield -candidate.worth, candidate.root, walk.go(candidate, heap)
        n -= 1


class _Walk:
    """Goes the best way from a candidate, and leaves the others behind in the heap.

    Of others only the `n` best are left behind, and only those worth at least as much as the `n` best there.
    """

    def __init__(
        self, at_hand: SetAtHand, value: NDArray[Any], best: NDArray[Any], place: NDArray[Any], floor: _Floor
    ) -> None:
        circuit = at_hand.circuit
        self._first, self._child = circuit.first, circuit.child
        self._below = at_hand.numbers.below
        self._value, self._best, self._place = value, best, place
        self._others = Others(circuit, at_hand.numbers, best)
        self._floor = floor

    def go(self, candidate: Candidate, heap: list[Candidate]) -> list[int]:
        """The gates with events of the best complex event of a candidate."""
        _, root, _, gate, pending, items, gained, passed = candidate
        while True:
            ways, later, rest = (1, 0, 0) if pending is None else (pending.ways, pending.place, pending.best)
            terms = gained, rest, self._least()
            gate, skipped, others, before = self._others.below(gate, terms, self._floor.n)
            for child, number in zip(others, before, strict=True):
                worth = gained + self._best.item(child) + rest
                if self._floor.admits(worth):
                    first = passed + number * ways
                    place = first + int(self._place.item(child)) * ways + later
                    heappush(heap, Candidate(-worth, root, place, child, pending, items, gained, first))
            passed += skipped * ways
            items = Item(gate, items)
            gained += self._value.item(gate)
            children = self._child[self._first[gate] : self._first[gate + 1]].tolist()
            for child in children[:0:-1]:
                pending = self._with(child, pending)
            if children:
                gate = children[0]
            elif pending is None:
                return _gates_of(items)
            else:
                gate, pending = pending.gate, pending.then

    def _least(self) -> Any:
        """The floor, as the values are: no word is above the greatest one."""
        return min(self._floor.least, _HIGHEST) if self._best.dtype == np.int64 else self._floor.least

    def _with(self, gate: int, then: Pending | None) -> Pending:
        """What is pending, and a gate before it."""
        best, ways, place = (0, 1, 0) if then is None else (then.best, then.ways, then.place)
        return Pending(
            gate,
            then,
            self._best.item(gate) + best,
            int(self._below.item(gate)) * ways,
            int(self._place.item(gate)) * ways + place,
        )


class _Floor:
    """What a worth has to be, so that it may be among the `n` best: more than `more_than`, and enough.

    Worths are of different complex events; `least` is the n-th best of those that were admitted.
    """

    def __init__(self, n: int, more_than: Any, lowest: Any) -> None:
        self.n = n
        self.least: Any = lowest if more_than is None else more_than
        self._more_than = more_than
        self._best: list[Any] = []

    def admits(self, worth: Any) -> bool:
        """Whether a worth may be among the best; it is one of those seen then."""
        if worth < self.least or (self._more_than is not None and worth <= self._more_than):
            return False
        if len(self._best) < self.n:
            heappush(self._best, worth)
        else:
            heappushpop(self._best, worth)
        if len(self._best) == self.n:
            self.least = self._best[0]
        return True


def _gates_of(items: Item | None) -> list[int]:
    gates = []
    while items is not None:
        gates.append(items.gate)
        items = items.before
    return gates


def _values(at_hand: SetAtHand, by: Asked) -> tuple[NDArray[Any], NDArray[Any]]:
    """What each root and each gate adds to the worth of a complex event."""
    nothing = np.zeros(at_hand.gates.size, np.int64)
    whole = by.operand.whole
    if whole is None:
        gates = at_hand.marked(by.operand.label)
        values: NDArray[Any] = np.ones(gates.size, np.int64)
        if by.operand.attribute is not None:
            column = at_hand.attribute(by.operand, gates)
            if by.inner == "count":
                values = pc.is_valid(column).to_numpy(zero_copy_only=False).astype(np.int64)
            else:
                values, _ = checked_numbers(column, by.text)
        return nothing, at_hand.spread(gates, values)
    ends = at_hand.times(at_hand.ends)
    if whole == END_TIME:
        return ends, np.zeros(at_hand.circuit.event.size, np.int64)
    starts = at_hand.starts
    begun = at_hand.times(at_hand.circuit.event[starts])
    if whole == START_TIME:
        return nothing, at_hand.spread(starts, begun)
    return ends, at_hand.spread(starts, -begun)


def _matches_of(at_hand: SetAtHand, best: list[Best]) -> Matches:
    """Complex events of which the gates are known."""
    event, mark = at_hand.circuit.event, at_hand.circuit.mark
    starts, ends, offsets = [], [], [0]
    events, marks = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for _, root, gates in best:
        of, as_marked = event[gates], mark[gates]
        starts.append(int(of.min()))
        ends.append(int(at_hand.ends[root]))
        order = np.lexsort((as_marked, of))
        order = order[as_marked[order] >= 0]
        events.append(of[order])
        marks.append(as_marked[order])
        offsets.append(offsets[-1] + order.size)
    return Matches(
        np.array(starts), np.array(ends), np.array(offsets), np.concatenate(events), np.concatenate(marks)
    )
