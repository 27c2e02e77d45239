"""Automata and q-trees as SVG: in a file, or as part of a page, in the style of its surroundings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from estero.automata.cea import CEA
from estero.automata.joins.q_tree import Leaf, Node, QTreeOfAtoms
from estero.markup.colours import PALETTE
from estero.markup.html import Html, element, empty_element, joined, text
from estero.plots.drawing import RADIUS, ArcText, Drawing
from estero.plots.layout import Arc, Point
from estero.plots.picture import FAINT, INK

MOST_STATES: Final = 120
"""The largest number of states that are drawn: a larger picture would be illegible."""
_LEVEL, _GAP, _WIDE = 0.75, 0.3, 0.082
"""Inches: from a node to those below it, between two atoms, and the mean width of a letter."""
_INCH: Final = 72
_LINE: Final = 14
_LETTER: Final = 6.3
_MARGIN: Final = 6
_HEAD: Final = 8
"""The length of an arrow's head."""
_STEP: Final = 8
"""The step between drawn points of an arc: a smooth line needs no more."""


_STYLE: Final = f"""
.automaton {{ font: 11.5px system-ui, -apple-system, "Segoe UI", sans-serif; }}
.automaton text {{ text-anchor: middle; fill: {INK};
  paint-order: stroke; stroke: white; stroke-width: 4px; stroke-linejoin: round; }}
.automaton text.mark {{ fill: {PALETTE[0]}; font-weight: 600; }}
.automaton text.faint {{ fill: {FAINT}; }}
.automaton .state text {{ font-size: 13px; stroke: none; }}
.automaton text.legend {{ text-anchor: start; }}
.automaton polyline {{ fill: none; stroke: {INK}; stroke-width: 1.3; }}
.automaton polygon {{ fill: {INK}; }}
.automaton .faint polygon {{ fill: {FAINT}; }}
.automaton .faint polyline {{ stroke: {FAINT}; stroke-dasharray: 4 3; }}
.automaton circle, .automaton ellipse {{ fill: white; stroke: {INK}; stroke-width: 1.4; }}
"""


def drawn_alone(drawn: CEA | QTreeOfAtoms) -> str:
    """An automaton, left to right, or a q-tree from the top down, as a file of SVG with its own style."""
    if isinstance(drawn, CEA):
        drawing = Drawing.of(drawn)
        return _automaton(drawing, drawn).document(drawing.legend)
    return _q_tree(drawn).document()


def drawn_inline(drawn: CEA | QTreeOfAtoms) -> Html:
    """The same as part of a page, with texts too long for an arc below; or a note that it is too large."""
    if isinstance(drawn, QTreeOfAtoms):
        return element("div", _q_tree(drawn).svg(), class_="picture")
    if drawn.states > MOST_STATES:
        return element("p", f"{drawn.states:,} states are too many to be drawn.", class_="quiet")
    drawing = Drawing.of(drawn)
    legend = [element("li", line) for line in drawing.legend]
    picture = _automaton(drawing, drawn).svg()
    return element("div", picture, element("ul", *legend) if legend else "", class_="picture")


def _automaton(drawing: Drawing, cea: CEA) -> _Picture:
    picture = _Picture()
    for arc, lines in drawing.texts.items():
        picture.draw_arc(drawing, arc, lines)
    reached = {state for arc in drawing.texts for state in arc} | cea.initial
    for state in sorted(reached):
        picture.draw_state(drawing.places.states[state], state, cea)
    return picture


def _q_tree(drawn: QTreeOfAtoms) -> _Picture:
    places: dict[int, Point] = {}
    _place_nodes(drawn.tree, drawn.atoms, 0.0, 0.0, places)
    picture = _Picture()
    picture.draw_node(drawn.tree, drawn.atoms, places)
    return picture


