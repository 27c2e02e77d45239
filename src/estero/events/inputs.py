"""Events as users provide them → a relation that DuckDB reads, streaming if they stream."""

from __future__ import annotations

import functools
import itertools
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pyarrow as pa

from estero.classify.column_names import AlikeNamesError
from estero.classify.sql_texts import quoted
from estero.errors import DataError
from estero.events.database import Connection, lent_cursor, may_be_changed
from estero.events.files.arrow_files import arrow_schema, arrow_stream
from estero.events.files.file_formats import format_of, text_layout
from estero.events.files.json_objects import objects_in
from estero.events.files.parquet_files import (
    PlainParquet,
    columns_in_footer,
    names_in_parquet,
    plain_parquet,
    rows_in_footers,
    schema_in_footers,
)
from estero.events.files.partitions import FILE, Partitions, partitions_of
from estero.events.files.paths import as_file, files_of
from estero.events.files.readers import NAMING, NO_HIVE, rows_of
from estero.events.reading_errors import reading
from estero.events.scan import Scan, is_of_spark
from estero.events.tables.dict_columns import table_of_dicts
from estero.events.tables.lazy_tables import Dataset, LazyFrame
from estero.events.tables.pandas_frames import hint_at_index, table_of_frame
from estero.events.tables.readable_types import readable_table, with_readable_types
from estero.events.tables.relations import Relation
from estero.events.tables.shown_types import is_text
from estero.events.tables.whole_batches import whole_table

if TYPE_CHECKING:
    from estero.events.files.text_layout import TextLayout

_ACCEPTED = (
    "a path or glob (Parquet, CSV, JSON lines, Arrow), a list of these, a table of pyarrow, Polars, pandas "
    "or DuckDB, a list of dicts, an iterator of record batches, or a mapping of type name to any of these"
)


_OF_CSV_FILES = "leave them out (--delimiter, --columns, --timestamp-format)"

_TIMES = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)

Stream = Callable[[Sequence[str] | None], pa.RecordBatchReader]
"""A function that opens a stream of events, with all columns or with at least these."""


@dataclass(frozen=True, slots=True)
class Input:
    """One relation: a `query` in SQL over files, a `table` in memory, or a `stream` of record batches.

    `stream` opens a new stream at each call, but a `one_shot` input only once; it may leave out all columns
    but those that it is given. `file` is the path for errors, if there is one, `files` are those that it
    names, `layout` is that of text files, and `written` are the columns of files according to the first one.
    `hint` is added to errors about a missing column. `nothing` are the original columns of a table without
    rows. `of_pandas`: the table was a pandas frame; `of_dicts`: a list of dicts. `partitions` are the columns
    that directories of files name, `type_name` is the type of all events, if a mapping gives it. `made` are
    columns that the query adds. `plain` reads the files of a query without DuckDB.
    """

    query: str | None = None
    table: pa.Table | None = None
    stream: Stream | None = None
    schema: pa.Schema | None = None
    file: str | None = None
    one_shot: bool = False
    hint: str = ""
    nothing: pa.Schema | None = None
    files: tuple[str, ...] = ()
    layout: TextLayout | None = None
    written: pa.Schema | None = None
    of_pandas: bool = False
    of_dicts: bool = False
    partitions: Partitions | None = None
    type_name: str | None = None
    made: tuple[str, ...] = ()
    plain: PlainParquet | None = None

    @property
    def arrow_schema(self) -> pa.Schema | None:
        """The columns in which Arrow has or reads the events; None if only DuckDB can read them."""
        if self.plain is not None:
            return self.plain.schema
        return None if isinstance(self.stream, Relation) else self.schema

    @property
    def may_be_empty(self) -> bool:
        """Whether a column without a type may be one without values."""
        return self.layout is not None or self.nothing is not None

    @property
    def rows(self) -> int | None:
        """The number of events, if it is known without reading them."""
        if self.table is not None:
            return int(self.table.num_rows)
        if self.layout is not None:
            return self.layout.rows
        return rows_in_footers(self.files) if self.query is not None else None

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """The batches of a table or stream, with at least these columns."""
        if self.table is not None:
            return self.table.select(columns).to_reader()
        if self.plain is not None:
            return self.plain(columns)
        if self.stream is None:
            raise ValueError("files are not read here: DuckDB reads them itself")
        return self.stream(columns)

    def names(self, connection: Connection, described: Sequence[str]) -> Sequence[str]:
        """The names of the columns where DuckDB describes them: it has ``v_1`` for a ``V`` next to ``v``."""
        if self.files and self.query is not None and self.layout is None and may_be_changed(described):
            named = () if self.partitions is None else self.partitions.names
            in_file = names_in_parquet(self.files[0], connection)
            return [*(name for name in in_file if name not in named), *named, *self.made]
        return described

    def without_types(self, type_column: str | None, time: str | None) -> Input:
        """The input unchanged, unless it is a table without rows: then its columns have no type.

        pandas makes such columns floats or objects, Arrow NULLs or strings. No query is refused for the types
        of columns without values. Only a type column of strings keeps its type, and a time column that can be
        one.
        """
        if self.table is None or self.table.num_rows:
            return self
        fields = [
            field
            if (field.name == type_column and is_text(field.type))
            or (field.name == time and any(is_kind(field.type) for is_kind in _TIMES))
            else field.with_type(pa.null())
            for field in self.table.schema
        ]
        table = pa.schema(fields).empty_table()
        return replace(self, table=table, schema=table.schema, nothing=self.table.schema)


