"""Tables without a row: their columns have names, and no say in what they might hold.

pandas makes them floats or objects, Arrow NULLs or strings. An empty table with the right columns is an empty
stream, so no query is refused for the types of columns in which nothing stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from estero.events.inputs import Input


def without_types(each: Input, type_column: str | None, time: str | None) -> Input:
    """The input as it is, unless it is a table without a row: then its columns are of no type.

    A column of types that are strings keeps its type, and so does a time that can be one.
    """
    if each.table is None or each.table.num_rows:
        return each
    fields = [
        field
        if (field.name == type_column and _is_text(field.type))
        or (field.name == time and _is_time(field.type))
        else field.with_type(pa.null())
        for field in each.table.schema
    ]
    table = pa.schema(fields).empty_table()
    return replace(each, table=table, schema=table.schema, nothing=each.table.schema)


def as_they_came(batch: pa.RecordBatch, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """A batch without a row, its columns in these types."""
    fields = [field.with_type(types.get(field.name, field.type)) for field in batch.schema]
    return pa.RecordBatch.from_pylist([], schema=pa.schema(fields))


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(data_type) for is_kind in kinds)


def _is_time(data_type: pa.DataType) -> bool:
    kinds = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
    return any(is_kind(data_type) for is_kind in kinds)
