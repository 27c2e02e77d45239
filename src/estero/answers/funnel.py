"""Funnels: how many starts come how far, as a table and as a picture (docs/funnels.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estero.answers.frames import HeldTable

if TYPE_CHECKING:
    from estero.plots import Picture


class Funnel(HeldTable):
    """How many starts come how far: one row for each step, or for each step of each partition.

    The columns: the partition columns, if it is by partition; ``step`` (int64, from 1); ``part`` (string),
    what leads to the step in the pattern; ``starts`` (int64), how many starts reach at least this step;
    ``share`` (float64), that number as a share of the first step's; where the events have a time,
    ``median_wait``, how long the starts that reach this step took from the one before (a duration, or float64
    ticks; NULL for the first step).
    """

    def plot(self) -> Picture:
        """A bar for each step, with its number of starts, its share and the wait before it."""
        from estero.plots import plot_funnel

        return plot_funnel(self._table)

    def __repr__(self) -> str:
        return self._printed(text=_shown)

    def _repr_html_(self) -> str:
        from estero.answers.as_html import funnel_html  # for notebooks only

        return funnel_html(self._table)


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
