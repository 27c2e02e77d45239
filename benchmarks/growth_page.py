"""Growth curves (JSON) as a page and a picture: each measured curve beside the shape that was promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from estero.markup.colours import PALETTE
from estero.plots.picture import FAINT, GRID, INK, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOSE = 0.04
"""A curve has a shape if the best curve of that shape misses it by so much at most, in parts of the
values (root of the mean square)."""


class Point(NamedTuple):
    """What an event costs at one size."""

    size: int
    nodes: float
    """Counted for an event, on average."""
    most: int | None
    """Made for one of the last events."""
    steps: float | None
    """For an item of an answer, from the first two complex events of each end."""
    ns: float
    """Nanoseconds for an event."""
    gap: float | None = None
    """The most steps from one complex event to the next, for an item of the latter, in full listings."""


SHAPES: dict[str, Callable[[float], float]] = {
    "flat": lambda _: 0.0,
    "log n": math.log2,
    "log² n": lambda size: math.log2(size) ** 2,
    "n": float,
}


class Fit(NamedTuple):
    """base + factor × shape(size), by least squares; `miss` is the root of the mean square."""

    base: float
    factor: float
    miss: float

    def at(self, size: float, shape: str) -> float:
        """The curve."""
        return self.base + self.factor * SHAPES[shape](size)


def fitted(sizes: Sequence[int], values: Sequence[float], shape: str) -> Fit:
    """The best curve of a shape that does not fall; misses count in parts of the values."""
    x, y = np.array([SHAPES[shape](size) for size in sizes]), np.array(values)
    factor, base = np.polyfit(x, y, 1, w=1 / y) if np.ptp(x) > 0 else (0.0, 0.0)
    if factor <= 0:
        factor, base = 0.0, (1 / y).sum() / (1 / y**2).sum()
    miss = np.sqrt((((base + factor * x) / y - 1) ** 2).mean())
    return Fit(float(base), float(factor), float(miss))


def shape_of(sizes: Sequence[int], values: Sequence[float]) -> str:
    """The first of `SHAPES` that the values have, or "steeper".

    Where values fall, a shape is asked of the least curve above them that does not.
    """
    values = np.maximum.accumulate(values).tolist()
    close = (shape for shape in SHAPES if fitted(sizes, values, shape).miss <= CLOSE)
    return next(close, "steeper")


def kept(curve: dict[str, Any]) -> bool:
    """Whether a curve is no steeper than was promised."""
    order = [*SHAPES, "steeper"]
    return order.index(_measured(curve)) <= order.index(curve["shape"])


def _measured(curve: dict[str, Any]) -> str:
    """The shape of a curve; of numbers, behind the first size at which some are longer than words.

    At that size itself a part of them still are words.
    """
    points = _points(curve)
    if curve["asked"] != "recognize":
        points = [point for point in points if point.nodes > 1][1:] or points
    return shape_of([point.size for point in points], [point.nodes for point in points])


def _points(curve: dict[str, Any]) -> list[Point]:
    return [Point(**point) for point in curve["points"]]


PLANS = {
    "cea": "CEA + tECS",
    "cea-spans": "CEA + tECS, spans",
    "cea-aged": "CEA + tECS, ages",
    "cea-starts": "sets of starts",
    "cea-split": "CEA + tECS with registers",
    "chain-ed-index": "chain + ED-index",
    "pcea-heap": "PCEA + heap",
    "pcea-ordered-index": "PCEA + ordered index",
}
"""Kernels as the page calls them."""

SHOWN = (100, 1_000, 10_000, 100_000, 1_000_000)


HEAD = """\
# Growth

Written by `python -m benchmarks.growth --write`. The cost of an event as the window (`w`) grows,
or the stream without a window. Every event matters. How: [README.md](README.md).
"""

COUNTED = """\
The counts are the same on every machine. Times are not; they also grow when the waiting runs no longer
fit the caches, whatever the shape of the work. For an event these are counted:

- CEA + tECS: nodes made, and states in which runs are; with spans, those of all spans; with registers, runs
  that are told apart; with `LIMIT … PER`, also nodes that are counted anew at the ends of complex events
- sets of starts: nodes made as results are read once more, and states in which starts are
- chain + ED-index: run nodes and entries made, and entries looked at
- PCEA: products and heap nodes made
- numbers: one step in words, and words of all numbers that are longer, after the first window; shapes are
  determined after the first size at which there are some. Such numbers are products over blocks whose lengths
  are powers of two, and how a window lies to them matters by a sixth: each is the mean over four windows of
  one octave, 0.71 to 1.19 times as long

