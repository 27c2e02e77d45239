"""Rows that are read as a whole: as Arrow tables and as frames of pandas and Polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.in_memory import OBJECTS_TO_ARROW, check_polars, pandas_of, polars_of
from estero.answers.shown_values import shown_rows
from estero.errors import legible

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Frames(ABC):
    """Rows of the columns of `schema`, in the forms that hold all of them."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns."""

    @abstractmethod
    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        """All rows for the method `asked`, whose result takes `factor` times the memory of Arrow's own."""

    def to_arrow(self) -> pa.Table:
        """All rows in memory, as an Arrow table; `LimitExceeded` if they would fill it."""
        return self._held("to_arrow()")

    def to_pandas(self) -> pd.DataFrame:
        """All rows in memory, as a pandas data frame; lists of events are arrays of dicts."""
        return pandas_of(self._held("to_pandas()", OBJECTS_TO_ARROW))

    def to_polars(self) -> pl.DataFrame:
        """All rows in memory, as a Polars data frame; EnvironmentProblem without Polars.

        DataError for intervals of months and days, which Polars does not have.
        """
        check_polars(self.schema)
        return polars_of(self._held("to_polars()"))


class Batches(Frames):
    """Rows that can be read batch by batch, too."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches of `schema`, made as they are asked for."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)


class HeldTable(Frames):
    """A small table in memory, which prints as its first rows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        del asked, factor
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def _printed(self, most: int | None = None, text: Callable[[object], str] = str) -> str:
        """The first rows below the names of the columns, with each column as wide as its longest text."""
        first = self._table.slice(0, most).to_batches()
        rows = [self._table.column_names]
        rows += [
            ["" if value is None else text(value) for value in row.values()]
            for batch in first
            for row in shown_rows(batch)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        form = "  ".join(f"{{:<{width}}}" for width in widths)
        lines = [form.format(*row).rstrip() for row in rows]
        more = 0 if most is None else self._table.num_rows - most
        return legible("\n".join([*lines, *([f"and {more:,} more"] if more > 0 else [])]), lines=True)