def open_input(events: object, csv_options: Mapping[str, object] | None = None) -> Input:
    """The relation for `events`; raises `DataError` if they cannot be read as one."""
    _refuse_misplaced(events)
    if isinstance(events, str | os.PathLike):
        return _open_path(os.fspath(events), csv_options)
    if csv_options:
        raise DataError("csv_options are for CSV files, but these events are not in a file")
    if isinstance(events, pa.Table):
        return _of_table(events)
    if isinstance(events, pa.RecordBatch):
        return _of_table(pa.Table.from_batches([events]))
    module = type(events).__module__.partition(".")[0]
    if module == "pandas" and hasattr(events, "columns"):
        return replace(_of_table(table_of_frame(events)), hint=hint_at_index(events), of_pandas=True)
    if isinstance(events, pa.RecordBatchReader):
        return _of_stream(iter(events), events.schema)
    if (scanned := _scanned(events, module)) is not None:
        return with_readable_types(Input(stream=scanned, schema=scanned.schema))
    if hasattr(events, "__arrow_c_stream__"):
        with reading():
            return _of_table(pa.table(events)) if module == "polars" else _of_exporter(events)
    if isinstance(events, list | tuple):
        return _of_list(events)
    if isinstance(events, Iterator):
        return _of_iterator(events)
    raise DataError(f"events of type {type(events).__name__} cannot be read", hint=f"pass {_ACCEPTED}")


def _refuse_misplaced(events: object) -> None:
    """Raises `DataError` for a scan in place of plain events, a class, and a Spark DataFrame."""
    if isinstance(events, Scan):
        raise DataError(
            "estero.scan(…) is given where plain events are expected",
            hint="scan a mapping as a whole, estero.scan({'A': a, 'B': b}, time=…); push events as they are",
        )
    if isinstance(events, type):
        raise DataError(f"{events.__name__} is a class, not events", hint=f"pass {_ACCEPTED}")
    if is_of_spark(events):
        raise DataError(
            "a DataFrame of Spark cannot be read in this process",
            hint="query.run(frame) and estero.spark.recognize(frame, query) take one, batch or streaming; "
            "frame.toArrow() is a table",
        )