![What an event makes, over windows and streams](results/growth.svg)
"""

LISTED = 20_000
"""Complex events of full listings, at most."""

READ_SO = f"""
“Measured” is the first shape whose best curve, by least squares over all sizes, is off by {CLOSE:.0%} at
most; the promise is kept where that is the promised one or flatter. From 100 to 1,000,000 what is
proportional to log n grows ×3, and what is to log² n ×9; rows of what is proportional to n end at smaller
windows. “At most” is for one of the last 512 events;
“steps” are nodes visited for an item of an answer, for the first two complex events of each end; “widest gap”
is the most that are visited from one complex event to the next, for an item of the latter and one more, where
the last ends are listed in full, or up to {LISTED:,} complex events. A single event can make more than others
do: runs that grow too old together leave with one event, and a start that is decided is read once more; that
is amortised, as the average shows. “ns” are of recognition, or of the whole number, for
an event in a window or stream of that size. “Events/s” are counted from the text of the query and a table
in memory on, over as many events as the longest stream has (100,000 where rows end at smaller windows),
classification included; with windows of 10,000 events, or the largest of the row. Both are of elapsed time,
those of numbers of processor time.
"""


def page(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    setting = [f"- {name}: {value}" for name, value in figures["setting"].items()]
    return "\n".join([HEAD, *setting, "", COUNTED, *_table(figures["curves"]), READ_SO])


def _table(curves: Sequence[dict[str, Any]]) -> Iterator[str]:
    sizes = " | ".join(f"{size:,}" for size in SHOWN)
    yield (
        f"| query | plan | promised | measured | kept | {sizes} | at most | steps for an item "
        "| widest gap, at 100 | at the end | ns at 10,000 | ns at the end | events/s |"
    )
    yield f"|---|---|---|---|---|{'--:|' * (len(SHOWN) + 7)}"
    yield from map(_summary, curves)


def _summary(curve: dict[str, Any]) -> str:
    points = _points(curve)
    by_size = {point.size: point for point in points}
    numbers = " | ".join(_number(by_size[size].nodes) if size in by_size else "–" for size in SHOWN)
    at = by_size.get(10_000)
    last = points[-1]
    plan = "numbers" if curve["asked"] != "recognize" else PLANS[curve["kernels"]]
    cells = [
        f"`{curve['name']}`",
        plan,
        curve["shape"],
        _measured(curve),
        "yes" if kept(curve) else "**no**",
        numbers,
        "–" if last.most is None else f"{last.most:,}",
        "–" if last.steps is None else f"{last.steps:.2f}",
        "–" if points[0].gap is None else f"{points[0].gap:.1f}",
        "–" if last.gap is None else f"{last.gap:.1f}",
        "–" if at is None else f"{at.ns:,.0f}",
        f"{last.ns:,.0f}",
        f"{curve['rate']:,}",
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 1_000 else f"{value:,.0f}"


def picture(figures: dict[str, Any]) -> Picture:
    """What an event makes over the size, in parts of what it makes at the smallest: a panel for each shape.

    Points as measured, dashed what is proportional to the shape.
    """
    with styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.6, 5.2), layout="constrained")
        for axes, shape in zip(figure.subplots(1, len(SHAPES), sharey=True), SHAPES, strict=True):
            curves = [curve for curve in figures["curves"] if curve["shape"] == shape]
            for number, curve in enumerate(curves):
                points = _points(curve)
                sizes, parts = (
                    [point.size for point in points],
                    [point.nodes / points[0].nodes for point in points],
                )
                colour = PALETTE[number % len(PALETTE)]
                axes.plot(sizes, parts, "o-", color=colour, markersize=2.6, linewidth=0.8)
            along = np.geomspace(SHOWN[0], SHOWN[-1], 60)
            first = SHAPES[shape](SHOWN[0]) or 1.0
            axes.plot(along, [(SHAPES[shape](size) or 1.0) / first for size in along], "--", color=INK)
            _frame(axes, f"promised: {shape}")
    return Picture(figure)


def _frame(axes: Axes, title: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"×{value:,.10g}"))
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.set_xlabel("events in the window, or seen", color=INK)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(colors=FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
