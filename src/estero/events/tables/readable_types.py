"""Types of Arrow that DuckDB lacks, in those that it has: no value changes.

Floats of 16 bits have 32 there, decimals of a negative scale (`12E3`) are whole numbers, and decimals of 256
bits have 128, if they have no more digits than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.classify.columns import MOST_DIGITS
from estero.errors import DataError
from estero.events.tables.shown_types import in_schema

if TYPE_CHECKING:
    from estero.events.inputs import Input, Stream


@lru_cache(maxsize=1024)
def readable_type(kind: pa.DataType) -> pa.DataType:
    """The type in which DuckDB reads values of a type: usually the same.

    >>> readable_type(pa.list_(pa.float16())), readable_type(pa.decimal128(5, -3))
    (ListType(list<item: float>), Decimal128Type(decimal128(8, 0)))
    """
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind):
        digits = kind.precision - min(kind.scale, 0)
        is_wide = pa.types.is_decimal256(kind)
        if digits > MOST_DIGITS or not (is_wide or kind.scale < 0):
            return kind
        return pa.decimal128(digits, max(kind.scale, 0))
    if pa.types.is_dictionary(kind):
        inner = readable_type(kind.value_type)
        return kind if inner == kind.value_type else inner
    if pa.types.is_struct(kind):
        return pa.struct(list(map(_readable, kind)))
    if pa.types.is_map(kind):
        key, item = (
            field.with_type(readable_type(field.type)) for field in (kind.key_field, kind.item_field)
        )
        return pa.map_(key, item, keys_sorted=kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_readable(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_readable(kind.value_field), kind.list_size)
    return kind


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in readable types; raises `DataError` for decimals of too many digits."""
    fields = list(map(_readable, schema))
    for field in fields:
        if pa.types.is_decimal(field.type) and field.type.precision - min(field.type.scale, 0) > MOST_DIGITS:
            raise DataError(
                f"holds {field.type}, and decimals have at most {MOST_DIGITS} digits",
                column=field.name,
                hint="cast it: to decimal128 if its values fit, else to float64",
            )
    readable = pa.schema(fields, schema.metadata)
    return schema if readable.equals(schema) else readable


def readable_table(table: pa.Table) -> pa.Table:
    """The table with its columns in readable types."""
    schema = readable_schema(table.schema)
    return table if schema is table.schema else in_schema(table, schema)


def with_readable_types(events: Input) -> Input:
    """A table or stream with its columns in readable types."""
    if events.table is not None:
        table = readable_table(events.table)
        return events if table is events.table else replace(events, table=table, schema=table.schema)
    if events.stream is None or events.schema is None:
        return events
    schema = readable_schema(events.schema)
    if schema is events.schema:
        return events
    return replace(events, stream=_ReadableStream(events.stream), schema=schema)


def _readable(field: pa.Field) -> pa.Field:
    return field.with_type(readable_type(field.type))


@dataclass(frozen=True, slots=True)
class _ReadableStream:
    """A stream with its columns in readable types."""

    stream: Stream

    def __call__(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        reader = self.stream(columns)
        schema = readable_schema(reader.schema)
        return pa.RecordBatchReader.from_batches(schema, (in_schema(batch, schema) for batch in reader))
