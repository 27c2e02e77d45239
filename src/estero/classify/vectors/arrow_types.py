"""The types that DuckDB gives to Arrow's columns, known without DuckDB where columns are plain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

_EXTENSION: Final = b"ARROW:extension:name"
_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.string_view(): "VARCHAR",
    pa.date32(): "DATE",
    pa.timestamp("s"): "TIMESTAMP_S",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
}
_STRINGS: Final = frozenset({pa.string(), pa.large_string(), pa.string_view()})


def engine_type(field: pa.Field) -> str | None:
    """The name of DuckDB's type for a column; None if only DuckDB can tell.

    >>> engine_type(pa.field("name", pa.dictionary(pa.int8(), pa.string())))
    'VARCHAR'
    """
    kind = value_type(field.type)
    if isinstance(kind, pa.BaseExtensionType) or _EXTENSION in (field.metadata or {}):
        return None
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "TIMESTAMPTZ_NS" if kind.unit == "ns" else "TIMESTAMP WITH TIME ZONE"
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _NAMES.get(kind)


def as_returned(kind: pa.DataType) -> pa.DataType:
    """The type in which DuckDB returns values of a type that `engine_type` has.

    >>> as_returned(pa.timestamp("s", "Asia/Tokyo")), as_returned(pa.large_string())
    (TimestampType(timestamp[us, tz=UTC]), DataType(string))
    """
    kind = value_type(kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("ns" if kind.unit == "ns" else "us", "UTC")
    return pa.string() if kind in _STRINGS else kind


def is_converted(kind: pa.DataType) -> bool:
    """Whether DuckDB converts all values of a column that it reads, each of which may cause an error."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit in {"s", "ms"})


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves, however they are encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
