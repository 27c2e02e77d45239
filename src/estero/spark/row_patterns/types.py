"""The types of DuckDB's results in Spark, and the conversion of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from estero.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_SIGNED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_INTERVAL: Final = np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)])
_DAY: Final = 86_400_000_000


def crossing_type(spark_type: DataType, zone: str) -> pa.DataType | None:
    """The Arrow type in which values cross to Python; None if they cannot."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import YearMonthIntervalType

    if isinstance(spark_type, YearMonthIntervalType):
        return None  # DuckDB does not read it
    try:
        return to_arrow_type(spark_type, timezone=zone)
    except PySparkException:
        return None


def result_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The type that a column of a result has on its way to Spark.

    Unsigned integers have one more byte, INTERVAL becomes one of days and less, NULL a string. Raises
    `DataError` for an INTERVAL inside another value.
    """
    if pa.types.is_interval(kind):
        return pa.duration("us")
    if _has_interval(kind):
        raise DataError(
            "an INTERVAL inside of a list or struct does not go to Spark",
            column=column,
            hint="measure it in seconds: epoch(LAST(A.ts) - FIRST(A.ts))",
        )
    return _plain(kind)


def _has_interval(kind: pa.DataType) -> bool:
    return pa.types.is_interval(kind) or any(
        _has_interval(kind.field(place).type) for place in range(kind.num_fields)
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return _simple(kind)


def _simple(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return _SIGNED.get(kind, kind)


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array converted to the type that `result_type` gives for its own."""
    if pa.types.is_interval(array.type):
        return _durations(array)
    return array if array.type.equals(kind) else array.cast(kind)


def _durations(array: pa.Array) -> pa.Array:
    """Intervals as durations; raises `DataError` for months, which have no length."""
    valid = np.asarray(array.is_valid())
    buffer = array.buffers()[1]
    if buffer is None:
        return pa.nulls(len(array), pa.duration("us"))
    parts = np.frombuffer(buffer, _INTERVAL)[array.offset : array.offset + len(array)]
    if (parts["months"][valid] != 0).any():
        raise DataError(
            "an INTERVAL with months cannot go to Spark, whose intervals have either months or time",
            hint="cast it: CAST(… AS STRING)",
        )
    length = parts["days"].astype(np.int64) * _DAY + parts["nanoseconds"] // 1000
    return pa.array(np.where(valid, length, 0), mask=~valid).cast(pa.duration("us"))
