"""Funnels: how many starts come how far, as a table and as a picture (docs/funnels.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.answers.in_memory import pandas_of, polars_of
from estero.answers.shown_values import shown_rows
from estero.errors import legible

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from estero.plots import Picture


class Funnel:
    """How many starts come how far: one row for each step, or for each step of each partition.

    The columns: the partition columns, if it is by partition; ``step`` (int64, from 1); ``part`` (string),
    what leads to the step in the pattern; ``starts`` (int64), how many starts reach at least this step;
    ``share`` (float64), that number as a share of the first step's; where the events have a time,
    ``median_wait``, how long the starts that reach this step took from the one before (a duration, or float64
    ticks; NULL for the first step).
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """The funnel as an Arrow table."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """The funnel as a pandas data frame."""
        return pandas_of(self._table)

    def to_polars(self) -> pl.DataFrame:
        """The funnel as a Polars data frame."""
        return polars_of(self._table)

    def plot(self) -> Picture:
        """A bar for each step, with its number of starts, its share and the wait before it."""
        from estero.plots import plot_funnel

        return plot_funnel(self._table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        rows = [self._table.column_names, *([*map(_shown, row.values())] for row in _rows(self._table))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        form = "  ".join(f"{{:<{width}}}" for width in widths)
        return legible("\n".join(form.format(*row).rstrip() for row in rows), lines=True)

    def _repr_html_(self) -> str:
        from estero.answers.as_html import funnel_html  # for notebooks only

        return funnel_html(self._table)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, to be shown."""
    return [row for batch in table.to_batches() for row in shown_rows(batch)]


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
