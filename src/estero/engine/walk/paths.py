"""Compact sets of paths (tECS): counting, seeking and enumerating (distributed-cea, 4).

A complex event is a path from a root downwards, from its end backwards. At a union the left side comes first
and the right side is left for later, unless its max_start has left the window; so every visited node leads
to an output. A choice is the one child that is for the window, as if it was not there itself. Seeking goes
past a left side as a whole, by its count: it costs the length of one path, and the rim below the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, SEEK
from estero.engine.jit import inlined, kernel
from estero.engine.store.arena import NONE, PREFER, UNION, Arena, copy_columns
from estero.engine.walk.counter import (
    FITS,
    SURE,
    Counter,
    Counts,
    Place,
    enter,
    grown_counts,
    is_done,
    known,
    known_word,
    new_counts,
    set_count,
    set_rim_count,
    waits,
)
from estero.engine.walk.enumeration import go_on, write_back


class PathCounts(NamedTuple):
    """The counts of all nodes; stack int32[2 × capacity + 2] is scratch.

    Where there are choices, they form chains: behind one comes the first one below its older side that only
    outputs are above of. Windows get older along them. int32[capacity], else empty: below (what is below the
    outputs from a node on), and of choices place (in the chain, from its end) and jump (a later one).
    """

    of_nodes: Counts
    stack: NDArray[np.int32]
    below: NDArray[np.int32]
    place: NDArray[np.int32]
    jump: NDArray[np.int32]


@inlined
def link(arena, counts, node):  # type: ignore[no-untyped-def]
    """Enters a node into its chain; jumps are such that any place is a logarithmic number of steps away.

    Myers, An applicative random-access stack (Information Processing Letters 17, 1983).
    """
    left = arena.left[node]
    counts.below[node] = counts.below[left] if arena.kind[node] >= 0 and left != NONE else node
    if arena.kind[node] <= PREFER:
        following = counts.below[arena.right[node]]
        counts.place[node] = 0
        counts.jump[node] = node
        if arena.kind[following] <= PREFER:
            one = counts.jump[following]
            two = counts.jump[one]
            counts.place[node] = counts.place[following] + 1
            even = counts.place[following] - counts.place[one] == counts.place[one] - counts.place[two]
            counts.jump[node] = two if even else following


@inlined
def resolved(arena, counts, node, oldest):  # type: ignore[no-untyped-def]
    """The union or end that counts as many as `node` does in a window: past outputs and choices."""
    if counts.below.size > 0:
        node = counts.below[node]
        while arena.kind[node] <= PREFER:
            if oldest > arena.event[node]:
                node = counts.below[arena.left[node]]
                continue
            following = counts.below[arena.right[node]]
            while arena.kind[following] <= PREFER and oldest <= arena.event[following]:
                far = counts.jump[node]
                node = far if oldest <= arena.event[far] and far != node else following
                following = counts.below[arena.right[node]]
            node = following
    return node


@kernel
def count_nodes(arena, counts, first):  # type: ignore[no-untyped-def]
    """Counts the nodes from `first` on; those before are done."""
    of_nodes = counts.of_nodes
    for node in range(first, arena.size[0]):
        if counts.below.size > 0:
            link(arena, counts, node)
        left = arena.left[node]
        if left == NONE:
            set_count(of_nodes, node, np.uint64(1), 1.0, arena.event[node])
            continue
        if arena.kind[node] <= PREFER:
            right = arena.right[node]
            earliest = min(arena.event[node], of_nodes.earliest[right])
            set_count(of_nodes, node, of_nodes.exact[right], of_nodes.rough[right], earliest)
            continue
        exact = of_nodes.exact[left]
        rough = of_nodes.rough[left]
        earliest = of_nodes.earliest[left]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            exact += of_nodes.exact[right]
            rough += of_nodes.rough[right]
            earliest = min(earliest, of_nodes.earliest[right])
        set_count(of_nodes, node, exact, rough, earliest)


@kernel
def count_rim(arena, counts, root, oldest):  # type: ignore[no-untyped-def]
    """Counts the rim below `root`, which is resolved; returns the number of nodes counted."""
    of_nodes = counts.of_nodes
    stack = counts.stack
    enter(of_nodes, oldest)
    if not waits(of_nodes, root, arena.start[root], oldest):
        return 0
    steps = 0
    height = 1
    stack[0] = root
    while height > 0:
        node = stack[height - 1]
        if is_done(of_nodes, node):
            height -= 1
            continue
        exact = np.uint64(0)
        rough = 0.0
        waiting = height
        for side in range(2 if arena.kind[node] == UNION else 1):
            child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
            if waits(of_nodes, child, arena.start[child], oldest):
                stack[height] = child
                height += 1
            else:
                more_exact, more_rough = known(of_nodes, child, arena.start[child], oldest)
                exact += more_exact
                rough += more_rough
        if height == waiting:
            set_rim_count(of_nodes, node, exact, rough)
            steps += 1
            height -= 1
    return steps


@kernel
def count_paths(arena, counts, roots, exact, rough, least):  # type: ignore[no-untyped-def]
    """See `Counter.count`."""
    steps = 0
    for place in range(roots.root.size):
        oldest = roots.oldest[place]
        root = resolved(arena, counts, roots.root[place], oldest)
        steps += count_rim(arena, counts, root, oldest)
        exact[place], rough[place] = known(counts.of_nodes, root, arena.start[root], oldest)
        least[place] = min(rough[place], SURE)
    return steps


@inlined
def leave(walk, choices, node, depth):  # type: ignore[no-untyped-def]
    """Puts a choice on top: a node, and the items above it. Returns how many there are then."""
    walk.choice[4 * choices] = node
    walk.choice[4 * choices + 1] = depth
    return choices + 1


@inlined
def descend_path(arena, oldest, walk, choices, most):  # type: ignore[no-untyped-def]
    """Goes down a path from the top choice; see `enumeration.go_on`."""
    choices -= 1
    node = walk.choice[4 * choices]
    depth = walk.choice[4 * choices + 1]
    room = walk.event.size
    longest = min(room, most)
    code = FULL if depth > most else DONE
    while code == DONE:
        left = arena.left[node]
        if arena.kind[node] == UNION:
            if choices == room:
                code = GROW
                break
            right = arena.right[node]
            if arena.start[right] >= oldest:
                choices = leave(walk, choices, right, depth)
        elif arena.kind[node] <= PREFER:
            if oldest <= arena.event[node]:
                left = arena.right[node]
        elif arena.kind[node] >= 0:
            if depth >= longest:
                code = GROW if depth == room else FULL
                break
            walk.event[depth] = arena.event[node]
            walk.marks[depth] = arena.kind[node]
            depth += 1
        if left == NONE:
            break
        node = left
    if code != DONE:
        choices = leave(walk, choices, node, depth)
    return code, choices, depth, arena.event[node]


@inlined
def seek_path(arena, counts, root, oldest, skip, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root, as far as those after it have another way."""
    node = root
    depth = 0
    choices = 0
    code = SEEK if skip < 0 else DONE
    if skip > 0:
        count_rim(arena, counts, resolved(arena, counts, root, oldest), oldest)
    while skip > 0:
        if max(depth, choices) == walk.event.size:
            code = GROW
            break
        left = arena.left[node]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            counted = resolved(arena, counts, left, oldest)
            exact, rough = known(counts.of_nodes, counted, arena.start[counted], oldest)
            if rough < FITS and np.int64(exact) <= skip:
                skip -= np.int64(exact)
                node = right
                continue
            if arena.start[right] >= oldest:
                choices = leave(walk, choices, right, depth)
        elif arena.kind[node] <= PREFER:
            if oldest <= arena.event[node]:
                left = arena.right[node]
        else:
            walk.event[depth] = arena.event[node]
            walk.marks[depth] = arena.kind[node]
            depth += 1
        node = left
    return code, leave(walk, choices, node, depth)


