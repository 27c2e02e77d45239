"""Questions about a whole set of complex events: circuits, and the passes over them.

Numbers are words if all of them fit, and otherwise Python integers of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import GROW
from estero.engine.kernels import Kernel
from estero.engine.store.arena import BOTTOM, NONE, Arena
from estero.engine.walk.circuit import (
    Circuit,
    count_above,
    count_below,
    greatest_floats,
    greatest_integers,
)
from estero.engine.walk.counter import FITS, Counter
from estero.engine.walk.list_counts import Lists
from estero.engine.walk.matches import Matches
from estero.engine.walk.products import Heaps
from estero.engine.walk.roots import Roots
from estero.engine.walk.unfold import (
    AT,
    CHILDREN,
    GATES,
    MOST,
    OLDEST,
    PLACES,
    Made,
    unfold_lists,
    unfold_paths,
    unfold_products,
)

# ------------------------------------------------------------------------------------------ circuits


def _made(parts: int) -> Made:
    return Made(np.full(parts, NONE, np.int32), np.zeros(parts, np.int32), np.zeros(parts, np.int64))


def _of_paths(arena: Arena, counter: Counter[Any]) -> tuple[Any, ...]:
    return unfold_paths, counter.counts, (_made(arena.kind.size),)


def _of_products(heaps: Heaps, counter: Counter[Any]) -> tuple[Any, ...]:
    made = _made(heaps.products.mark.size), _made(heaps.nodes.product.size)
    return unfold_products, counter.counts, made


def _of_lists(lists: Lists, counter: Counter[Any]) -> tuple[Any, ...]:
    del counter  # there is no window
    made = np.full(lists.nodes.mark.size, NONE, np.int32), np.full(lists.entries.node.size, NONE, np.int32)
    return unfold_lists, None, made


_KINDS: Final[list[tuple[Any, Callable[..., tuple[Any, ...]]]]] = [
    (Arena, _of_paths),
    (Heaps, _of_products),
    (Lists, _of_lists),
]


_ENOUGH: Final = 1 << 22
_TIMES: Final = 4
"""The most gates of one circuit, or the multiple of those of the compact set: about 100 MB."""


def unfolded(
    compact: Any, counter: Counter[Any], roots: Roots
) -> Iterator[tuple[Circuit, NDArray[np.int32], slice]]:
    """The complex events below `roots` as circuits, with the gates int32 of their roots.

    The slice says which roots a circuit has. Every gate leads to a complex event of a root, inside its
    window, in the order of enumeration. There is one circuit, unless windows make many gates.
    """
    counter.catch_up(compact)
    lay_out = next(lay_out for kind, lay_out in _KINDS if isinstance(compact, kind))
    first, capacity = 0, 4 * (roots.root.size + 64)
    while first < roots.root.size:
        rest = roots.part(first, roots.root.size)
        kernel_of, counts, made = lay_out(compact, counter)
        given = (compact, rest) if counts is None else (compact, counts, rest)
        gates = np.empty(rest.root.size, np.int32)
        state = np.zeros(len(PLACES), np.int64)
        state[OLDEST] = np.iinfo(np.int64).min
        state[MOST] = max(_ENOUGH, _TIMES * (made[0].size if counts is None else made[0].whole.size))
        circuit, stack = _sized(None, capacity), np.empty(capacity, np.int32)
        while kernel_of(*given, *made, circuit, gates, stack, state) == GROW:
            capacity *= 2
            circuit = _sized(circuit, capacity)
            stack = np.concatenate([stack, np.empty(stack.size, np.int32)])
        at, size, children = state[[AT, GATES, CHILDREN]].tolist()
        cut = Circuit(
            circuit.event[:size], circuit.mark[:size], circuit.first[: size + 1], circuit.child[:children]
        )
        yield cut, gates[:at], slice(first, first + at)
        first += at


def _sized(circuit: Circuit | None, capacity: int) -> Circuit:
    """A circuit with more capacity, for the existing gates and others."""
    lengths = (capacity, capacity, capacity + 1, 2 * capacity)
    dtypes = (np.int64, np.int32, np.int32, np.int32)
    arrays: list[Any] = [np.zeros(length, dtype) for length, dtype in zip(lengths, dtypes, strict=True)]
    grown = Circuit(*arrays)
    if circuit is not None:
        for name in Circuit._fields:
            old = getattr(circuit, name)
            getattr(grown, name)[: old.size] = old
    return grown


def circuit_of(matches: Matches) -> tuple[Circuit, NDArray[np.int32]]:
    """Listed complex events as a circuit, and the gate of each."""
    items, count = matches.event.size, matches.start.size
    lengths = np.diff(matches.offsets) + 1
    ends = np.cumsum(lengths)
    starts = ends - lengths
    event, mark = np.empty(items + count, np.int64), np.full(items + count, BOTTOM, np.int32)
    marked = np.ones(items + count, np.bool_)
    marked[starts] = False
    event[starts], event[marked], mark[marked] = matches.start, matches.event, matches.marks
    first = np.zeros(items + count + 1, np.int32)
    np.cumsum(marked, out=first[1:])
    child = (np.flatnonzero(marked) - 1).astype(np.int32)
    return Circuit(event, mark, first, child), (ends - 1).astype(np.int32)


# -------------------------------------------------------------------------------------------- passes


class Counted(NamedTuple):
    """The numbers of complex events below each gate: uint64[gates], or objects if words are too short.

    `fits` says whether the numbers of all roots together fit a word.
    """

    below: NDArray[Any]
    fits: bool


def counted(circuit: Circuit, roots: NDArray[np.int32]) -> Counted:
    """The numbers of complex events below the gates of a circuit; `roots` are the gates asked for."""
    size = circuit.event.size
    exact, rough = np.ones(size, np.uint64), np.ones(size)
    count_below(circuit, exact, rough)
    if rough[roots].sum() < FITS:
        return Counted(exact, True)
    numbers = np.ones(size, np.int64).astype(object)
    with np.errstate(over="ignore", invalid="ignore"):
        at_any_length(count_below, circuit, numbers, np.ones(size))
    return Counted(numbers, False)


def contexts(circuit: Circuit, roots: NDArray[np.int32], numbers: Counted) -> NDArray[Any]:
    """The number of complex events of `roots` in which each gate takes part; as `Counted.below`."""
    size = circuit.event.size
    if numbers.fits:
        ways = np.bincount(roots, minlength=size).astype(np.uint64)
        count_above(circuit, numbers.below, ways)
    else:
        ways = np.bincount(roots, minlength=size).astype(object)
        at_any_length(count_above, circuit, numbers.below, ways)
    taken: NDArray[Any] = ways * numbers.below
    return taken


def greatest(
    circuit: Circuit, how: int, value: NDArray[Any], valued: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The greatest value of a complex event below each gate, and if there is one (see `put_greatest`)."""
    best = np.empty_like(value)
    some, none = np.empty((2, circuit.event.size), np.bool_)
    if value.dtype == object:
        at_any_length(greatest_integers, circuit, how, value, valued, best, some, none)
    else:
        run = greatest_integers if value.dtype == np.int64 else greatest_floats
        run(circuit, how, value, valued, best, some, none)
    return best, some


def at_any_length(of: Kernel, *arguments: Any) -> int:
    """Calls the Python function of a kernel with arrays of Python integers."""
    return int(of.function(*arguments) or 0)