@dataclass(slots=True)
class _Picture:
    """The layers drawn so far, and the box around them."""

    arcs: list[Html] = field(default_factory=list)
    texts: list[Html] = field(default_factory=list)
    states: list[Html] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    corners: list[Point] = field(default_factory=list)

    def draw_arc(self, drawing: Drawing, arc: Arc, lines: Sequence[ArcText]) -> None:
        points = drawing.bare(arc)
        points = [_placed(point) for point in [*points[:-1:_STEP], points[-1]]]
        faint = drawing.unmarked(arc)
        self._draw_arrow(points, faint=faint, arc=arc)
        x, y = _placed(drawing.labels[arc])
        width = max(len(line.text) for line in lines) * _LETTER + 8
        self._reach(x, y, width / 2, len(lines) * _LINE / 2 + 4)
        level = arc[0] != arc[1] and abs(points[-1][1] - points[0][1]) < _HEAD
        for number, line in enumerate(lines):
            apart = number - (len(lines) - 1) / 2
            beside = 0.0  # a level line runs between two texts, or below a single one
            if level:
                beside = -9.0 if len(lines) % 2 else math.copysign(2.5, apart)
            style = "mark" if line.marking else "faint" if line.faint else None
            self.texts.append(_text(x, y + apart * _LINE + beside, line.text, style))
        spoken = ", ".join(line.text.replace("•", "marks") for line in lines)
        self.said.append(f"From {arc[0]} to {arc[1]}: {spoken}.")

    def draw_state(self, place: Point, state: int, cea: CEA) -> None:
        x, y = _placed(place)
        radius = RADIUS * _INCH
        is_initial, is_final = state in cea.initial, state in cea.final
        self._reach(x, y, radius + (34 if is_initial else 6), radius + 6)
        if is_initial:
            self._draw_arrow([(x - radius - 26, y), (x - radius - 1, y)])
        circles = [
            empty_element("circle", cx=_rounded(x), cy=_rounded(y), r=radius - inside)
            for inside in ((0, 3.5) if is_final else (0,))
        ]
        name = _text(x, y, str(state), None)
        self.states.append(element("g", *circles, name, class_="state", data_state=state))
        kind = ", initial" * is_initial + ", accepting" * is_final
        self.said.append(f"State {state}{kind}.")

    def draw_node(self, node: Node, atoms: Sequence[str], places: Mapping[int, Point]) -> str:
        """Draws a node and all below it; returns its name."""
        x, y = _placed(places[id(node)])
        if isinstance(node, Leaf):
            atom = atoms[node.atom]
            self._reach(x, y, len(atom) * _LETTER / 2 + 4, _LINE)
            self.texts.append(_text(x, y, atom, None))
            return atom
        below = [self.draw_node(child, atoms, places) for child in node.children]
        for child in node.children:
            end = _placed(places[id(child)])
            self.arcs.append(empty_element("polyline", points=_written([(x, y), end])))
        width = max(12.0, len(node.variable) * _LETTER / 2 + 7)
        self._reach(x, y, width + 4, 16)
        circle = empty_element("ellipse", cx=_rounded(x), cy=_rounded(y), rx=_rounded(width), ry="12.0")
        self.states.append(element("g", circle, _text(x, y, node.variable, None), class_="state"))
        self.said.append(f"Below {node.variable}: {'; '.join(below)}.")
        return node.variable

    def document(self, legend: Sequence[str] = ()) -> str:
        """The picture as a file, on white, with lines of text below it."""
        left, bottom = min(x for x, _ in self.corners), max(y for _, y in self.corners)
        for number, line in enumerate(legend, 1):
            y = bottom + number * _LINE
            self.texts.append(_text(left, y - 4, line, "legend"))
            self.corners.append((left + len(line) * _LETTER, y))
        return f'<?xml version="1.0" encoding="utf-8"?>\n{self.svg(alone=True)}\n'

    def svg(self, *, alone: bool = False) -> Html:
        """The picture; with `alone` it has its own style, on white."""
        xs, ys = zip(*self.corners, strict=True)
        left, top = min(xs) - _MARGIN, min(ys) - _MARGIN
        width, height = max(xs) + _MARGIN - left, max(ys) + _MARGIN - top
        x, y, wide, high = map(_rounded, (left, top, width, height))
        ground = empty_element("rect", x=x, y=y, width=wide, height=high, fill="white")
        before = [element("style", Html(_STYLE)), ground] if alone else []
        return element(
            "svg",
            joined([*before, *self.arcs, *self.texts, *self.states]),
            class_="automaton",
            viewBox=f"{x} {y} {wide} {high}",
            width=round(width),
            height=round(height),
            role="img",
            aria_label=" ".join(self.said),
            xmlns="http://www.w3.org/2000/svg" if alone else None,
        )

    def _draw_arrow(self, points: Sequence[Point], *, faint: bool = False, arc: Arc | None = None) -> None:
        (tail_x, tail_y), (x, y) = points[max(0, len(points) - 3)], points[-1]
        angle = math.atan2(y - tail_y, x - tail_x)
        wings = [
            (x - _HEAD * math.cos(angle + turn), y - _HEAD * math.sin(angle + turn)) for turn in (0.42, -0.42)
        ]
        for point in points:
            self._reach(*point, 4, 4)
        shaft = empty_element("polyline", points=_written(points))
        head = empty_element("polygon", points=_written([(x, y), *wings]))
        joins = None if arc is None else f"{arc[0]} {arc[1]}"
        self.arcs.append(element("g", shaft, head, class_="arc faint" if faint else "arc", data_arc=joins))

    def _reach(self, x: float, y: float, wide: float, high: float) -> None:
        self.corners += [(x - wide, y - high), (x + wide, y + high)]


def _text(x: float, y: float, said: str, style: str | None) -> Html:
    return element("text", text(said, most=len(said)), x=_rounded(x), y=_rounded(y + 4), class_=style)


def _placed(point: Point) -> Point:
    """The position in the picture of a point in inches, whose axis points upwards."""
    return point[0] * _INCH, -point[1] * _INCH


def _rounded(number: float) -> str:
    return f"{number:.1f}"


def _written(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _place_nodes(node: Node, atoms: Sequence[str], left: float, y: float, places: dict[int, Point]) -> float:
    """Positions a node and all below it, in inches, by their identity; returns their total width."""
    if isinstance(node, Leaf):
        width = len(atoms[node.atom]) * _WIDE
        places[id(node)] = left + width / 2, y
        return width
    right = left
    for child in node.children:
        right += _place_nodes(child, atoms, right, y - _LEVEL, places) + _GAP
    right -= _GAP
    first, last = (places[id(child)][0] for child in (node.children[0], node.children[-1]))
    places[id(node)] = (first + last) / 2, y
    return right - left
