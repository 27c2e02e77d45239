"""The positions of the states of an automaton, and the paths of its arcs (Sugiyama, Tagawa and Toda).

States are in columns by their longest path from an initial state; an arc over several columns gets a bend in
each of them, so that it goes around the states there. There are few states, so plain loops suffice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean

Arc = tuple[int, int]
Point = tuple[float, float]

STATE_EXTENT, BEND_EXTENT = 0.7, 0.38
"""Half the height that a state (with its loop and its label) and a bend keep free, in inches."""
SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of the states, and for each arc but the loops the points it passes, ends included."""

    states: Mapping[int, Point]
    ways: Mapping[Arc, tuple[Point, ...]]


@dataclass(frozen=True, slots=True)
class _Stop:
    """An element of a column: a state, or the bend of an arc."""

    column: int
    state: int | None = None
    arc: Arc | None = None

    @property
    def extent(self) -> float:
        return BEND_EXTENT if self.state is None else STATE_EXTENT


def columns(states: int, initial: Sequence[int], arcs: Sequence[Arc]) -> list[int]:
    """The column of each state: its longest path from an initial one, without the arcs that lead back."""
    following: list[list[int]] = [[] for _ in range(states)]
    for source, target in arcs:
        if source != target:
            following[source].append(target)
    # Depth first, without recursion: an arc leads back if its target is on the path to its source.
    todo = [(state, False) for state in reversed([*sorted(initial), *range(states)])]
    seen, way, done = set[int](), set[int](), list[int]()
    forward: dict[int, list[int]] = {}
    while todo:
        state, through = todo.pop()
        if through:
            way.remove(state)
            done.append(state)
        elif state not in seen:
            seen.add(state)
            way.add(state)
            forward[state] = [target for target in following[state] if target not in way]
            todo += [(state, True), *((target, False) for target in reversed(forward[state]))]
    column = [0] * states
    for state in reversed(done):
        for target in forward[state]:
            column[target] = max(column[target], column[state] + 1)
    return column


def layout(column: Sequence[int], arcs: Sequence[Arc], xs: Sequence[float]) -> Layout:
    """Heights for states and bends such that few arcs cross; `xs` are the positions of the columns."""
    state_stops = [_Stop(c, state=state) for state, c in enumerate(column)]
    chains = {(s, t): _chain(state_stops[s], state_stops[t], (s, t)) for s, t in arcs if s != t}
    layers: list[list[_Stop]] = [[] for _ in xs]
    for stop in dict.fromkeys([*state_stops, *(stop for chain in chains.values() for stop in chain)]):
        layers[stop.column].append(stop)
    links = [link for chain in chains.values() for link in pairwise(chain)]
    near: dict[_Stop, list[_Stop]] = {stop: [] for layer in layers for stop in layer}
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    height = _heights(_ordered(layers, near, links), near)
    place = {stop: (xs[stop.column], height[stop]) for stop in near}
    return Layout(
        {state: place[stop] for state, stop in enumerate(state_stops)},
        {arc: tuple(place[stop] for stop in chain) for arc, chain in chains.items()},
    )


def _chain(source: _Stop, target: _Stop, arc: Arc) -> list[_Stop]:
    step = 1 if source.column <= target.column else -1
    return [source, *(_Stop(c, arc=arc) for c in range(source.column + step, target.column, step)), target]


def _ordered(
    layers: Sequence[list[_Stop]], near: Mapping[_Stop, list[_Stop]], links: Sequence[tuple[_Stop, _Stop]]
) -> list[list[_Stop]]:
    """The columns sorted by the mean position of their neighbours, back and forth; the best of all sweeps."""
    current = [list(layer) for layer in layers]
    best, fewest = current, _crossings(current, links)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for c in range(len(current)) if forward else reversed(range(len(current))):
            beside = c - 1 if forward else c + 1
            if not 0 <= beside < len(current):
                continue
            rank = {stop: float(i) for i, stop in enumerate(current[beside])}
            means = [
                fmean([rank[other] for other in near[stop] if other in rank] or [float(i)])
                for i, stop in enumerate(current[c])
            ]
            order = sorted(range(len(means)), key=means.__getitem__)
            current[c] = [current[c][i] for i in order]
        crossings = _crossings(current, links)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in current], crossings
    return best


def _crossings(layers: Sequence[Sequence[_Stop]], links: Sequence[tuple[_Stop, _Stop]]) -> int:
    rank = {stop: i for layer in layers for i, stop in enumerate(layer)}
    by_column: dict[int, list[tuple[int, int]]] = {}
    for a, b in links:
        left, right = (a, b) if a.column < b.column else (b, a)
        by_column.setdefault(left.column, []).append((rank[left], rank[right]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0 for ends in by_column.values() for a, b in combinations(ends, 2)
    )


def _heights(layers: Sequence[Sequence[_Stop]], near: Mapping[_Stop, list[_Stop]]) -> dict[_Stop, float]:
    """Moves each stop towards its neighbours, keeping enough space to those beside it."""
    height = {stop: -float(i) for layer in layers for i, stop in enumerate(layer)}
    for _ in range(30):
        for layer in layers:
            wanted = [fmean([height[other] for other in near[stop]] or [0.0]) for stop in layer]
            height.update(zip(layer, _apart(wanted, [stop.extent for stop in layer]), strict=True))
    return height


def _apart(wanted: Sequence[float], extents: Sequence[float]) -> list[float]:
    """Descending positions as near to the wanted ones as the spaces allow (least squares, by pooling)."""
    below = [0.0]
    for above, here in pairwise(extents):
        below.append(below[-1] + above + here)
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, below, strict=False):
        mean, size = want + offset, 1
        while pools and pools[-1][0] < mean:
            other, others = pools.pop()
            mean, size = (mean * size + other * others) / (size + others), size + others
        pools.append((mean, size))
    means = [mean for mean, size in pools for _ in range(size)]
    return [mean - offset for mean, offset in zip(means, below, strict=False)]
