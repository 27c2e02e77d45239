"""The columns of a stream: from a text, from a file, or from the first events."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from estero.arguments import shown
from estero.errors import DataError
from estero.events.files.paths import names_file
from estero.local.columns import texts_as
from estero.local.decoding import objects
from estero.local.raw import Raw

_HINT: Final = (
    "write columns such as 'kind STRING, time TIMESTAMP, value DOUBLE', or the name of a file with them"
)
_FILES: Final = (".parquet", ".csv", ".json", ".jsonl", ".ndjson", ".arrow", ".feather")
_SIMPLE: Final = {
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}
"""Types as Spark's SQL has them: a TIMESTAMP is an instant, and one without a zone is TIMESTAMP_NTZ."""
_KINDS: Final = (
    ({bool}, pa.bool_()),
    ({int}, pa.int64()),
    ({int, float}, pa.float64()),
    ({str}, pa.string()),
)
"""The types of columns whose values have these types of Python."""


def schema_of(schema: pa.Schema | str | PathLike[str]) -> pa.Schema:
    """The columns in a text, in the text of a file, or of a file of events.

    Raises `DataError` if they cannot be read.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, str | PathLike):
        raise TypeError(f"a schema is one of pyarrow or its text, not {shown(schema)}")
    text = fspath(schema).strip()
    if names_file(text):
        if Path(text).suffix.lower() in _FILES:
            return _of_events(text)
        text = Path(text).read_text(encoding="utf-8").strip()
    return _of_text(text)


def _of_text(text: str) -> pa.Schema:
    import sqlglot
    from sqlglot import expressions as exp

    try:
        made = sqlglot.parse_one(f"CREATE TABLE events ({text})", dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise DataError(f"the schema cannot be read: {text}", hint=_HINT) from error
    columns = list(made.find_all(exp.ColumnDef))
    parts = made.this.expressions if isinstance(made.this, exp.Schema) else []
    if not columns or len(columns) != len(parts):
        raise DataError(f"the schema cannot be read: {text}", hint=_HINT)
    return pa.schema([(column.name, _type(column)) for column in columns])


def _type(column: Any) -> pa.DataType:
    kind = column.kind
    name = "" if kind is None else kind.this.name
    if name == "DECIMAL":
        numbers = [int(parameter.name) for parameter in kind.expressions] or [10]
        return pa.decimal128(*numbers[:2])
    if name not in _SIMPLE:
        said = "nothing" if kind is None else kind.sql(dialect="spark")
        raise DataError(
            f"the column {column.name} of the schema has a type that is not known: {said}", hint=_HINT
        )
    return _SIMPLE[name]


def _of_events(path: str) -> pa.Schema:
    from estero.events.scan import scan
    from estero.events.streams.stream_layout import layout_of

    (schema,) = layout_of(scan(path)).schemas.values()
    return schema


def inferred(raw: Raw, time: str | None) -> pa.Schema | None:
    """The columns of the first events; None if none of them can be read.

    Integers and floats have 64 bits; values that are not simple, and columns of NULLs, are texts. The time
    column is a timestamp if its texts are times. Raises `DataError` for a time column of any other kind.
    """
    table = raw.table
    if table is None:
        rows, _, _, _ = objects(raw.texts)
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: _simple([row.get(name) for row in rows]) for name in names}
        table = pa.table({name: column for name, column in columns.items() if column is not None})
    if not table.num_rows:
        return None
    fields = [(name, _inferred(table.column(name), name == time)) for name in table.column_names]
    return pa.schema(fields)


def _simple(values: list[Any]) -> pa.Array | None:
    """A column of simple values of one kind; None for other values, which are dropped."""
    classes = set(map(type, values)) - {type(None)}
    for allowed, kind in (
        ({bool}, pa.bool_()),
        ({int}, pa.int64()),
        ({int, float}, pa.float64()),
        ({str}, pa.string()),
    ):
        if classes <= allowed:
            try:
                return pa.array(values, kind if classes else pa.string())
            except (pa.ArrowException, ValueError, OverflowError):
                return None
    return None


def _inferred(column: pa.ChunkedArray, is_time: bool) -> pa.DataType:
    if not pa.types.is_string(column.type):
        return pa.string() if pa.types.is_null(column.type) else column.type
    if is_time:
        kind = pa.timestamp("us", "UTC")
        for text in column.drop_null().to_pylist():
            try:
                texts_as(pa.array([text]), kind)
            except pa.ArrowInvalid:
                continue
            return kind
        raise DataError("the time column of the first events has no time in it", hint="name a schema")
    return column.type
