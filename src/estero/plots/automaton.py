"""An automaton as circles and arcs: what an event must be, and what it is marked with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from estero.arguments import checked
from estero.automata.residual import NO_HIDDEN
from estero.plots.layout import Arc, Layout, Point, columns, layout
from estero.plots.picture import FAINT, INK, PALETTE, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from estero.automata.cea import CEA, EventPredicate, Guard

RADIUS, GAP = 0.23, 0.62
"""Inches: of a state, and the bare arc on both sides of a label."""
LINE, LETTER = 0.175, 0.072
"""Inches: the height of a line of text, and the mean width of a letter."""
LONGEST = 26
"""A predicate with more letters is named p0, p1, … and spelled out below the picture."""
HEAD = 0.11
"""Inches: the length of an arrow's head."""
LOOP = 0.75
"""Inches from a state's middle to the top of its loop."""
MARK = PALETTE[0]


@dataclass(frozen=True, slots=True)
class _Text:
    """One line on an arc: a predicate, or the labels that it marks with."""

    text: str
    colour: str


Texts = Mapping[Arc, Sequence[_Text]]


@checked
def plot_automaton(cea: CEA, *, title: str | None = None) -> Picture:
    """The automaton, left to right: an arc shows what an event must be and, in blue, its labels.

    A dashed grey arc reads an event unmarked; a double circle accepts.
    """
    from matplotlib.figure import Figure

    texts, legend = _texts(cea)
    arcs = list(texts)
    column = columns(cea.states, sorted(cea.initial), arcs)
    places = layout(column, arcs, _column_places(column, texts))
    with styled():
        figure = Figure()
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        unmarked = {arc for arc, lines in texts.items() if all(line.colour == FAINT for line in lines)}
        labels = _labels_apart(places, texts)
        for arc, lines in texts.items():
            _draw_arc(axes, places, arc, lines, labels[arc], faint=arc in unmarked)
        _draw_states(axes, cea, places)
        _fit(axes, places, texts, title, legend)
    return Picture(figure)


def _texts(cea: CEA) -> tuple[dict[Arc, list[_Text]], list[str]]:
    """The lines of each arc, and what is said below the picture, long predicates first."""
    spelled = [str(_without_streams(predicate)) for predicate in cea.predicates]
    names = [text if len(text) <= LONGEST else f"p{i}" for i, text in enumerate(spelled)]
    texts: dict[Arc, list[_Text]] = {}
    visible = dict.fromkeys(replace(transition, hidden=NO_HIDDEN) for transition in cea.transitions)
    for transition in sorted(visible, key=lambda arrow: (not arrow.labels, sorted(arrow.labels))):
        lines = texts.setdefault((transition.source, transition.target), [])
        lines.append(_Text(_guard(transition.guard, names), INK if transition.labels else FAINT))
        if transition.labels:
            lines.append(_Text("• " + ", ".join(sorted(transition.labels)), MARK))
    used = {
        bit for transition in cea.transitions for bit in transition.guard.present | transition.guard.absent
    }
    legend = [f"{names[bit]}  {spelled[bit]}" for bit in sorted(used) if names[bit] != spelled[bit]]
    if any(transition.hidden for transition in cea.transitions):
        legend.append("Hidden labels, which group events for filters, are not drawn.")
    return dict(sorted(texts.items())), legend


def _without_streams(predicate: EventPredicate) -> EventPredicate:
    """The predicates without ``S>R`` beside ``R``: the stream of an event is no news in a picture."""
    types = [
        kind for kind in predicate.types if kind.rpartition(">")[2] not in predicate.types or ">" not in kind
    ]
    return replace(predicate, types=tuple(types))


def _guard(guard: Guard, names: Sequence[str]) -> str:
    absent = (f"¬ {names[bit]}" for bit in sorted(guard.absent))
    return " ∧ ".join([*(names[bit] for bit in sorted(guard.present)), *absent]) or "any event"


def _width(lines: Sequence[_Text]) -> float:
    return max(len(line.text) for line in lines) * LETTER


def _column_places(column: Sequence[int], texts: Texts) -> list[float]:
    """Columns as far apart as the labels of the arcs between them are wide."""
    widths = [1.3] * max(column, default=0)
    for (source, target), lines in texts.items():
        left, right = sorted((column[source], column[target]))
        if source == target:
            for c in range(max(0, left - 1), min(len(widths), left + 1)):
                widths[c] = max(widths[c], _width(lines) * 0.6 + 2 * RADIUS)
        elif right - left <= 2:
            for c in range(left, right):
                widths[c] = max(widths[c], (_width(lines) + GAP) / (right - left) + 2 * RADIUS)
    return list(accumulate(widths, initial=0.0))


def _draw_arc(
    axes: Axes, places: Layout, arc: Arc, lines: Sequence[_Text], label: Point, *, faint: bool
) -> None:
    source, target = arc
    if source == target:
        x, y = places.states[source]
        curve = _bezier((x, y), (x - 0.75, y + 0.95), (x + 0.75, y + 0.95), (x, y))
    else:
        curve = _curve(places.ways[arc])
    ends = places.states[source], places.states[target]
    bare = [point for point in curve if all(math.dist(point, end) >= RADIUS for end in ends)]
    _draw_arrow(axes, bare, faint=faint)
    here = min(range(len(curve)), key=lambda i: math.dist(curve[i], label))
    (x0, y0), (x1, y1) = curve[max(0, here - 4)], curve[min(len(curve) - 1, here + 4)]
    _draw_lines(axes, label, lines, level=abs(y1 - y0) < 0.2 * abs(x1 - x0))


