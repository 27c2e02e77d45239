"""Funnels: the number of starts that reach each step, as a table and as a picture (docs/funnels.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estero.answers.frames import HeldTable

if TYPE_CHECKING:
    from estero.plots import Picture


class Funnel(HeldTable):
    """The number of starts that reach each step: one row for each step, or each step of each partition.

    The columns: the partition columns, if it is by partition; ``step`` (int64, from 1); ``part`` (string),
    the part of the pattern that leads to the step; ``starts`` (int64), the number of starts that reach at
    least this step; ``share`` (float64), that number divided by the one of the first step; and, where events
    have a time, ``median_wait``, the time from the step before (a duration, or float64 ticks; NULL for the
    first step).
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