@kernel
def walk_paths(arena, counts, asked, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """The walk over paths; see `enumeration.go_on`."""
    return go_on(arena, counts, asked, walk, matches, sizes, seek_path, descend_path, write_back)


class PathCounter(Counter[Arena]):
    """Counts of the nodes of an arena, which may have `choices`; a part is a node."""

    walk, count = staticmethod(walk_paths), staticmethod(count_paths)

    def __init__(self, *, choices: bool = False) -> None:
        super().__init__()
        self._choices = choices
        self.counts = PathCounts(new_counts(0, self._window), *(np.empty(0, np.int32) for _ in range(4)))
        self._done = 0

    def forget(self) -> None:
        """Numbers of nodes have changed: start again."""
        super().forget()
        self._done = 0

    def catch_up(self, arena: Arena) -> None:
        """Counts the nodes that are new."""
        size = int(arena.size[0])
        if self.counts.of_nodes.exact.size < size:
            room = arena.kind.size
            links = [np.empty(room if self._choices else 0, np.int32) for _ in range(3)]
            copy_columns(self.counts[2:], links, self._done)
            self.counts = PathCounts(
                grown_counts(self.counts.of_nodes, room), np.empty(2 * room + 2, np.int32), *links
            )
        with np.errstate(over="ignore"):
            count_nodes(arena, self.counts, self._done)
        self._done = size

    def seek(self, compact: Arena, root: int, oldest: int, index: int) -> Place:
        """Where the complex event number `index` below `root` is, in the order of enumeration."""
        place = Place([], [], [])
        node = root
        while index:
            left, right = int(compact.left[node]), int(compact.right[node])
            if compact.kind[node] == UNION:
                before = self.number(compact, left, oldest)
                if index >= before:
                    index -= before
                    node = right
                    continue
                if compact.start[right] >= oldest:
                    place.choices.append((right, len(place.items)))
            elif compact.kind[node] <= PREFER:
                left = right if oldest <= compact.event[node] else left
            else:
                place.items.append((int(compact.event[node]), int(compact.kind[node])))
            node = left
        place.choices.append((node, len(place.items)))
        return place

    def _word(self, compact: Arena, part: int, oldest: int) -> int | None:
        return known_word(self.counts.of_nodes, part, oldest) if compact.start.item(part) >= oldest else 0

    def _summed(self, compact: Arena, part: int, oldest: int, number_of: Callable[[int], int]) -> int:
        kind = compact.kind.item(part)
        if kind <= PREFER and oldest <= compact.event.item(part):
            return number_of(compact.right.item(part))
        number = number_of(compact.left.item(part))
        return number + number_of(compact.right.item(part)) if kind == UNION else number

    def _on_rim(self, part: int, oldest: int) -> bool:
        return bool(self.counts.of_nodes.earliest.item(part) < oldest)
