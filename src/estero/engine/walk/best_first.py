"""Drawing complex events from a circuit, best first, as many as are requested (`ranking`)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import GROW
from estero.engine.store.arena import NONE
from estero.engine.walk.circuit import Circuit
from estero.engine.walk.circuits import Counted, at_any_length
from estero.engine.walk.ranking import (
    DRAWN,
    GATES,
    ITEMS,
    LENGTH,
    MELDED,
    PLACES,
    RESTS,
    WAITING,
    WHOLE,
    Alternatives,
    Drawn,
    Floats,
    Integers,
    Queue,
    Ways,
    draw_floats,
    draw_ints,
    heaps_of_floats,
    heaps_of_integers,
)

_FEW: Final = 64
"""Capacity at first."""
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
"""The least and the greatest worth that is a word."""


class Best(NamedTuple):
    """The complex events drawn, best first: roots int64[m] by number, and their worth [m].

    The events of complex event i are at gates gate[offsets[i]] … gate[offsets[i + 1] - 1], in no order.
    """

    root: NDArray[np.int64]
    worth: NDArray[Any]
    offsets: NDArray[np.int64]
    gate: NDArray[np.int32]


class BestFirst:
    """The complex events below the roots of a circuit, by the sums of their values, the greatest first.

    Those of equal worth are in the order of roots, and for one root in the order of enumeration. `values` are
    those of gates and `added` those of roots: int64, float64 or objects. `of` int64[roots] is the partition
    of each root, in order; `wanted` int64[partitions] are drawn of each, of those that are worth more than
    `least`, which is NaN if it does not matter.
    """

    def __init__(
        self,
        circuit: Circuit,
        roots: NDArray[np.int32],
        numbers: Counted,
        values: NDArray[Any],
        added: NDArray[Any],
        *,
        of: NDArray[np.int64],
        wanted: NDArray[np.int64],
        least: NDArray[Any],
    ) -> None:
        plain = numbers.fits and object not in (values.dtype, added.dtype)
        kind = np.result_type(values.dtype, added.dtype) if plain else np.dtype(object)
        self._kind, self._words = kind, np.dtype(np.uint64) if plain else np.dtype(object)
        self._circuit, self._exact = circuit, numbers.below.astype(self._words, copy=False)
        self._values = values.astype(kind, copy=False)
        self._best = np.zeros(circuit.event.size, kind)
        self._heaps = self._make_heaps()
        self._of, self._left, self._least = of, wanted.copy(), _bounds(least, kind)
        self._state = np.zeros(len(PLACES), np.int64)
        self._state[[WAITING, RESTS]] = roots.size, 1
        self._wait_for(roots, added.astype(kind, copy=False))

    def _make_heaps(self) -> Alternatives:
        """The best complex event below each gate, and the heaps of alternatives."""
        size = self._circuit.event.size
        state = np.array([0, size])
        nodes = [np.full(size, NONE, np.int32) for _ in range(2)]
        columns: list[Any] = [
            np.arange(size, dtype=np.int32),
            *nodes,
            np.ones(size, np.int32),
            self._zeros(size),
            np.arange(size, dtype=np.int32),
            self._zeros(size),
            np.zeros(size, np.int32),
            np.zeros(MELDED, np.int32),
            self._zeros(MELDED),
        ]
        heaps = Alternatives(*columns)
        run = heaps_of_integers if self._kind != np.float64 else heaps_of_floats
        given = self._circuit, self._exact, self._values, self._best
        most = int(np.diff(self._circuit.first).max(initial=1)) + 1
        while self._run(run, *given, heaps, state) == GROW:
            more = 2 * heaps.gate.size + MELDED * most
            columns = [_longer(column, more) for column in heaps[:5]]
            columns += heaps[5:]
            heaps = Alternatives(*columns)
        return heaps

    def _wait_for(self, roots: NDArray[np.int32], added: NDArray[Any]) -> None:
        """Queues the best complex event of each root."""
        worth = self._best[roots] + added
        order = by_worth(self._of, worth).astype(np.int32)
        size = roots.size
        place = self._heaps.place[roots]
        gates = self._heaps.root[roots]
        nothing = np.full(size, NONE, np.int32), np.zeros(size, np.int32)
        numbers = np.arange(size, dtype=np.int32)
        self._queue = Queue(order, numbers, place, gates, self._zeros(size), self._zeros(size), *nothing)
        self._sums: Any = (worth, added.copy(), np.zeros(1, self._kind))
        columns: list[Any] = [np.zeros(1, np.int32) for _ in range(3)]
        columns += [np.full(1, NONE, np.int32), np.zeros(1, np.int32)]
        columns += [np.ones(1, self._words), self._zeros(1), np.zeros(1, np.int32)]
        self._ways = Ways(*columns)

    def draw(self, most: int) -> Best:
        """Draws the next complex events, `most` of them, or fewer if there are no more."""
        drawn = Drawn(np.zeros(most, np.int64), np.zeros(most + 1, np.int64), np.zeros(_FEW, np.int32))
        shown = np.zeros(most, self._kind)
        self._state[[DRAWN, GATES]] = 0
        run = draw_ints if self._kind != np.float64 else draw_floats
        while most:
            sums = (Integers if self._kind != np.float64 else Floats)(*self._sums)
            given = self._circuit, self._exact, self._values, self._best, self._heaps, self._queue, self._ways
            asked = self._of, self._left, self._least, drawn, shown, self._state
            if self._run(run, *given, sums, *asked) != GROW:
                break
            self._grow()
            needed = int(self._state[[GATES, WHOLE]].sum())
            drawn = drawn._replace(gate=_for(drawn.gate, needed))
        count, gates = self._state[[DRAWN, GATES]].tolist()
        return Best(drawn.root[:count], shown[:count], drawn.offsets[: count + 1], drawn.gate[:gates])

    def _grow(self) -> None:
        """Grows the capacity for the next complex event."""
        waiting, items, rests, length = self._state[[WAITING, ITEMS, RESTS, LENGTH]].tolist()
        worth, gained, sums = self._sums
        queue, needed = self._queue, waiting + 2 * length
        order = np.arange(_for(queue.order, needed).size, dtype=np.int32)
        order[: queue.order.size] = queue.order
        self._queue = Queue(order, *(_for(column, needed) for column in queue[1:]))
        ways = (_for(column, items + length) for column in self._ways[:3])
        self._ways = Ways(*ways, *(_for(column, rests + length) for column in self._ways[3:]))
        self._sums = _for(worth, needed), _for(gained, needed), _for(sums, rests + length)

    def _zeros(self, size: int) -> NDArray[Any]:
        """Zeros for numbers of complex events."""
        return np.zeros(size, self._words)

    def _run(self, of: Any, *arguments: Any) -> int:
        return int(at_any_length(of, *arguments) if self._kind.hasobject else of(*arguments))


def _bounds(least: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Bounds as numbers of a kind."""
    if kind != np.int64:
        return least.astype(kind)
    words = [
        _LOWEST if isinstance(bound, float) else max(min(bound, _HIGHEST), _LOWEST)
        for bound in least.tolist()
    ]
    return np.array(words, np.int64)


def by_worth(of: NDArray[np.int64], worth: NDArray[Any]) -> NDArray[np.int64]:
    """The places of numbers sorted by partition, then from the greatest to the least; stable."""
    if worth.dtype != object:
        return np.lexsort((-worth, of))
    return np.array(sorted(range(worth.size), key=lambda place: (of.item(place), -worth[place])), np.int64)


def _for(column: NDArray[Any], needed: int) -> NDArray[Any]:
    """The column with room for that many items."""
    return column if column.size >= needed else _longer(column, 2 * needed + _FEW)


def _longer(column: NDArray[Any], size: int) -> NDArray[Any]:
    return np.concatenate([column, np.zeros(size - column.size, column.dtype)])
