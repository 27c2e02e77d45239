"""Parquet files: columns and rows from their footers, and batches if Arrow and DuckDB read them alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from estero.classify.vectors.arrow_types import engine_type, value_type
from estero.events.database import Connection
from estero.events.files.arrow_readers import check_valid

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, FileMetaData, RowGroupMetaData

_ROWS: Final = 131_072
_FEW_BYTES: Final = 3
"""The bytes of a Parquet file per string below which most strings are repetitions."""


@dataclass(frozen=True, slots=True)
class PlainParquet:
    """Parquet files of the same columns, which Arrow and DuckDB read alike; each call reads them anew.

    Strings with few distinct values are read as dictionaries; `schema` says which.
    """

    files: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A stream of their rows, with these columns."""
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet  # see below

        encoded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        places = [self.schema.get_field_index(name) for name in schema.names]
        nulls: dict[pa.DataType, pa.Array] = {}
        for file in self.files:
            with pyarrow.parquet.ParquetFile(file, read_dictionary=encoded) as opened:
                for there, groups in _alike(opened.metadata, places):
                    columns = [schema.names[place] for place in there]
                    for batch in opened.iter_batches(_ROWS, groups, columns=columns):
                        chosen = _with_nulls(batch.select(columns), schema, nulls)
                        check_valid(chosen)
                        yield chosen


def _alike(footer: FileMetaData, places: Sequence[int]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Adjacent row groups, with those of the columns at some indexes that have values in them.

    Reading a column takes as long if all of it is NULL; if there is no other, the first is read.
    """
    with_values = (_with_values(footer.row_group(group), places) for group in range(footer.num_row_groups))
    for columns, groups in groupby(enumerate(with_values), itemgetter(1)):
        yield columns, [group for group, _ in groups]


def _with_values(group: RowGroupMetaData, places: Sequence[int]) -> tuple[int, ...]:
    """The columns at some indexes that have, or may have, a value in a row group."""
    filled = (number for number, place in enumerate(places) if not _is_null(group.column(place)))
    return tuple(filled) or (0,)


def _is_null(chunk: ColumnChunkMetaData) -> bool:
    """Whether the statistics of a column say that all of its values are NULL."""
    known = chunk.statistics
    return known is not None and known.has_null_count and bool(known.null_count == chunk.num_values)


def _with_nulls(
    batch: pa.RecordBatch, schema: pa.Schema, nulls: dict[pa.DataType, pa.Array]
) -> pa.RecordBatch:
    """A batch with all columns of a schema: missing ones are NULL and share their memory."""
    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place >= 0:
            columns.append(batch.column(place).cast(field.type))
            continue
        if field.type not in nulls:
            nulls[field.type] = pa.nulls(_ROWS, field.type)
        columns.append(nulls[field.type].slice(0, batch.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_parquet(files: Sequence[str]) -> PlainParquet | None:
    """The files as Arrow reads them; None if DuckDB has to read them."""
    import pyarrow.parquet  # see below

    common: pa.Schema | None = None
    try:
        for file in files:
            schema = _plain_columns(pyarrow.parquet.read_metadata(file))
            if schema is None or (common is not None and not common.equals(schema)):
                return None
            common = schema
    except (pa.ArrowException, OSError):
        return None
    return None if common is None else PlainParquet(tuple(files), common)


def _plain_columns(footer: FileMetaData) -> pa.Schema | None:
    """The columns of a file as Arrow will read them; None if DuckDB has other types for some."""
    restored = footer.schema.to_arrow_schema()
    if len(footer.schema) != len(restored) or not footer.num_row_groups:
        return None  # some are nested
    return (
        pa.schema(
            [pa.field(field.name, _plain_type(field, footer, place)) for place, field in enumerate(restored)]
        )
        if all(_is_plain(field, footer.schema.column(place)) for place, field in enumerate(restored))
        else None
    )


def _is_plain(field: pa.Field, column: ColumnSchema) -> bool:
    kind = value_type(field.type)
    if pa.types.is_timestamp(kind):
        return column.physical_type == "INT64" and kind.unit in {"us", "ns"}
    if engine_type(pa.field(field.name, kind)) == "VARCHAR":
        return str(column.logical_type) == "String"
    return engine_type(pa.field(field.name, kind)) is not None


def _plain_type(field: pa.Field, footer: FileMetaData, place: int) -> pa.DataType:
    """The type in which a column is read: a dictionary for strings with few bytes per value."""
    kind = value_type(field.type)
    if engine_type(pa.field(field.name, kind)) != "VARCHAR":
        return kind
    first = footer.row_group(0).column(place)
    few = first.has_dictionary_page and first.total_uncompressed_size < _FEW_BYTES * first.num_values
    return pa.dictionary(pa.int32(), pa.string()) if few else pa.string()


def schema_in_footers(files: Iterable[str]) -> tuple[pa.Schema | None, bool]:
    """The columns of Parquet files according to the first one, and whether any of them has a row.

    DuckDB does not give the zones of timestamps. None for the columns of files that cannot be read, for which
    DuckDB has better messages.
    """
    import pyarrow.parquet  # 20 ms, which other events save

    schema = None
    for file in files:
        try:
            footer = pyarrow.parquet.read_metadata(file)
            schema = schema or footer.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            return schema, True
        if footer.num_rows:
            return schema, True
    return schema, False


def columns_in_footer(file: str) -> frozenset[tuple[str, str, str]] | None:
    """The columns of a Parquet file with their types, in any order; None if it cannot be read."""
    import pyarrow.parquet  # see above

    try:
        with Path(file).open("rb") as opened:  # Arrow takes a name with a colon for an address
            columns = pyarrow.parquet.read_metadata(opened).schema
    except (pa.ArrowException, OSError):
        return None
    described = (columns.column(place) for place in range(len(columns)))
    return frozenset((one.path, one.physical_type, str(one.logical_type)) for one in described)


def rows_in_footers(files: Iterable[str]) -> int:
    """The number of rows of Parquet files."""
    import pyarrow.parquet  # see above

    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)


def names_in_parquet(file: str, connection: Connection) -> Sequence[str]:
    """The names of the columns of a Parquet file; nested ones are left out."""
    query = "SELECT name, num_children FROM parquet_schema(?)"
    rows = iter(connection.execute(query, [file]).fetchall())
    next(rows)  # the root
    names = []
    for name, children in rows:
        names.append(name)
        below = children or 0
        while below:
            below += (next(rows)[1] or 0) - 1
    return names