def _scanned(events: Any, module: str) -> LazyFrame | Dataset | Relation | None:
    """A table that is executed or scanned when it is read, if `events` are one of a `module`."""
    if module == "polars" and hasattr(events, "collect"):
        return LazyFrame(events)
    if module == "pyarrow" and hasattr(events, "scanner"):
        return Dataset(events)
    return Relation(events) if type(events).__name__ == "DuckDBPyRelation" else None


# ------------------------------------------------------------------------------------------ memory


def _of_table(table: pa.Table) -> Input:
    readable = whole_table(readable_table(table))
    return Input(table=readable, schema=readable.schema)


def _of_exporter(events: Any) -> Input:
    """Any object with the Arrow C stream interface, from which each reading gets a new stream."""
    schema = pa.RecordBatchReader.from_stream(events).schema
    return with_readable_types(Input(stream=functools.partial(_exported, events), schema=schema))


def _exported(events: Any, _: Sequence[str] | None) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(events)


def _of_list(events: list[Any] | tuple[Any, ...]) -> Input:
    if not events:
        raise DataError("the list of events is empty, so it has no columns")
    if all(isinstance(event, Mapping) for event in events):
        return _of_dicts(events)
    if all(isinstance(event, str | os.PathLike) for event in events):
        raise DataError(
            "a list of files cannot be read here: run, check and explain take one that is not nested"
        )
    if any(isinstance(event, Mapping) for event in events):
        other = next(event for event in events if not isinstance(event, Mapping))
        raise DataError(f"the list holds dicts and {type(other).__name__}", hint=f"pass {_ACCEPTED}")
    batches = list(_batches(events, "list"))
    if not batches:
        raise DataError("the list of record batches is empty, so it has no schema")
    with reading():
        return _of_table(pa.Table.from_batches(batches))


def _of_dicts(events: Sequence[Mapping[str, object]]) -> Input:
    """A row for each dict; missing keys are NULL."""
    with reading():
        return replace(_of_table(table_of_dicts(events)), of_dicts=True)


def _of_iterator(events: Iterator[object]) -> Input:
    first = next(events, None)
    if first is None:
        raise DataError("the iterator of record batches is empty, so it has no schema")
    if not isinstance(first, pa.Table | pa.RecordBatch):
        raise _no_batches("iterator", first)
    return _of_stream(_batches(itertools.chain((first,), events), "iterator"), first.schema)


def _batches(items: Iterable[object], of: str) -> Iterator[pa.RecordBatch]:
    """The batches of tables and batches; `of` names the container that they are in."""
    for item in items:
        if isinstance(item, pa.Table):
            yield from item.to_batches()
        elif isinstance(item, pa.RecordBatch):
            yield item
        else:
            raise _no_batches(of, item)


def _no_batches(of: str, item: object) -> DataError:
    return DataError(f"the {of} holds {type(item).__name__}, not record batches", hint=f"pass {_ACCEPTED}")


def _of_stream(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Input:
    """A stream that can be read once."""
    taken = False

    def once(_: Sequence[str] | None) -> pa.RecordBatchReader:
        nonlocal taken
        if taken:
            raise read_twice()
        taken = True
        return pa.RecordBatchReader.from_batches(schema, _of_one_schema(batches, schema))

    return with_readable_types(Input(stream=once, schema=schema, one_shot=True))


def _of_one_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches, 1):
        if not batch.schema.equals(schema):
            raise DataError(
                f"batch {number} has columns other than those of the first one: {_listed(batch.schema)} "
                f"instead of {_listed(schema)}"
            )
        yield batch


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def read_twice() -> DataError:
    """The error for a second reading of a stream that can be read once."""
    return DataError(
        "these events come from an iterator that has already been read",
        hint="collect it into a table first (pyarrow.Table.from_batches), or write it to a Parquet file",
    )


