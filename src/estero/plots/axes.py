"""The common parts of pictures of complex events: marks, frame, caption and legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, Literal

from estero.markup.colours import PALETTE
from estero.plots.picture import FAINT, GRID, INK

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from numpy.typing import NDArray

    Places = Sequence[float] | NDArray[np.float64]

_MARKERS: Final = "os^DvP"


def draw_marks(axes: Axes, x: Places, y: Places, *, number: int, label: str, size: float) -> None:
    """Draws the events that the label with this number marks, in its colour."""
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=_MARKERS[number // len(PALETTE) % len(_MARKERS)],
        color=PALETTE[number % len(PALETTE)],
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=0.6 if size > 5 else 0.2,
        label=label,
        zorder=3,
    )


def draw_frame(axes: Axes, *, grid: Literal["x", "both"]) -> None:
    """Draws an axis below without a box around, and a grid behind everything."""
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(axis="both", colors=INK, length=0)
    axes.grid(axis=grid, color=GRID, lw=0.8)
    axes.set_axisbelow(True)


def draw_caption(axes: Axes, title: str | None, drawn: int, hidden: int) -> None:
    """Draws the title, and the numbers of complex events that are drawn and that are not."""
    said = "No complex events" if not drawn else f"{drawn:,} complex event{'s' if drawn > 1 else ''}"
    said = f"The first {said}; {hidden:,} more not shown" if hidden else said
    lines = said if title is None else f"{title}\n{said}"
    axes.set_title(lines, loc="left", color=INK, fontsize=10, linespacing=1.5)


def draw_legend(axes: Axes, handles: Mapping[str, Any]) -> Legend | None:
    """Draws the labels with their symbols above the axes; nothing if there are none."""
    if not handles:
        return None
    return axes.legend(
        handles=list(handles.values()),
        labels=list(handles),
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2,
        ncols=min(len(handles), 8),
        frameon=False,
        labelcolor=INK,
        handletextpad=0.1,
        columnspacing=1.2,
    )


def draw_scale(axes: Axes, places: Places, *, dates: bool, unit: str) -> None:
    """Sets ticks for these positions on the axis below: dates, or whole numbers of a unit."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if not len(places):
        axes.set_xticks([])
    elif dates:
        locator = AutoDateLocator(tz=UTC, minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel(unit, color=FAINT, loc="right")
        if min(places) == max(places):
            axes.set_xlim(places[0] - 1, places[0] + 1)
