"""The picture of a funnel: a bar for each step, with its number of starts, their share, and the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from estero.answers.shown_values import shown_rows
from estero.arguments import checked
from estero.errors import legible
from estero.markup.colours import PALETTE
from estero.plots.picture import FAINT, INK, SHADE, WIDTH, Picture, styled

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

_BAR_HEIGHT = 0.5
"""The height of a step in inches."""


@checked
def plot_funnel(funnel: pa.Table) -> Picture:
    """Bars from top to bottom, in the order of the table; its columns are those of `Funnel`.

    Raises ValueError for a table without them.
    """
    from matplotlib.figure import Figure

    lacking = [name for name in _NEEDED if name not in funnel.column_names]
    if lacking:
        raise ValueError(f"the table lacks {', '.join(lacking)}: draw one that answer.funnel() gives")

    rows = [row for batch in funnel.to_batches() for row in shown_rows(batch)]
    most = max((row["starts"] for row in rows), default=0) or 1
    with styled():
        figure = Figure(figsize=(WIDTH, _BAR_HEIGHT * max(len(rows), 1) + 0.4), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            _draw_step(axes, place, row, most)
        axes.set_yticks(range(len(rows)), [legible(_name(row)) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, most * 1.25)
        axes.xaxis.set_visible(False)
        axes.tick_params(axis="y", length=0, colors=INK)
        for side in axes.spines.values():
            side.set_visible(False)
    return Picture(figure)


def _draw_step(axes: Axes, place: int, row: dict[str, Any], most: int) -> None:
    axes.barh(place, most, height=0.72, color=SHADE)
    axes.barh(place, row["starts"], height=0.72, color=PALETTE[0])
    share, wait = row["share"], row.get("median_wait")
    said = f"{row['starts']:,}" if share is None else f"{row['starts']:,}  {share:.1%}"
    axes.text(most * 1.02, place - (0.14 if wait is not None else 0), said, va="center", color=INK)
    if wait is not None:
        said = f"after {_wait(wait)} (median)"
        axes.text(most * 1.02, place + 0.22, said, va="center", color=FAINT, size=7)


def _name(row: dict[str, Any]) -> str:
    keys = [str(value) for name, value in row.items() if name not in _COLUMNS]
    return "  ".join([*keys, f"{row['step']}  {row['part']}"])


_NEEDED = ("step", "part", "starts", "share")
_COLUMNS = {*_NEEDED, "median_wait"}


def _wait(wait: str | float) -> str:
    return wait if isinstance(wait, str) else f"{wait:g}"