# ------------------------------------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of one format, as one `path` or several name them."""

    path: str
    form: str
    files: tuple[str, ...]
    partitions: Partitions | None

    def followed_by(self, other: _Files) -> _Files | None:
        """The union of both; None if their formats differ or if they lie in directories that name columns."""
        if self.form != other.form or self.partitions is not None or other.partitions is not None:
            return None
        return replace(self, files=self.files + other.files)

    def alike(self) -> list[_Files]:
        """These files, or adjacent ones of the same columns and types, where files have types."""
        if len(self.files) == 1 or self.form not in _TYPED:
            return [self]
        columns = {file: _TYPED[self.form](file) for file in self.files}
        if None in columns.values():  # whoever reads the files says why one cannot be read
            return [self]
        groups = [tuple(files) for _, files in itertools.groupby(self.files, columns.__getitem__)]
        return [self] if len(groups) == 1 else [replace(self, path=one[0], files=one) for one in groups]


def _columns_in_arrow(file: str) -> dict[str, pa.DataType]:
    with reading(file):
        return {field.name: field.type for field in arrow_schema(file)}


_TYPED: Final[Mapping[str, Callable[[str], object]]] = {
    "parquet": columns_in_footer,
    "arrow": _columns_in_arrow,
}
"""The formats whose files have types, and how the columns of one are found."""


def _files_at(path: str, csv_options: Mapping[str, object] | None) -> _Files:
    place = as_file(path)
    files = files_of(place)
    formats = {format_of(file, csv_options) for file in files}
    if len(formats) > 1:
        raise DataError(
            f"the files have several formats: {', '.join(sorted(formats))}",
            file=path,
            hint="to read them all, name them in a list, such as ['a/*.csv', 'a/*.parquet']",
        )
    for file in files:
        if _is_blank(file):
            raise DataError("the file is empty: it has not even a header", file=file)
        if formats <= {"csv", "json"} and "encoding" not in (csv_options or {}) and _is_utf_16(file):
            by_option = " or, of a CSV file, say csv_options={'encoding': 'utf-16'}"
            raise DataError("the file is written in UTF-16", file=file, hint=f"save it as UTF-8,{by_option}")
    partitions = None if files == [place] else partitions_of(place, files)
    return _Files(path, formats.pop(), tuple(files), partitions)


def _named_at(path: str, csv_options: Mapping[str, object] | None) -> _Files:
    """The files at a path; raises `DataError` for options that they do not have."""
    named = _files_at(path, csv_options)
    if csv_options and named.form != "csv":
        raise DataError(
            f"csv_options are for CSV files, but this file is {named.form}", file=path, hint=_OF_CSV_FILES
        )
    return named


def _open_path(path: str, csv_options: Mapping[str, object] | None) -> Input:
    named = _named_at(path, csv_options)
    first, *others = named.alike()
    if others:
        raise DataError(
            f"the columns or their types are not those of {first.path}",
            file=others[0].path,
            hint="Query.run reads such files together; here, name files that are alike",
        )
    return _open_files(named, csv_options)


def _open_files(named: _Files, csv_options: Mapping[str, object] | None) -> Input:
    """The relation for files of one format."""
    path, files, partitions = named.path, named.files, named.partitions
    if named.form == "arrow":
        with reading(path):
            schema = _with_partitions(arrow_schema(files[0]), partitions)
        stream = functools.partial(arrow_stream, files, schema, partitions)
        with reading(path):
            return with_readable_types(
                Input(stream=stream, schema=schema, file=path, files=files, partitions=partitions)
            )
    if named.form == "parquet":
        written, has_rows = schema_in_footers(files)
        if written is not None:
            written = _with_partitions(written, partitions)
        if written is not None and not has_rows:
            return Input(table=written.empty_table(), schema=written, file=path, files=files)
        query = _of_parquet(files, partitions)
        plain = None if partitions is not None or written is None else plain_parquet(files)
        return Input(query=query, file=path, files=files, written=written, partitions=partitions, plain=plain)
    options = (csv_options or {}) if named.form == "csv" else {}
    try:
        with reading(path):
            layout = text_layout(named.form, files, options).partitioned(partitions)
    except AlikeNamesError:
        if named.form != "json" or partitions is not None:
            raise
        return replace(_of_dicts(objects_in(files)), file=path, files=files)
    return Input(query=layout.query, file=path, files=files, layout=layout, partitions=partitions)


