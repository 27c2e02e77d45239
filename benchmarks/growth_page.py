"""Growth curves (JSON) as a page and a picture: each measured curve beside the shape that was promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from estero.plots.picture import FAINT, GRID, INK, PALETTE, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOSE = 0.04
"""A curve has a shape if the best curve of that shape misses it by so much at most, in parts of the
values (root of the mean square)."""


class Point(NamedTuple):
    """What an event costs at one size."""

    size: int
    nodes: float
    """Made for an event, on average."""
    most: int
    """Made for one of the last events."""
    steps: float | None
    """For an item of an answer."""
    ns: float
    """Nanoseconds for an event."""


SHAPES: dict[str, Callable[[float], float]] = {
    "flat": lambda _: 0.0,
    "log n": math.log2,
    "log² n": lambda size: math.log2(size) ** 2,
}


_OFF = " | ".join(f"off from {shape}" for shape in SHAPES)


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
    """The first of `SHAPES` that the values have, or "steeper"."""
    close = (shape for shape in SHAPES if fitted(sizes, values, shape).miss <= CLOSE)
    return next(close, "steeper")


def kept(curve: dict[str, Any]) -> bool:
    """Whether a curve is no steeper than was promised."""
    order = [*SHAPES, "steeper"]
    points = _points(curve)
    found = shape_of([point.size for point in points], [point.nodes for point in points])
    return order.index(found) <= order.index(curve["shape"])


def _points(curve: dict[str, Any]) -> list[Point]:
    return [Point(**point) for point in curve["points"]]


def page(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: dict[str, Any]) -> Iterator[str]:
    yield "# Growth"
    yield ""
    yield "Written by `python -m benchmarks.growth --write`. What an event costs as the window grows, or, for"
    yield "the ED-index, as the stream does, since it has no window. Every event is relevant. How:"
    yield "[README.md](README.md)."
    yield ""
    yield from (f"- {name}: {value}" for name, value in figures["setting"].items())
    yield ""
    yield "Nodes and steps are counted: they are the same on every machine. Times are not; they also grow"
    yield "where what waits no longer fits the caches, whatever the shape of the work."
    yield ""
    yield "![Nodes and time for an event, over the window](results/growth.svg)"
    yield ""
    yield f"| plan | query | promised | measured | kept | × | best curve | {_OFF} | time × |"
    yield "|---|---|---|---|---|--:|---|--:|--:|--:|--:|"
    yield from map(_summary, figures["curves"])
    yield ""
    yield "“×” is from the smallest size to the largest: from 100 to 1,000,000, what is proportional to log n"
    yield "grows ×3 and what is to log² n ×9. “Off” is by how much the best curve of that shape misses the"
    yield "nodes, in parts of them (least squares). “Measured” is the first shape from which they are off by"
    yield f"{CLOSE:.0%} at most; the promise is kept where that is the promised one or flatter."
    for curve in figures["curves"]:
        yield ""
        yield f"## {curve['plan']}: {curve['name']}"
        yield ""
        yield from _table(curve)


def _summary(curve: dict[str, Any]) -> str:
    points = _points(curve)
    sizes, nodes = [point.size for point in points], [point.nodes for point in points]
    misses = " | ".join(f"{fitted(sizes, nodes, shape).miss:.1%}" for shape in SHAPES)
    shape = shape_of(sizes, nodes)
    return (
        f"| {curve['plan']} | {curve['name']} | {curve['shape']} | {shape} "
        f"| {'yes' if kept(curve) else '**no**'} | {_times(nodes)} | {_formula(sizes, nodes, shape)} "
        f"| {misses} | {_times([point.ns for point in points])} |"
    )


def _times(values: Sequence[float]) -> str:
    return f"{values[-1] / values[0]:.2f}"


def _formula(sizes: Sequence[int], values: Sequence[float], shape: str) -> str:
    shape = shape if shape in SHAPES else "log² n"
    fit = fitted(sizes, values, shape)
    if shape == "flat":
        return f"{fit.base:.2f}"
    sign = "−" if fit.base < 0 else "+"
    return f"{fit.factor:.3f} {shape} {sign} {abs(fit.base):.2f}"


def _table(curve: dict[str, Any]) -> Iterator[str]:
    points = _points(curve)
    sizes, nodes = [point.size for point in points], [point.nodes for point in points]
    fit = fitted(sizes, nodes, curve["shape"])
    yield (
        f"| {curve['over']} | {curve['nodes']} for an event | {curve['shape']} | at most "
        "| steps for an item of an answer | ns for an event |"
    )
    yield "|--:|--:|--:|--:|--:|--:|"
    for point in points:
        steps = "–" if point.steps is None else f"{point.steps:.2f}"
        yield (
            f"| {point.size:,} | {point.nodes:.3f} | {fit.at(point.size, curve['shape']):.3f} "
            f"| {point.most} | {steps} | {point.ns:,.0f} |"
        )


def picture(figures: dict[str, Any]) -> Picture:
    """Nodes and time for an event over the size: points as measured, dashed the best curve of the shape."""
    with styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        nodes, times = figure.subplots(1, 2)
        for number, curve in enumerate(figures["curves"]):
            points, colour = _points(curve), PALETTE[number % len(PALETTE)]
            label = f"{curve['plan']}: {curve['name']} ({curve['shape']})"
            _draw(nodes, points, [point.nodes for point in points], curve["shape"], colour, label)
            _draw(times, points, [point.ns / 1e3 for point in points], curve["shape"], colour, "")
        _frame(nodes, "nodes for an event")
        _frame(times, "microseconds for an event")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7.5)
    return Picture(figure)


def _draw(
    axes: Axes, points: Sequence[Point], values: Sequence[float], shape: str, colour: str, label: str
) -> None:
    sizes = [point.size for point in points]
    fit = fitted(sizes, values, shape)
    along = np.geomspace(sizes[0], sizes[-1], 60)
    axes.plot(along, [fit.at(size, shape) for size in along], "--", color=colour, linewidth=0.9)
    axes.plot(sizes, values, "o", color=colour, markersize=3.6, label=label or None)


def _frame(axes: Axes, title: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.set_xlabel("events in the window, or events seen", color=INK)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(colors=FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