def _draw_lines(axes: Axes, middle: Point, lines: Sequence[_Text], *, level: bool) -> None:
    """The lines about `middle` on white; a level arc runs between two of them, others pause there."""
    from matplotlib.patches import Rectangle

    if not level:
        width, height = min(_width([line]) for line in lines), (len(lines) - 1) * LINE + 0.1
        corner = (middle[0] - width / 2, middle[1] - height / 2)
        axes.add_patch(Rectangle(corner, width, height, facecolor="white", edgecolor="none", zorder=2.5))
    for i, line in enumerate(lines):
        axes.text(
            middle[0],
            middle[1] + ((len(lines) - 1) / 2 - i) * LINE,
            line.text,
            color=line.colour,
            ha="center",
            va="center",
            fontsize=8.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            zorder=3,
        )


def _draw_arrow(axes: Axes, points: Sequence[Point], *, faint: bool) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    colour = FAINT if faint else INK
    tip = points[-1]
    shaft = [point for point in points if math.dist(point, tip) > HEAD / 2]
    tail = next(point for point in reversed(points) if math.dist(point, tip) >= HEAD)
    style = (0, (3.5, 2.5)) if faint else "-"
    axes.plot(*zip(*shaft, strict=True), color=colour, lw=1.1, linestyle=style, zorder=1)
    head = FancyArrowPatch(path=Path([tail, tip]), arrowstyle="-|>", mutation_scale=10, color=colour, lw=0.6)
    head.set_zorder(2)
    axes.add_patch(head)


def _draw_states(axes: Axes, cea: CEA, places: Layout) -> None:
    from matplotlib.patches import Circle

    for state, (x, y) in places.states.items():
        if state in cea.initial:
            _draw_arrow(axes, [(x - RADIUS - 0.42 + 0.042 * i, y) for i in range(11)], faint=False)
        axes.add_patch(Circle((x, y), RADIUS, facecolor="white", edgecolor=INK, lw=1.3, zorder=4))
        if state in cea.final:
            axes.add_patch(Circle((x, y), RADIUS - 0.045, facecolor="none", edgecolor=INK, lw=1.1, zorder=5))
        axes.text(x, y, str(state), color=INK, ha="center", va="center_baseline", fontsize=9.5, zorder=6)


def _fit(axes: Axes, places: Layout, texts: Texts, title: str | None, legend: Sequence[str]) -> None:
    """Frames the drawing, one unit to the inch, with the title above and the long predicates below."""
    loops = {
        source: LOOP + len(lines) * LINE + 0.08
        for (source, target), lines in texts.items()
        if source == target
    }
    points = [point for way in places.ways.values() for point in way] + list(places.states.values())
    side = max([RADIUS, *(_width(texts[state, state]) / 2 for state in loops)]) + 0.1
    left, right = -RADIUS - 0.55, max(x for x, _ in points) + side
    left = min(left, -side)
    top = max([y + loops.get(s, 0.45) for s, (_, y) in places.states.items()] + [y + 0.35 for _, y in points])
    bottom = min(y for _, y in points) - 0.45
    if title is not None:
        top += 0.4
        axes.text(left + 0.1, top - 0.1, title, color=INK, fontsize=10, ha="left", va="top")
        right = max(right, left + 0.2 + len(title) * 0.085)
    for i, line in enumerate(legend):
        axes.text(left + 0.1, bottom - i * 0.19, line, color=INK, fontsize=8.5, ha="left", va="top")
        right = max(right, left + 0.2 + len(line) * LETTER)
    bottom -= len(legend) * 0.19 + (0.1 if legend else 0.0)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.figure.set_size_inches(right - left, top - bottom)  # type: ignore[union-attr]


def _curve(way: Sequence[Point]) -> list[Point]:
    """A smooth line through the points of a way, level at each; one column back it swings below."""
    if len(way) == 2 and way[1][0] < way[0][0]:
        (x0, y0), (x1, y1) = way
        return _bezier((x0, y0), (x0 - 0.2, y0 - 0.9), (x1 + 0.2, y1 - 0.9), (x1, y1))
    points: list[Point] = []
    for (x0, y0), (x1, y1) in pairwise(way):
        reach = (x1 - x0) * 0.45
        points += _bezier((x0, y0), (x0 + reach, y0), (x1 - reach, y1), (x1, y1))
    return points


def _labels_apart(places: Layout, texts: Texts) -> dict[Arc, Point]:
    """Where the labels stand: each at its place, or elsewhere on its arc if another one is in the way."""
    sizes = {arc: (_width(lines), len(lines) * LINE) for arc, lines in texts.items()}
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
    """How much of the other boxes a box covers, in square inches."""
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


def _bezier(*corners: Point, steps: int = 160) -> list[Point]:
    points = []
    for i in range(steps + 1):
        t = i / steps
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        x, y = (sum(w * corner[axis] for w, corner in zip(weights, corners, strict=True)) for axis in (0, 1))
        points.append((x, y))
    return points