def _of_parquet(files: Sequence[str], partitions: Partitions | None) -> str:
    if partitions is None:
        return f"SELECT * FROM {rows_of('read_parquet', files, NO_HIVE)}"
    with lent_cursor() as connection:
        in_files = {name.lower() for name in names_in_parquet(files[0], connection)}
    besides = [FILE, *(quoted(name) for name in partitions.names if name.lower() in in_files)]
    values = ", ".join(column.sql for column in partitions.columns)
    return f"SELECT * EXCLUDE ({', '.join(besides)}), {values} FROM {rows_of('read_parquet', files, NAMING)}"


def _with_partitions(schema: pa.Schema, partitions: Partitions | None) -> pa.Schema:
    """The columns of files, followed by those that directories name."""
    if partitions is None:
        return schema
    kept = [field for field in schema if field.name not in partitions.names]
    return pa.schema([*kept, *(column.field for column in partitions.columns)])


def open_inputs(
    events: object, csv_options: Mapping[str, object] | None, *, of_type: str | None = None
) -> dict[str, Input]:
    """The relations for `events`, one after the other, by their names in messages.

    There are several if a list names files, or a path several with types: one for adjacent files of the same
    format, columns and types. `of_type` is the type of all their events, if a mapping gives it.
    """
    if _is_path(events):
        parts = _named_at(fspath(events), csv_options).alike()
        if len(parts) == 1:
            return {str(of_type): replace(_open_files(parts[0], csv_options), type_name=of_type)}
        return _by_name(parts, csv_options, of_type)
    if not _names_files(events):
        return {str(of_type): replace(open_input(events, csv_options), type_name=of_type)}
    sources: list[_Files | Input] = []
    for item in events:
        here = _files_at(fspath(item), csv_options) if _is_path(item) else open_input(item)
        last = sources[-1] if sources else None
        both = last.followed_by(here) if isinstance(last, _Files) and isinstance(here, _Files) else None
        if both is None:
            sources.append(here)
        else:
            sources[-1] = both
    if csv_options and not any(isinstance(source, _Files) and source.form == "csv" for source in sources):
        raise DataError("csv_options are for CSV files, but there are none in the list", hint=_OF_CSV_FILES)
    parted = (source.alike() if isinstance(source, _Files) else [source] for source in sources)
    return _by_name(list(itertools.chain.from_iterable(parted)), csv_options, of_type)


def _by_name(
    sources: Sequence[_Files | Input], csv_options: Mapping[str, object] | None, of_type: str | None
) -> dict[str, Input]:
    """The relations for sources, by their names in messages."""
    inputs: dict[str, Input] = {}
    for place, source in enumerate(sources, 1):
        name = source.path if isinstance(source, _Files) else f"number {place} of the list"
        called = name if of_type is None else f"{of_type}, {name}"
        opened = _open_files(source, csv_options) if isinstance(source, _Files) else source
        inputs[called if called not in inputs else f"{called} ({place})"] = replace(opened, type_name=of_type)
    return inputs


def _names_files(events: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether this is a list in which there are paths."""
    return isinstance(events, list | tuple) and any(map(_is_path, events))


def _is_path(item: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(item, str | os.PathLike)


def _is_blank(file: str) -> bool:
    with reading(file), Path(file).open("rb") as opened:
        return not opened.read(4096).strip()


def _is_utf_16(file: str) -> bool:
    """Whether a file begins with the byte order mark of UTF-16."""
    with reading(file), Path(file).open("rb") as opened:
        return opened.read(2) in {BOM_UTF16_LE, BOM_UTF16_BE}
