"""A q-tree as a tree: variables in circles, atoms below them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estero.arguments import checked
from estero.automata.joins.q_tree import Inner, Leaf, Node
from estero.markup.colours import PALETTE
from estero.plots.layout import Point
from estero.plots.picture import FAINT, INK, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVEL, GAP = 0.75, 0.3
"""Inches: from a node to those below it, and between two atoms."""
LETTER, MARGIN = 0.082, 0.35
"""Inches: the mean width of a letter, and around the picture."""


@checked
def plot_q_tree(tree: Node, atoms: Sequence[str]) -> Picture:
    """The tree from the top down; `atoms` are their texts by number."""
    from matplotlib.figure import Figure

    places: dict[int, Point] = {}
    width = place_nodes(tree, atoms, 0.0, 0.0, places)
    depth = max(-y for _, y in places.values())
    with styled():
        figure = Figure(figsize=(max(1.0, width) + 2 * MARGIN, depth + 2 * MARGIN))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-MARGIN, max(1.0, width) + MARGIN)
        axes.set_ylim(-depth - MARGIN, MARGIN)
        _draw(axes, tree, atoms, places)
    return Picture(figure)


def place_nodes(node: Node, atoms: Sequence[str], left: float, y: float, places: dict[int, Point]) -> float:
    """Places a node and all below it, in inches, by their identity; returns their width together."""
    if isinstance(node, Leaf):
        width = len(atoms[node.atom]) * LETTER
        places[id(node)] = left + width / 2, y
        return width
    right = left
    for child in node.children:
        right += place_nodes(child, atoms, right, y - LEVEL, places) + GAP
    right -= GAP
    first, last = (places[id(child)][0] for child in (node.children[0], node.children[-1]))
    places[id(node)] = (first + last) / 2, y
    return right - left


def _draw(axes: Axes, node: Node, atoms: Sequence[str], places: dict[int, Point]) -> None:
    x, y = places[id(node)]
    for child in node.children if isinstance(node, Inner) else ():
        axes.plot([x, places[id(child)][0]], [y, places[id(child)][1]], color=FAINT, linewidth=1.0, zorder=1)
        _draw(axes, child, atoms, places)
    text = node.variable if isinstance(node, Inner) else atoms[node.atom]
    shape = {"boxstyle": "circle,pad=0.35" if isinstance(node, Inner) else "square,pad=0.25"}
    edge = PALETTE[0] if isinstance(node, Inner) else "none"
    axes.text(
        x, y, text, color=INK, ha="center", va="center", zorder=2, bbox={**shape, "fc": "white", "ec": edge}
    )
