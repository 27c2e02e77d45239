"""Tables scanned anew at each reading, in the columns needed: Polars' lazy frames, PyArrow datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.classify.column_names import POSITION
from estero.errors import DataError

if TYPE_CHECKING:
    import polars as pl
    from pyarrow import dataset as ds

_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class LazyFrame:
    """A lazy frame of Polars: each call runs it anew, batch by batch, for these columns alone."""

    frame: pl.LazyFrame

    @property
    def schema(self) -> pa.Schema:
        """Its columns, known without running it; raises `DataError` if it cannot be run."""
        import polars as pl

        try:
            return pl.DataFrame(schema=self.frame.collect_schema()).to_arrow().schema
        except pl.exceptions.PolarsError as error:
            raise _failed(error) from error

    def __call__(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A new stream of its rows."""
        frame = self.frame if columns is None else self.frame.select(columns)
        return pa.RecordBatchReader.from_batches(LazyFrame(frame).schema, _batches(frame))

    def numbered(
        self, columns: Sequence[str], one_of: Sequence[Mapping[str, frozenset[str]]]
    ) -> pa.RecordBatchReader:
        """A new stream of rows with their numbers in ``__position`` (int64), in these columns.

        The frame itself, which may be a scan, leaves rows out unless they have, for one of `one_of`, in each
        of its columns one of its strings.
        """
        import polars as pl

        wanted = pl.any_horizontal(
            pl.all_horizontal(
                pl.col(name).cast(pl.String).is_in(sorted(texts)) for name, texts in strings.items()
            )
            for strings in one_of
        )
        number = pl.col(POSITION).cast(pl.Int64)
        frame = self.frame.with_row_index(POSITION).filter(wanted).select(*columns, number)
        return pa.RecordBatchReader.from_batches(LazyFrame(frame).schema, _batches(frame))


def _batches(frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    import polars as pl

    try:
        for part in frame.collect_batches(chunk_size=_ROWS, maintain_order=True):
            yield from part.to_arrow().to_batches()
    except pl.exceptions.PolarsError as error:
        raise _failed(error) from error


def _failed(error: Exception) -> DataError:
    return DataError(
        f"Polars cannot run this lazy frame: {error}", hint="frame.collect() shows the same error"
    )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset of PyArrow: each call scans it anew, for these columns alone."""

    dataset: ds.Dataset

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.dataset.schema

    def __call__(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A new stream of its rows."""
        scanner = self.dataset.scanner(columns=None if columns is None else list(columns), batch_size=_ROWS)
        return scanner.to_reader()
