"""The best complex events of an answer, best first, without looking at the others (docs/papers.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.asked_values import Asked
from estero.answers.event_store import EventStore
from estero.classify.arrays import array_of
from estero.engine.walk.best_first import Best, BestFirst, by_worth
from estero.engine.walk.circuit import SUM
from estero.engine.walk.circuits import greatest
from estero.engine.walk.matches import Matches, offsets_of
from estero.language.tree.selection import END_TIME, START_TIME
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.aggregates import checked_numbers, summable
from estero.recognize.whole.partitions import Partitions
from estero.recognize.whole.sets_at_hand import SetAtHand, sets_at_hand

_FEW, _MANY = 16, 1 << 14
"""The numbers of complex events that are drawn together: at first, and at most."""
_ENDLESS: Final = (1 << 63) - 1


def top_table(
    sets: ReadableSets, n: int, by: Asked, *, ascending: bool, schema: pa.Schema, by_partition: bool
) -> pa.Table:
    """The `n` best rows of an answer, or of each partition, best first, equal ones as in the answer."""
    partitions = Partitions(schema, apart=by_partition)
    return _best(sets, n, by, partitions, ascending=ascending, schema=schema).in_order(partitions)


def best_rows(
    sets: ReadableSets, n: int, by: Asked, *, ascending: bool, schema: pa.Schema
) -> tuple[pa.Table, list[Any]]:
    """The `n` best rows of an answer, and the worth of each: greater is better."""
    kept = _best(sets, n, by, Partitions(schema, apart=False), ascending=ascending, schema=schema)
    return kept.rows, kept.worth.tolist()


def _best(
    sets: ReadableSets, n: int, by: Asked, partitions: Partitions, *, ascending: bool, schema: pa.Schema
) -> _Kept:
    """The `n` best rows of each partition."""
    kept = _Kept(n, schema)
    for part in _parts(sets, by, partitions, n, ascending=ascending) if n else ():
        ranking = _Ranking(part, by, ascending=ascending, wanted=n, least=kept.least(part.parts))
        rows = [kept.rows]
        while best := ranking.draw(_MANY):
            rows.append(pa.Table.from_batches([ranking.table(best)], schema))
            kept.add(part.of_roots[best.root], best.worth)
        if len(rows) > 1:
            kept.cut(pa.concat_tables(rows))
    return kept


def ranked_tables(
    sets: ReadableSets, by: Asked, *, ascending: bool, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """All rows of an answer, best first, equal ones as in the answer; each is found on demand."""
    rankings: list[_Drawing] = []
    for part in _parts(sets, by, Partitions(schema, apart=False), ascending=ascending):
        rankings.append(_Drawing(_Ranking(_kept(part), by, ascending=ascending), len(rankings)))
    waiting = [(*drawing.first, drawing) for drawing in rankings if drawing.rows is not None]
    heapify(waiting)
    while waiting:
        drawing = waiting[0][2]
        following = min(waiting[1:3], default=None)
        yield drawing.until(None if following is None else following[:2])
        if drawing.rows is None:
            heappop(waiting)
        else:
            heapreplace(waiting, (*drawing.first, drawing))


def _parts(
    sets: ReadableSets, by: Asked, partitions: Partitions, n: int = _ENDLESS, *, ascending: bool
) -> Iterator[SetAtHand]:
    """The sets in order, or those parts of them that can be among the `n` best of a partition.

    They are listed if only a list gives the starts of their complex events.
    """
    for at_hand in sets_at_hand(sets, partitions):
        if by.operand.whole not in (None, END_TIME) and not at_hand.starts_known:
            yield from at_hand.listed()
        elif at_hand.begun is None:
            yield at_hand
        else:
            yield from at_hand.chosen(_best_roots(at_hand, by, n, ascending=ascending))


def _best_roots(at_hand: SetAtHand, by: Asked, n: int, *, ascending: bool) -> NDArray[np.intp]:
    """The roots with the `n` best complex events of each partition, ascending."""
    of_roots, of_gates = _worth(at_hand, by, ascending=ascending)
    best, _ = greatest(at_hand.circuit, SUM, of_gates, at_hand.has(at_hand.events))
    order = by_worth(at_hand.of_roots, best[at_hand.gates] + of_roots)
    of = at_hand.of_roots[order]
    return np.sort(order[np.arange(of.size) - np.searchsorted(of, of) < n])


class _Kept:
    """The `n` best of each partition so far; `worth` is that of each of the `rows`."""

    def __init__(self, n: int, schema: pa.Schema) -> None:
        self._n = n
        self.rows: pa.Table = schema.empty_table()
        self._of = np.empty(0, np.int64)
        self.worth: NDArray[Any] = np.empty(0, np.int64)

    def least(self, parts: int) -> NDArray[Any]:
        """The worth that complex events of each partition must exceed."""
        least = np.full(parts, math.nan).astype(object)
        full = np.flatnonzero(np.bincount(self._of, minlength=parts) == self._n)
        last = np.searchsorted(self._of, full, "right") - 1
        least[full] = self.worth[last]
        return least

    def add(self, of: NDArray[np.int64], worth: NDArray[Any]) -> None:
        """Adds rows of these partitions, by their worth."""
        self._of, self.worth = np.concatenate([self._of, of]), np.concatenate([self.worth, worth])

    def cut(self, rows: pa.Table) -> None:
        """Keeps the best of the rows there are; they are by partition, then best first."""
        order = by_worth(self._of, self.worth)
        of = self._of[order]
        order = order[np.arange(of.size) - np.searchsorted(of, of) < self._n]
        self._of, self.worth = self._of[order], self.worth[order]
        self.rows = rows.take(array_of(order)).combine_chunks()

    def in_order(self, partitions: Partitions) -> pa.Table:
        """The rows in order of partitions."""
        order = np.argsort(partitions.ranks()[self._of], kind="stable")
        return self.rows.take(array_of(order))


class _Ranking:
    """The complex events of a set, best first; only a number `wanted` of each partition, above `least`."""

    def __init__(
        self,
        at_hand: SetAtHand,
        by: Asked,
        *,
        ascending: bool,
        wanted: int = _ENDLESS,
        least: NDArray[Any] | None = None,
    ) -> None:
        of_roots, of_gates = _worth(at_hand, by, ascending=ascending)
        self._at_hand = at_hand
        parts = at_hand.parts
        self._best = BestFirst(
            at_hand.circuit,
            at_hand.gates,
            at_hand.numbers,
            of_gates,
            of_roots,
            of=at_hand.of_roots,
            wanted=np.full(parts, min(wanted, _ENDLESS)),
            least=np.full(parts, math.nan) if least is None else least,
        )

    def draw(self, most: int) -> Best | None:
        """The next complex events, `most` of them or fewer at the end; None if there are no more."""
        best = self._best.draw(most)
        return best if best.root.size else None

    def table(self, best: Best) -> pa.RecordBatch:
        """The drawn complex events, as rows."""
        at_hand, circuit = self._at_hand, self._at_hand.circuit
        event, mark = circuit.event[best.gate], circuit.mark[best.gate]
        starts = np.minimum.reduceat(event, best.offsets[:-1])
        of = np.repeat(np.arange(best.root.size), np.diff(best.offsets))
        order = np.lexsort((mark, event, of))
        order = order[mark[order] >= 0]
        offsets = offsets_of(np.bincount(of[order], minlength=best.root.size))
        ends = at_hand.ends[best.root]
        matches = Matches(starts, ends, offsets, event[order], mark[order])
        return at_hand.reader.reporter.table(matches, at_hand.store)


class _Drawing:
    """The rows of a ranking, some at a time; `number` is that of its set."""

    def __init__(self, ranking: _Ranking, number: int) -> None:
        self._ranking = ranking
        self._number = number
        self._size = _FEW
        self.rows: Any = None
        self._draw()

    def _draw(self) -> None:
        best = self._ranking.draw(self._size)
        self._size = min(2 * self._size, _MANY)
        self.rows = None if best is None else self._ranking.table(best)
        self.worth = [] if best is None else best.worth.tolist()

    @property
    def first(self) -> tuple[Any, int]:
        """The rank of the first row among those of all sets."""
        return -self.worth[0], self._number

    def until(self, following: tuple[Any, int] | None) -> pa.RecordBatch:
        """The current rows before the first one of another set."""
        count = len(self.worth)
        if following is not None:
            before = (place for place in range(1, count) if (-self.worth[place], self._number) > following)
            count = next(before, count)
        rows, self.worth = self.rows, self.worth[count:]
        self.rows = rows.slice(count)
        if not self.worth:
            self._draw()
        return rows.slice(0, count)


def _kept(at_hand: SetAtHand) -> SetAtHand:
    """A copy of the set with its events, independent of the compact set."""
    circuit, gates = at_hand.circuit, at_hand.events
    events, places = np.unique(np.concatenate([circuit.event[gates], at_hand.ends]), return_inverse=True)
    store = EventStore(at_hand.store.schema, at_hand.store.schema.names)
    store.append(at_hand.store.take(events))
    renumbered = at_hand.spread(gates, places[: gates.size])
    own = replace(at_hand, store=store, circuit=circuit._replace(event=renumbered), roots=None)
    return replace(own, ends=places[gates.size :])


def _worth(at_hand: SetAtHand, by: Asked, *, ascending: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """What each root and each gate adds to the worth of a complex event, of which most is best."""
    of_roots, of_gates = _values(at_hand, by)
    of_gates = summable(of_gates, at_hand.circuit.event.size)  # first: the least integer has no opposite
    return (-of_roots, -of_gates) if ascending else (of_roots, of_gates)


def _values(at_hand: SetAtHand, by: Asked) -> tuple[NDArray[Any], NDArray[Any]]:
    """The amounts that each root and each gate add to the worth of a complex event."""
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
