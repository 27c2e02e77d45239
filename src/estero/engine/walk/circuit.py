"""Circuits: the complex events below some roots as sums and products, whichever compact set they are in.

A gate is a union of gates, or an event together with one complex event of each of its children. Gates come
after their children, and an alternative after those that come before it in the order of enumeration; so one
pass forwards adds up what is below each gate, and one pass backwards what is above. Both take a time that is
linear in the circuit (docs/architecture.md, "The whole set").

Kernels count in words and compute with integers of 64 bits. Numbers that need more are Python integers in
arrays of objects, for which the Python functions run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import (
    FLAGS,
    FLOATS,
    INT,
    INT64S,
    UINT64S,
    inlined,
    kernel,
    pool,
)
from estero.engine.store.arena import UNION

SUM, LEAST, GREATEST = 0, 1, 2
"""The operations by which the values of a complex event's events become its value."""


@pool
class Circuit(NamedTuple):
    """Gates; `event.size` is their number.

    ======= ===== ==============================================================================
    array   dtype meaning for gate i
    ======= ===== ==============================================================================
    event   int64 its event, as a sequence number; union: 0
    mark    int32 label-set id of its event, BOTTOM where nothing marks it, UNION
    first   int32 its children are child[first[i]] … child[first[i + 1] - 1], all before i
    child   int32 gates: the alternatives of a union, or what the event goes with
    ======= ===== ==============================================================================

    A complex event starts at the first of its events, a BOTTOM among them.
    """

    event: NDArray[np.int64]
    mark: NDArray[np.int32]
    first: NDArray[np.int32]
    child: NDArray[np.int32]

    @property
    def branches(self) -> bool:
        """Whether an event goes with several complex events side by side."""
        several = np.diff(self.first) > 1
        return bool((several & (self.mark != UNION)).any())


@kernel(Circuit, UINT64S, FLOATS)
def count_below(circuit, exact, rough):  # type: ignore[no-untyped-def]
    """Fills in the numbers of complex events below the gates: modulo 2**64 uint64, and rounded float64.

    Both are 1 on entry.
    """
    for gate in range(circuit.event.size):
        first = circuit.first[gate]
        last = circuit.first[gate + 1]
        if circuit.mark[gate] == UNION:
            exact[gate] = exact[circuit.child[first]]
            rough[gate] = rough[circuit.child[first]]
            for place in range(first + 1, last):
                exact[gate] += exact[circuit.child[place]]
                rough[gate] += rough[circuit.child[place]]
        else:
            for place in range(first, last):
                exact[gate] *= exact[circuit.child[place]]
                rough[gate] *= rough[circuit.child[place]]


@kernel(Circuit, UINT64S, UINT64S)
def count_above(circuit, exact, ways):  # type: ignore[no-untyped-def]
    """Spreads `ways` uint64[gates], the number of contexts of each gate, downwards from those of roots.

    `exact` is what `count_below` fills.
    """
    for gate in range(circuit.event.size - 1, -1, -1):
        first = circuit.first[gate]
        last = circuit.first[gate + 1]
        for place in range(first, last):
            here = ways[gate]
            if circuit.mark[gate] != UNION:
                for other in range(first, last):
                    if other != place:
                        here = here * exact[circuit.child[other]]
            ways[circuit.child[place]] += here


@kernel(Circuit, FLAGS)
def mark_below(circuit, marked):  # type: ignore[no-untyped-def]
    """Marks all gates below marked ones."""
    for gate in range(circuit.event.size - 1, -1, -1):
        if marked[gate]:
            for place in range(circuit.first[gate], circuit.first[gate + 1]):
                marked[circuit.child[place]] = True


@kernel(Circuit, FLAGS)
def mark_above(circuit, marked):  # type: ignore[no-untyped-def]
    """Marks all gates above marked ones."""
    for gate in range(circuit.event.size):
        for place in range(circuit.first[gate], circuit.first[gate + 1]):
            if marked[circuit.child[place]]:
                marked[gate] = True


@inlined
def combined(how, one, two):  # type: ignore[no-untyped-def]
    """The value of two parts of a complex event."""
    if how == SUM:
        return one + two
    if how == LEAST:
        return min(one, two)
    return max(one, two)


@inlined
def put_greatest(circuit, how, value, valued, best, some, none):  # type: ignore[no-untyped-def]
    """Fills the greatest value of a complex event below each gate.

    value[gates] is that of its event, where it is `valued` bool[gates]; best[gates] counts where `some`
    bool[gates] says that a complex event has a value; none bool[gates]: whether one has no value.
    """
    for gate in range(circuit.event.size):
        first = circuit.first[gate]
        last = circuit.first[gate + 1]
        if circuit.mark[gate] == UNION:
            has = False
            lacks = False
            most = value[gate]
            for number in range(first, last):
                child = circuit.child[number]
                lacks = lacks or none[child]
                if some[child]:
                    most = max(most, best[child]) if has else best[child]
                    has = True
        else:
            has = valued[gate]
            lacks = not has
            most = value[gate]
            for number in range(first, last):
                child = circuit.child[number]
                mine = most
                got = False
                if has and some[child]:
                    most = combined(how, mine, best[child])
                    got = True
                if has and none[child]:
                    most = max(most, mine) if got else mine
                    got = True
                if lacks and some[child]:
                    most = max(most, best[child]) if got else best[child]
                    got = True
                lacks = lacks and none[child]
                has = got
        best[gate] = most
        some[gate] = has
        none[gate] = lacks


@kernel(Circuit, INT, INT64S, FLAGS, INT64S, FLAGS, FLAGS)
def greatest_integers(circuit, how, value, valued, best, some, none):  # type: ignore[no-untyped-def]
    """See `put_greatest`."""
    put_greatest(circuit, how, value, valued, best, some, none)


@kernel(Circuit, INT, FLOATS, FLAGS, FLOATS, FLAGS, FLAGS)
def greatest_floats(circuit, how, value, valued, best, some, none):  # type: ignore[no-untyped-def]
    """See `put_greatest`."""
    put_greatest(circuit, how, value, valued, best, some, none)
