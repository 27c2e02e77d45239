"""The positions of the parts of a drawn automaton: states, arcs and their texts, in inches.

Nothing here draws: `estero.plots.automaton` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from estero.automata.residual import NO_HIDDEN
from estero.plots.layout import Arc, Layout, Point, columns, layout

if TYPE_CHECKING:
    from estero.automata.cea import CEA, EventPredicate, Guard

RADIUS, GAP = 0.23, 0.62
"""Inches: of a state, and the bare arc on both sides of a label."""
LINE, LETTER = 0.175, 0.072
"""Inches: the height of a line of text, and the mean width of a letter."""
LONGEST = 26
"""The length above which a predicate is named p0, p1, … and spelled out below the picture."""
LOOP = 0.75
_STEPS = 160
"""Inches from a state's middle to the top of its loop."""


@dataclass(frozen=True, slots=True)
class ArcText:
    """One line on an arc: a predicate or, as `marking`, the labels; `faint` if nothing is marked."""

    text: str
    marking: bool = False
    faint: bool = False


Texts = Mapping[Arc, Sequence[ArcText]]


@dataclass(frozen=True, slots=True)
class Drawing:
    """An automaton laid out: the positions of its states and arcs, the lines on each arc and their middle.

    `legend` is the text below: long predicates by their short names.
    """

    places: Layout
    texts: Texts
    labels: Mapping[Arc, Point]
    legend: Sequence[str]

    @classmethod
    def of(cls, cea: CEA) -> Drawing:
        """The drawing of an automaton, left to right."""
        texts, legend = _texts(cea)
        arcs = list(texts)
        column = columns(cea.states, sorted(cea.initial), arcs)
        places = layout(column, arcs, _column_places(column, texts))
        return cls(places, texts, _labels_apart(places, texts), legend)

    def curve(self, arc: Arc) -> list[Point]:
        """The points of an arc, from the middle of a state to that of another one."""
        source, target = arc
        if source == target:
            x, y = self.places.states[source]
            return _bezier((x, y), (x - 0.75, y + 0.95), (x + 0.75, y + 0.95), (x, y))
        return _curve(self.places.ways[arc])

    def bare(self, arc: Arc) -> list[Point]:
        """The points of an arc outside of the states that it joins."""
        ends = [self.places.states[state] for state in arc]
        return [point for point in self.curve(arc) if all(math.dist(point, end) >= RADIUS for end in ends)]

    def unmarked(self, arc: Arc) -> bool:
        """Whether the arc only reads events that it does not mark."""
        return all(line.faint for line in self.texts[arc])


def _texts(cea: CEA) -> tuple[dict[Arc, list[ArcText]], list[str]]:
    """The lines of each arc, and the text below the picture, long predicates first."""
    spelled = [str(_without_streams(predicate)) for predicate in cea.predicates]
    names = [text if len(text) <= LONGEST else f"p{i}" for i, text in enumerate(spelled)]
    texts: dict[Arc, list[ArcText]] = {}
    visible = dict.fromkeys(replace(transition, hidden=NO_HIDDEN) for transition in cea.transitions)
    for transition in sorted(visible, key=lambda arrow: (not arrow.labels, sorted(arrow.labels))):
        lines = texts.setdefault((transition.source, transition.target), [])
        lines.append(ArcText(_guard(transition.guard, names), faint=not transition.labels))
        if transition.labels:
            lines.append(ArcText("• " + ", ".join(sorted(transition.labels)), marking=True))
    used = {
        bit for transition in cea.transitions for bit in transition.guard.present | transition.guard.absent
    }
    legend = [f"{names[bit]}  {spelled[bit]}" for bit in sorted(used) if names[bit] != spelled[bit]]
    if any(transition.hidden for transition in cea.transitions):
        legend.append("Hidden labels, which group events for filters, are not drawn.")
    return dict(sorted(texts.items())), legend


def _without_streams(predicate: EventPredicate) -> EventPredicate:
    """The predicate without ``S>R`` next to ``R``: a picture need not repeat the stream."""
    types = [
        kind for kind in predicate.types if kind.rpartition(">")[2] not in predicate.types or ">" not in kind
    ]
    return replace(predicate, types=tuple(types))


