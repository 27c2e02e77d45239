"""From compact sets to circuits: the complex events below some roots and inside the window of each.

Nodes that lie entirely in the window of a root are one gate for all roots. On the rim (`counter`) a gate is
made for each window: together they are as many as a count of these roots visits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW
from estero.engine.kernels import INT32S, INT64S, inlined, kernel, pool
from estero.engine.store.arena import NONE, PREFER, UNION, Arena
from estero.engine.store.heap import inside
from estero.engine.walk.choices import PathCounts
from estero.engine.walk.circuit import Circuit
from estero.engine.walk.list_counts import Lists, next_entry
from estero.engine.walk.products import Heaps, ProductCounts
from estero.engine.walk.roots import Roots

AT, HEIGHT, GATES, CHILDREN, OLDEST, WINDOW, MOST = PLACES = range(7)
"""Places in the state of a kernel: the next root, the height of the stack, the numbers of gates and children,
the current window, and how many gates are enough."""


@pool
class Made(NamedTuple):
    """The gates of parts; whole int32[parts]: NONE where there is none yet.

    rim int32[parts] is the gate in the window with the number in stamp int64[parts].
    """

    whole: NDArray[np.int32]
    rim: NDArray[np.int32]
    stamp: NDArray[np.int64]


@inlined
def gate_of(made, state, part, is_whole):  # type: ignore[no-untyped-def]
    """The gate of a part, NONE if it is not made yet."""
    if is_whole:
        return made.whole[part]
    return made.rim[part] if made.stamp[part] == state[WINDOW] else np.int32(NONE)


@inlined
def note(made, state, part, is_whole, gate):  # type: ignore[no-untyped-def]
    """Notes the gate of a part."""
    if is_whole:
        made.whole[part] = gate
    else:
        made.rim[part] = gate
        made.stamp[part] = state[WINDOW]


@inlined
def add_child(circuit, state, gate):  # type: ignore[no-untyped-def]
    """Adds a child to the gate that is closed next."""
    circuit.child[state[CHILDREN]] = gate
    state[CHILDREN] += 1


@inlined
def close(circuit, state, event, mark):  # type: ignore[no-untyped-def]
    """Makes the gate with the children added since the last one."""
    gate = state[GATES]
    circuit.event[gate] = event
    circuit.mark[gate] = mark
    circuit.first[gate + 1] = state[CHILDREN]
    state[GATES] = gate + 1
    return gate


@inlined
def lacks(circuit, state, stack, gates, children, height):  # type: ignore[no-untyped-def]
    """Whether capacity is missing for that many more gates and children, and a stack of this height."""
    return (
        state[GATES] + gates > circuit.event.size
        or state[CHILDREN] + children > circuit.child.size
        or height > stack.size
    )


@inlined
def is_enough(state):  # type: ignore[no-untyped-def]
    """Whether to read the gates made so far before another root is begun."""
    return state[HEIGHT] == 0 and state[GATES] >= state[MOST]


@inlined
def enter_root(roots, state, stack):  # type: ignore[no-untyped-def]
    """Puts the next root on the stack, unless it is there, and makes its window the one at hand."""
    at = state[AT]
    if state[HEIGHT] == 0:
        stack[0] = roots.root[at]
        state[HEIGHT] = 1
        if roots.oldest[at] != state[OLDEST]:
            state[OLDEST] = roots.oldest[at]
            state[WINDOW] += 1


# --------------------------------------------------------------------------------------------- paths


@inlined
def stands_for(arena, node, oldest):  # type: ignore[no-untyped-def]
    """The union with two sides, output or bottom that a node is inside a window."""
    while True:
        if arena.kind[node] <= PREFER:
            node = arena.right[node] if oldest <= arena.event[node] else arena.left[node]
        elif arena.kind[node] == UNION and arena.start[arena.right[node]] < oldest:
            node = arena.left[node]
        else:
            return node


@kernel(Arena, PathCounts, Roots, Made, Circuit, INT32S, INT32S, INT64S)
def unfold_paths(arena, counts, roots, made, circuit, gates, stack, state):  # type: ignore[no-untyped-def]
    """See `circuits.unfolded`: fills `gates` int32[roots] from state[AT] on.

    Returns GROW if capacity is missing, FULL if the gates are to be read.
    """
    earliest = counts.of_nodes.earliest
    while state[AT] < roots.root.size:
        oldest = roots.oldest[state[AT]]
        if is_enough(state):
            return FULL
        enter_root(roots, state, stack)
        gate = NONE
        while state[HEIGHT] > 0:
            height = state[HEIGHT]
            node = stands_for(arena, stack[height - 1], oldest)
            is_whole = earliest[node] >= oldest
            gate = gate_of(made, state, node, is_whole)
            if gate != NONE:
                state[HEIGHT] = height - 1
                continue
            if lacks(circuit, state, stack, 1, 2, height + 2):
                return GROW
            one = arena.left[node]
            two = arena.right[node]
            waits = False
            gate_one = NONE
            gate_two = NONE
            if one != NONE:
                one = stands_for(arena, one, oldest)
                gate_one = gate_of(made, state, one, earliest[one] >= oldest)
                if gate_one == NONE:
                    waits = True
                    stack[height] = one
                    height += 1
            if arena.kind[node] == UNION:
                two = stands_for(arena, two, oldest)
                gate_two = gate_of(made, state, two, earliest[two] >= oldest)
                if gate_two == NONE:
                    waits = True
                    stack[height] = two
                    height += 1
            if waits:
                state[HEIGHT] = height
                continue
            if one != NONE:
                add_child(circuit, state, gate_one)
            if arena.kind[node] == UNION:
                add_child(circuit, state, gate_two)
            gate = close(circuit, state, arena.event[node], arena.kind[node])
            note(made, state, node, is_whole, gate)
            state[HEIGHT] = height - 1
        gates[state[AT]] = gate
        state[AT] += 1
    return DONE


# ------------------------------------------------------------------------------------------ products


@kernel(Heaps, ProductCounts, Roots, Made, Made, Circuit, INT32S, INT32S, INT64S)
def unfold_products(heaps, counts, roots, products_made, nodes_made, circuit, gates, stack, state):  # type: ignore[no-untyped-def]
    """See `circuits.unfolded`; on the stack product p is p, heap node h is -1 - h."""
    products, nodes = heaps
    of_products = counts.of_products.earliest
    of_nodes = counts.of_nodes.earliest
    while state[AT] < roots.root.size:
        oldest = roots.oldest[state[AT]]
        if is_enough(state):
            return FULL
        enter_root(roots, state, stack)
        gate = NONE
        while state[HEIGHT] > 0:
            height = state[HEIGHT]
            part = stack[height - 1]
            if part >= 0:
                is_whole = of_products[part] >= oldest
                gate = gate_of(products_made, state, part, is_whole)
            else:
                is_whole = of_nodes[-1 - part] >= oldest
                gate = gate_of(nodes_made, state, -1 - part, is_whole)
            if gate != NONE:
                state[HEIGHT] = height - 1
                continue
            waiting = height
            if part >= 0:
                first = products.first[part]
                last = products.first[part + 1]
                if lacks(circuit, state, stack, 1, last - first, height + last - first):
                    return GROW
                for place in range(first, last):
                    heap = products.child[place]
                    if gate_of(nodes_made, state, heap, of_nodes[heap] >= oldest) == NONE:
                        stack[height] = -1 - heap
                        height += 1
                if height > waiting:
                    state[HEIGHT] = height
                    continue
                for place in range(first, last):
                    heap = products.child[place]
                    add_child(circuit, state, gate_of(nodes_made, state, heap, of_nodes[heap] >= oldest))
                gate = close(circuit, state, products.event[part], products.mark[part])
                note(products_made, state, part, is_whole, gate)
            else:
                node = -1 - part
                if lacks(circuit, state, stack, 1, 3, height + 3):
                    return GROW
                own = nodes.product[node]
                left = inside(nodes, nodes.left[node], oldest)
                right = inside(nodes, nodes.right[node], oldest)
                of_own = gate_of(products_made, state, own, of_products[own] >= oldest)
                of_left = NONE
                of_right = NONE
                if of_own == NONE:
                    stack[height] = own
                    height += 1
                if left != NONE:
                    of_left = gate_of(nodes_made, state, left, of_nodes[left] >= oldest)
                    if of_left == NONE:
                        stack[height] = -1 - left
                        height += 1
                if right != NONE:
                    of_right = gate_of(nodes_made, state, right, of_nodes[right] >= oldest)
                    if of_right == NONE:
                        stack[height] = -1 - right
                        height += 1
                if height > waiting:
                    state[HEIGHT] = height
                    continue
                gate = of_own
                if left != NONE or right != NONE:
                    add_child(circuit, state, of_own)
                    if right != NONE:
                        add_child(circuit, state, of_right)
                    if left != NONE:
                        add_child(circuit, state, of_left)
                    gate = close(circuit, state, 0, UNION)
                note(nodes_made, state, node, is_whole, gate)
            state[HEIGHT] = height - 1
        gates[state[AT]] = gate
        state[AT] += 1
    return DONE


# --------------------------------------------------------------------------------------------- lists


@kernel(Lists, Roots, INT32S, INT32S, Circuit, INT32S, INT32S, INT64S)
def unfold_lists(lists, roots, nodes_made, entries_made, circuit, gates, stack, state):  # type: ignore[no-untyped-def]
    """See `circuits.unfolded`; on the stack run node n is n, and -1 - e entry e with all that are before it.

    If attributes must differ, nodes do not share the entries that fit them: each has its own as children.
    """
    nodes = lists.nodes
    entries = lists.entries
    while state[AT] < roots.root.size:
        if is_enough(state):
            return FULL
        enter_root(roots, state, stack)
        gate = NONE
        while state[HEIGHT] > 0:
            height = state[HEIGHT]
            part = stack[height - 1]
            gate = nodes_made[part] if part >= 0 else entries_made[-1 - part]
            if gate != NONE:
                state[HEIGHT] = height - 1
                continue
            waiting = height
            if part < 0:
                entry = -1 - part
                if lacks(circuit, state, stack, 1, 2, height + 2):
                    return GROW
                before = entries.before[entry]
                if nodes_made[entries.node[entry]] == NONE:
                    stack[height] = entries.node[entry]
                    height += 1
                if before != NONE and entries_made[before] == NONE:
                    stack[height] = -1 - before
                    height += 1
                if height > waiting:
                    state[HEIGHT] = height
                    continue
                gate = nodes_made[entries.node[entry]]
                if before != NONE:
                    add_child(circuit, state, gate)
                    add_child(circuit, state, entries_made[before])
                    gate = close(circuit, state, 0, UNION)
                entries_made[entry] = gate
                state[HEIGHT] = height - 1
                continue
            head = nodes.head[part]
            if head == NONE or lists.widths[nodes.place[part]] == 0:
                if lacks(circuit, state, stack, 1, 1, height + 1):
                    return GROW
                if head != NONE:
                    if entries_made[head] == NONE:
                        stack[height] = -1 - head
                        state[HEIGHT] = height + 1
                        continue
                    add_child(circuit, state, entries_made[head])
            else:
                several = 0
                entry = head
                while entry != NONE:
                    several += 1
                    entry = next_entry(lists, part, entry)
                if lacks(circuit, state, stack, 2, several + 1, height + several):
                    return GROW
                entry = head
                while entry != NONE:
                    if nodes_made[entries.node[entry]] == NONE:
                        stack[height] = entries.node[entry]
                        height += 1
                    entry = next_entry(lists, part, entry)
                if height > waiting:
                    state[HEIGHT] = height
                    continue
                entry = head
                while entry != NONE:
                    add_child(circuit, state, nodes_made[entries.node[entry]])
                    entry = next_entry(lists, part, entry)
                if several > 1:
                    gate = close(circuit, state, 0, UNION)
                    add_child(circuit, state, gate)
            gate = close(circuit, state, nodes.event[part], nodes.mark[part])
            nodes_made[part] = gate
            state[HEIGHT] = height - 1
        gates[state[AT]] = gate
        state[AT] += 1
    return DONE
