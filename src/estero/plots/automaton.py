"""An automaton as circles and arcs: what an event must be, and what it is marked with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from estero.arguments import checked
from estero.markup.colours import PALETTE
from estero.plots.drawing import LETTER, LINE, LOOP, RADIUS, ArcText, Drawing, width_of
from estero.plots.layout import Arc, Layout, Point
from estero.plots.picture import FAINT, INK, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from estero.automata.cea import CEA

HEAD = 0.11
"""Inches: the length of an arrow's head."""
MARK = PALETTE[0]


@checked
def plot_automaton(cea: CEA, *, title: str | None = None) -> Picture:
    """The automaton, left to right: an arc shows what an event must be and, in blue, its labels.

    A dashed grey arc reads an event unmarked; a double circle accepts.
    """
    from matplotlib.figure import Figure

    drawing = Drawing.of(cea)
    with styled():
        figure = Figure()
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        for arc in drawing.texts:
            _draw_arc(axes, drawing, arc)
        _draw_states(axes, cea, drawing.places)
        _fit(axes, drawing, title)
    return Picture(figure)


def _draw_arc(axes: Axes, drawing: Drawing, arc: Arc) -> None:
    lines, label, curve = drawing.texts[arc], drawing.labels[arc], drawing.curve(arc)
    _draw_arrow(axes, drawing.bare(arc), faint=drawing.unmarked(arc))
    here = min(range(len(curve)), key=lambda i: math.dist(curve[i], label))
    (x0, y0), (x1, y1) = curve[max(0, here - 4)], curve[min(len(curve) - 1, here + 4)]
    _draw_lines(axes, label, lines, level=abs(y1 - y0) < 0.2 * abs(x1 - x0))


def _draw_lines(axes: Axes, middle: Point, lines: Sequence[ArcText], *, level: bool) -> None:
    """The lines about `middle` on white; a level arc runs between two of them, others pause there."""
    from matplotlib.patches import Rectangle

    if not level:
        width, height = min(width_of([line]) for line in lines), (len(lines) - 1) * LINE + 0.1
        corner = (middle[0] - width / 2, middle[1] - height / 2)
        axes.add_patch(Rectangle(corner, width, height, facecolor="white", edgecolor="none", zorder=2.5))
    for i, line in enumerate(lines):
        axes.text(
            middle[0],
            middle[1] + ((len(lines) - 1) / 2 - i) * LINE,
            line.text,
            color=MARK if line.marking else FAINT if line.faint else INK,
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


def _fit(axes: Axes, drawing: Drawing, title: str | None) -> None:
    """Frames the drawing, one unit to the inch, with the title above and the long predicates below."""
    places, texts, legend = drawing.places, drawing.texts, drawing.legend
    loops = {
        source: LOOP + len(lines) * LINE + 0.08
        for (source, target), lines in texts.items()
        if source == target
    }
    points = [point for way in places.ways.values() for point in way] + list(places.states.values())
    side = max([RADIUS, *(width_of(texts[state, state]) / 2 for state in loops)]) + 0.1
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