def _guard(guard: Guard, names: Sequence[str]) -> str:
    absent = (f"¬ {names[bit]}" for bit in sorted(guard.absent))
    return " ∧ ".join([*(names[bit] for bit in sorted(guard.present)), *absent]) or "any event"


def width_of(lines: Sequence[ArcText]) -> float:
    """The width of the longest line, in inches."""
    return max(len(line.text) for line in lines) * LETTER


def _column_places(column: Sequence[int], texts: Texts) -> list[float]:
    """Columns as far apart as the labels of the arcs between them are wide."""
    widths = [1.3] * max(column, default=0)
    for (source, target), lines in texts.items():
        left, right = sorted((column[source], column[target]))
        if source == target:
            for c in range(max(0, left - 1), min(len(widths), left + 1)):
                widths[c] = max(widths[c], width_of(lines) * 0.6 + 2 * RADIUS)
        elif right - left <= 2:
            for c in range(left, right):
                widths[c] = max(widths[c], (width_of(lines) + GAP) / (right - left) + 2 * RADIUS)
    return list(accumulate(widths, initial=0.0))


def _curve(way: Sequence[Point]) -> list[Point]:
    """A smooth line through the points of a path, level at each; one column back it swings below."""
    if len(way) == 2 and way[1][0] < way[0][0]:
        (x0, y0), (x1, y1) = way
        return _bezier((x0, y0), (x0 - 0.2, y0 - 0.9), (x1 + 0.2, y1 - 0.9), (x1, y1))
    points: list[Point] = []
    for (x0, y0), (x1, y1) in pairwise(way):
        reach = (x1 - x0) * 0.45
        points += _bezier((x0, y0), (x0 + reach, y0), (x1 - reach, y1), (x1, y1))
    return points


def _labels_apart(places: Layout, texts: Texts) -> dict[Arc, Point]:
    """The positions of the labels: their own, or elsewhere on the arc if another one is in the way."""
    sizes = {arc: (width_of(lines), len(lines) * LINE) for arc, lines in texts.items()}
    placed: dict[Arc, Point] = {}
    for arc in sorted(texts, key=lambda arc: (arc[0] != arc[1], arc[0] > arc[1])):
        if arc[0] == arc[1]:
            x, y = places.states[arc[0]]
            placed[arc] = (x, y + LOOP + len(texts[arc]) * LINE / 2)
            continue
        curve = _curve(places.ways[arc])
        others = [(place, sizes[other]) for other, place in placed.items()]
        circles = [(place, (2 * RADIUS, 2 * RADIUS)) for place in places.states.values()]
        place = _label_place(places, arc, curve)
        if _overlap(place, sizes[arc], others):
            fractions = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
            candidates = [place, *(curve[round((len(curve) - 1) * fraction)] for fraction in fractions)]
            place = min(
                candidates, key=lambda candidate: _overlap(candidate, sizes[arc], [*others, *circles])
            )
        placed[arc] = place
    return placed


def _overlap(place: Point, size: Point, others: Sequence[tuple[Point, Point]]) -> float:
    """The area of the other boxes that a box covers, in square inches."""
    total = 0.0
    for middle, other in others:
        wide, high = ((size[i] + other[i]) / 2 - abs(place[i] - middle[i]) for i in (0, 1))
        total += max(0.0, wide) * max(0.0, high)
    return total


def _label_place(places: Layout, arc: Arc, curve: Sequence[Point]) -> Point:
    """On the middle bend; without one, nearer to the end where fewer arcs meet."""
    way = places.ways[arc]
    if len(way) > 2:
        return way[len(way) // 2]
    leaving = sum(source == arc[0] for source, _ in places.ways)
    coming = sum(target == arc[1] for _, target in places.ways)
    return curve[round(len(curve) * (0.5 if leaving == coming else 0.56 if leaving > coming else 0.44))]


def _bezier(*corners: Point) -> list[Point]:
    points = []
    for i in range(_STEPS + 1):
        t = i / _STEPS
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        x, y = (sum(w * corner[axis] for w, corner in zip(weights, corners, strict=True)) for axis in (0, 1))
        points.append((x, y))
    return points
