"""The complex events below roots of a circuit, best first, without a look at the others (docs/papers.md).

A union offers a heap of its alternatives, best first: a persistent leftist heap, which shares all but a
logarithmic number of nodes with those of its children (Bourhis, Grez, Jachiet and Riveros, ICDT 2021). So the
best complex event below each gate is known, and the rest of a heap without its first are two heaps. After
taking a complex event, such a rest remains wherever an alternative was taken: each is a set of complex events
with the same beginning, queued by the best of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW
from estero.engine.kernels import FLOATS, INT64S, UINT64S, inlined, kernel, pool, step
from estero.engine.store.arena import NONE, UNION
from estero.engine.walk.circuit import Circuit

NEXT, NODES = range(2)
"""Places in the state of `put_heaps`: the next gate, and the number of nodes."""
WAITING, ITEMS, RESTS, DRAWN, GATES, LENGTH, WHOLE = PLACES = range(7)
"""Places in the state of `draw`: the numbers of candidates, items, rests, complex events and their gates; if
capacity is missing, how many events the next complex event still has, and how many in all."""
MELDED = 80
"""The most nodes of a meld: a right spine has at most the logarithm of 2^31."""


@pool
class Alternatives(NamedTuple):
    """Heaps: node i has alternative `gate`, which has an event, and is as good as any below it.

    ====== ======= =====================================================================
    array  dtype   meaning
    ====== ======= =====================================================================
    gate   int32   node i < gates is gate i alone
    left   int32   nodes; NONE where there is none
    right  int32   the one with the shorter right spine
    rank   int32   the length of the right spine
    shift  uint64  how many complex events come before the alternative, less those before
                   that of the node above
    root   int32   [gates] the heap of what each gate offers
    place  uint64  [gates] which of the complex events below a gate is the first best one
    length int32   [gates] how many events it has
    path   int32   [MELDED] scratch
    before uint64  [MELDED] scratch
    ====== ======= =====================================================================
    """

    gate: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    rank: NDArray[np.int32]
    shift: NDArray[np.uint64]
    root: NDArray[np.int32]
    place: NDArray[np.uint64]
    length: NDArray[np.int32]
    path: NDArray[np.int32]
    before: NDArray[np.uint64]


@inlined
def spine(heaps, node):  # type: ignore[no-untyped-def]
    """The length of a right spine."""
    return heaps.rank[node] if node != NONE else np.int32(0)


@inlined
def put_node(heaps, node, of, below, state):  # type: ignore[no-untyped-def]
    """Makes a node with the alternative and the left heap of `of`, and `below`; `node` is its number."""
    left = heaps.left[of]
    longer = spine(heaps, below) > spine(heaps, left)
    heaps.gate[node] = heaps.gate[of]
    heaps.left[node] = below if longer else left
    heaps.right[node] = left if longer else below
    heaps.rank[node] = spine(heaps, heaps.right[node]) + 1
    state[NODES] = node + 1


@step
def meld(heaps, best, one, two, passed, state):  # type: ignore[no-untyped-def]
    """The meld of two heaps, where `passed` complex events come before those of the second.

    If two are equally good, the one of the first heap is on top.
    """
    height = 0
    before_one = passed - passed
    before_two = passed
    while one != NONE and two != NONE:  # noqa: PLR1714 - a kernel has no tuples of them
        if best[heaps.gate[two]] > best[heaps.gate[one]]:
            before_two = before_two + heaps.shift[two]
            heaps.path[height] = two
            heaps.before[height] = before_two
            two = heaps.right[two]
        else:
            before_one = before_one + heaps.shift[one]
            heaps.path[height] = one
            heaps.before[height] = before_one
            one = heaps.right[one]
        height += 1
    below = one
    before = before_one
    if one == NONE:
        below = two
        before = before_two
    if below != NONE:
        before = before + heaps.shift[below]
        above = heaps.before[height - 1]
        if before - above != heaps.shift[below]:
            node = state[NODES]
            heaps.gate[node] = heaps.gate[below]
            heaps.left[node] = heaps.left[below]
            heaps.right[node] = heaps.right[below]
            heaps.rank[node] = heaps.rank[below]
            heaps.shift[node] = before - above
            state[NODES] = node + 1
            below = np.int32(node)
    while height > 0:
        height -= 1
        node = state[NODES]
        put_node(heaps, node, heaps.path[height], below, state)
        heaps.shift[node] = heaps.before[height]
        if height > 0:
            heaps.shift[node] = heaps.before[height] - heaps.before[height - 1]
        below = np.int32(node)
    return below


@inlined
def put_heaps(circuit, exact, value, best, heaps, state):  # type: ignore[no-untyped-def]
    """Fills the greatest sum of values below each gate from state[NEXT] on, best[gates], and the heaps.

    value[gates]; `exact` is what `count_below` fills. Returns GROW where capacity for nodes lacks.
    """
    for gate in range(state[NEXT], circuit.event.size):
        first = circuit.first[gate]
        last = circuit.first[gate + 1]
        if circuit.mark[gate] == UNION:
            if state[NODES] + MELDED * (last - first) > heaps.gate.size:
                state[NEXT] = gate
                return GROW
            child = circuit.child[first]
            node = heaps.root[child]
            passed = exact[child]
            for number in range(first + 1, last):
                child = circuit.child[number]
                node = meld(heaps, best, node, heaps.root[child], passed, state)
                passed = passed + exact[child]
            chosen = heaps.gate[node]
            heaps.root[gate] = node
            best[gate] = best[chosen]
            heaps.place[gate] = heaps.shift[node] + heaps.place[chosen]
            heaps.length[gate] = heaps.length[chosen]
        else:
            most = value[gate]
            which = exact[gate] - exact[gate]
            length = np.int64(1)
            for number in range(first, last):
                child = circuit.child[number]
                most = most + best[child]
                which = which * exact[child] + heaps.place[child]
                length += heaps.length[child]
            best[gate] = most
            heaps.place[gate] = which
            heaps.length[gate] = min(length, np.int64(1 << 30))
    return DONE


@kernel(Circuit, UINT64S, INT64S, INT64S, Alternatives, INT64S)
def heaps_of_integers(circuit, exact, value, best, heaps, state):  # type: ignore[no-untyped-def]
    """See `put_heaps`."""
    return put_heaps(circuit, exact, value, best, heaps, state)


@kernel(Circuit, UINT64S, FLOATS, FLOATS, Alternatives, INT64S)
def heaps_of_floats(circuit, exact, value, best, heaps, state):  # type: ignore[no-untyped-def]
    """See `put_heaps`."""
    return put_heaps(circuit, exact, value, best, heaps, state)


# ---------------------------------------------------------------------------------------------- queue


@pool
class Integers(NamedTuple):
    """The worth of candidates, the gains on their ways so far, and the greatest sums of rests."""

    worth: NDArray[np.int64]
    gained: NDArray[np.int64]
    rests: NDArray[np.int64]


@pool
class Floats(NamedTuple):
    """As `Integers`."""

    worth: NDArray[np.float64]
    gained: NDArray[np.float64]
    rests: NDArray[np.float64]


@pool
class Queue(NamedTuple):
    """Candidates: sets of complex events of a root with the same beginning, ordered by the best of them.

    ========= ======= ==============================================================================
    array     dtype   meaning
    ========= ======= ==============================================================================
    order     int32   a binary heap of the candidates that wait; behind them numbers that are free
    root      int32   the root
    place     uint64  which complex event of its root the best one is
    node      int32   the heap from which the next alternative is taken
    base      uint64  how many complex events come before the base of that heap
    passed    uint64  how many come before all with this beginning
    item      int32   the last item on the way
    rest      int32   the first rest, of what else is needed
    ========= ======= ==============================================================================
    """

    order: NDArray[np.int32]
    root: NDArray[np.int32]
    place: NDArray[np.uint64]
    node: NDArray[np.int32]
    base: NDArray[np.uint64]
    passed: NDArray[np.uint64]
    item: NDArray[np.int32]
    rest: NDArray[np.int32]


@pool
class Ways(NamedTuple):
    """Shared parts of candidates. Item i: a gate with an event on the way, the item before it, their count.

    Rest i: a gate of which one complex event is needed, and the rest after it; of all of them together the
    number of `ways` uint64, which of these is the best `place` uint64, and how many events that has. Rest 0
    is the end.
    """

    item_gate: NDArray[np.int32]
    item_before: NDArray[np.int32]
    items: NDArray[np.int32]
    rest_gate: NDArray[np.int32]
    rest_then: NDArray[np.int32]
    rest_ways: NDArray[np.uint64]
    rest_place: NDArray[np.uint64]
    rest_length: NDArray[np.int32]


@pool
class Drawn(NamedTuple):
    """The complex events drawn: the root of each, and gates offsets[i] … offsets[i + 1] - 1."""

    root: NDArray[np.int64]
    offsets: NDArray[np.int64]
    gate: NDArray[np.int32]


@inlined
def comes_before(queue, worth, of, one, two):  # type: ignore[no-untyped-def]
    """Whether a candidate is drawn before another: by partition, by worth, in the order of the answer."""
    root_one = queue.root[one]
    root_two = queue.root[two]
    if of[root_one] != of[root_two]:
        return of[root_one] < of[root_two]
    if worth[one] != worth[two]:
        return worth[one] > worth[two]
    if root_one != root_two:
        return root_one < root_two
    return queue.place[one] < queue.place[two]


@inlined
def push(queue, worth, of, state):  # type: ignore[no-untyped-def]
    """Queues the candidate queue.order[state[WAITING]]."""
    order = queue.order
    place = state[WAITING]
    state[WAITING] = place + 1
    new = order[place]
    while place > 0 and comes_before(queue, worth, of, new, order[(place - 1) // 2]):
        order[place] = order[(place - 1) // 2]
        place = (place - 1) // 2
    order[place] = new


@inlined
def pop(queue, worth, of, state):  # type: ignore[no-untyped-def]
    """Removes the first candidate; its number is free afterwards."""
    order = queue.order
    size = state[WAITING] - 1
    state[WAITING] = size
    first = order[0]
    moved = order[size]
    place = 0
    below = 1
    while below < size:
        if below + 1 < size and comes_before(queue, worth, of, order[below + 1], order[below]):
            below += 1
        if not comes_before(queue, worth, of, order[below], moved):
            break
        order[place] = order[below]
        place = below
        below = 2 * place + 1
    order[place] = moved
    order[size] = first


@step
def leave(heaps, queue, ways, best, sums, of, at, node, state):  # type: ignore[no-untyped-def]
    """Queues the alternatives of `node` that are not taken by candidate `at`."""
    rest = queue.rest[at]
    new = queue.order[state[WAITING]]
    gate = heaps.gate[node]
    queue.root[new] = queue.root[at]
    queue.node[new] = node
    queue.base[new] = queue.base[at]
    queue.passed[new] = queue.passed[at]
    queue.item[new] = queue.item[at]
    queue.rest[new] = rest
    here = queue.base[at] + heaps.shift[node] + heaps.place[gate]
    queue.place[new] = queue.passed[at] + here * ways.rest_ways[rest] + ways.rest_place[rest]
    sums.gained[new] = sums.gained[at]
    sums.worth[new] = sums.gained[at] + best[gate] + sums.rests[rest]
    push(queue, sums.worth, of, state)


@step
def need(exact, heaps, best, ways, sums, gate, then, state):  # type: ignore[no-untyped-def]
    """Makes a rest: a gate before what is needed `then`."""
    new = state[RESTS]
    state[RESTS] = new + 1
    ways.rest_gate[new] = gate
    ways.rest_then[new] = then
    sums.rests[new] = best[gate] + sums.rests[then]
    ways.rest_ways[new] = exact[gate] * ways.rest_ways[then]
    ways.rest_place[new] = heaps.place[gate] * ways.rest_ways[then] + ways.rest_place[then]
    ways.rest_length[new] = heaps.length[gate] + ways.rest_length[then]
    return np.int32(new)


@inlined
def go(circuit, exact, value, best, heaps, queue, ways, sums, of, at, state):  # type: ignore[no-untyped-def]
    """Follows candidate `at`, which is free, to its best complex event; returns its last item."""
    while True:
        node = queue.node[at]
        queue.base[at] = queue.base[at] + heaps.shift[node]
        if heaps.left[node] != NONE:
            leave(heaps, queue, ways, best, sums, of, at, heaps.left[node], state)
        if heaps.right[node] != NONE:
            leave(heaps, queue, ways, best, sums, of, at, heaps.right[node], state)
        gate = heaps.gate[node]
        rest = queue.rest[at]
        queue.passed[at] = queue.passed[at] + queue.base[at] * ways.rest_ways[rest]
        item = state[ITEMS]
        state[ITEMS] = item + 1
        ways.item_gate[item] = gate
        ways.item_before[item] = queue.item[at]
        ways.items[item] = 1
        if queue.item[at] != NONE:
            ways.items[item] = ways.items[queue.item[at]] + 1
        queue.item[at] = item
        sums.gained[at] = sums.gained[at] + value[gate]
        first = circuit.first[gate]
        last = circuit.first[gate + 1]
        following = ways.rest_gate[rest]
        if last > first:
            for number in range(last - 1, first, -1):
                child = circuit.child[number]
                rest = need(exact, heaps, best, ways, sums, child, rest, state)
            following = circuit.child[first]
        elif rest == 0:
            return item
        else:
            rest = ways.rest_then[rest]
        queue.rest[at] = rest
        queue.node[at] = heaps.root[following]
        queue.base[at] = ways.rest_place[0]


@inlined
def draw(circuit, exact, value, best, heaps, queue, ways, sums, of, left, least, drawn, shown, state):  # type: ignore[no-untyped-def]
    """Draws the next best complex events of the roots, as many as `drawn` holds, in state[DRAWN].

    of int64[roots]: the partition of each root; left int64[partitions]: how many more are wanted of each;
    least[partitions]: only those worth more; shown: the worth of each that is drawn. Returns DONE where there
    are no more, FULL where `drawn` is full, GROW where capacity lacks for the next one: two candidates, an
    item, a rest and a gate for each event.
    """
    worth = sums.worth
    while state[WAITING] > 0:
        if state[DRAWN] == drawn.root.size:
            return FULL
        at = queue.order[0]
        root = queue.root[at]
        if left[of[root]] == 0 or worth[at] <= least[of[root]]:
            pop(queue, worth, of, state)
            continue
        length = np.int64(1) + heaps.length[heaps.gate[queue.node[at]]] + ways.rest_length[queue.rest[at]]
        whole = length
        if queue.item[at] != NONE:
            whole = length + ways.items[queue.item[at]]
        if (
            state[WAITING] + 2 * length > queue.order.size
            or state[ITEMS] + length > ways.item_gate.size
            or state[RESTS] + length > ways.rest_gate.size
            or state[GATES] + whole > drawn.gate.size
        ):
            state[LENGTH] = length
            state[WHOLE] = whole
            return GROW
        pop(queue, worth, of, state)
        # the candidate's number does not collide with those of the remaining ones
        kept = queue.order[queue.order.size - 1]
        queue.order[queue.order.size - 1] = at
        queue.order[state[WAITING]] = kept
        item = go(circuit, exact, value, best, heaps, queue, ways, sums, of, at, state)
        gates = state[GATES]
        while item != NONE:
            drawn.gate[gates] = ways.item_gate[item]
            gates += 1
            item = ways.item_before[item]
        state[GATES] = gates
        drawn.root[state[DRAWN]] = root
        shown[state[DRAWN]] = worth[at]
        state[DRAWN] += 1
        drawn.offsets[state[DRAWN]] = gates
        left[of[root]] -= 1
    return DONE


@kernel(
    Circuit,
    UINT64S,
    INT64S,
    INT64S,
    Alternatives,
    Queue,
    Ways,
    Integers,
    INT64S,
    INT64S,
    INT64S,
    Drawn,
    INT64S,
    INT64S,
)
def draw_ints(circuit, exact, value, best, heaps, queue, ways, sums, of, left, least, drawn, shown, state):  # type: ignore[no-untyped-def]
    """See `draw`."""
    return draw(circuit, exact, value, best, heaps, queue, ways, sums, of, left, least, drawn, shown, state)


@kernel(
    Circuit,
    UINT64S,
    FLOATS,
    FLOATS,
    Alternatives,
    Queue,
    Ways,
    Floats,
    INT64S,
    INT64S,
    FLOATS,
    Drawn,
    FLOATS,
    INT64S,
)
def draw_floats(circuit, exact, value, best, heaps, queue, ways, sums, of, left, least, drawn, shown, state):  # type: ignore[no-untyped-def]
    """See `draw`."""
    return draw(circuit, exact, value, best, heaps, queue, ways, sums, of, left, least, drawn, shown, state)
