"""The types in which answers show columns: their original ones, with their zones and durations.

A time without a zone stays without one, and one with a zone keeps it. DuckDB has instants, but no zones:
whatever has a zone comes back in UTC. The type records the zone, so it is restored there; no value changes. A
duration comes back as an interval of months, days and nanoseconds, which neither pandas nor Polars has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import texts_of

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)
UTC = "UTC"
_ENCODED = frozenset(
    kind.id for kind in (pa.dictionary(pa.int8(), pa.int8()), pa.string_view(), pa.binary_view())
)
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """The type without dictionaries and views."""
    if pa.types.is_dictionary(data_type):
        return plain_type(data_type.value_type)
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    return data_type


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns without dictionaries and views."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def plain(array: pa.Array) -> pa.Array:
    """The array without dictionaries and views, from which Arrow can take rows."""
    if array.type.id not in _ENCODED:
        return array
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    return array.cast(plain_type(array.type))


def encoded_as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with dictionaries where this schema has them."""
    for place, field in enumerate(schema):
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(batch.column(place).type):
            batch = batch.set_column(place, field, batch.column(place).dictionary_encode())
    return batch


def is_text(data_type: pa.DataType) -> bool:
    """Whether values of this type are strings, encoded or not."""
    plain = plain_type(data_type)
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def occurs(column: pa.ChunkedArray, text: str) -> bool | None:
    """Whether a text is among the values of a column; None if Arrow cannot search this type."""
    encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    (wanted,) = texts_of([text], kind)
    if not encoded:
        return any(pc.index(chunk, wanted).as_py() >= 0 for chunk in column.chunks)
    return any(
        pc.index(chunk.indices, place.cast(chunk.indices.type)).as_py() >= 0
        for chunk in column.chunks
        for place in pc.indices_nonzero(pc.equal(chunk.dictionary, wanted))
    )


def in_zones_of(data_type: pa.DataType, came: pa.DataType) -> pa.DataType:
    """`data_type` with the zones that the type of the same values has in `came`, in nested types as well.

    >>> in_zones_of(pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Berlin"))
    TimestampType(timestamp[us, tz=Europe/Berlin])
    """
    if pa.types.is_dictionary(came):
        return in_zones_of(data_type, came.value_type)
    if pa.types.is_timestamp(data_type) and pa.types.is_timestamp(came):
        return pa.timestamp(data_type.unit, came.tz)
    if pa.types.is_struct(data_type) and pa.types.is_struct(came):
        if data_type.num_fields != came.num_fields:
            return data_type
        pairs = zip(data_type, came, strict=True)
        return pa.struct([field.with_type(in_zones_of(field.type, other.type)) for field, other in pairs])
    if pa.types.is_map(data_type) and pa.types.is_map(came):
        item = data_type.item_field.with_type(in_zones_of(data_type.item_type, came.item_type))
        return pa.map_(data_type.key_field, item)
    if pa.types.is_list(data_type) and _has_items(came):
        item = data_type.value_field
        return pa.list_(item.with_type(in_zones_of(item.type, came.value_type)))
    if pa.types.is_fixed_size_list(data_type) and _has_items(came):
        item = data_type.value_field
        return pa.list_(item.with_type(in_zones_of(item.type, came.value_type)), data_type.list_size)
    return data_type


def common_zone(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type with the zones of a column of these types: UTC if they differ; None for no type.

    >>> common_zone([pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("us")])
    TimestampType(timestamp[us, tz=UTC])
    """
    distinct = [kind for kind in dict.fromkeys(types) if not pa.types.is_null(kind)]
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    zones = {zone_of(data_type) for data_type in distinct}
    return pa.timestamp("us", zones.pop() if len(zones) == 1 else UTC)


def zone_of(data_type: pa.DataType) -> str | None:
    """The zone of a type of timestamps; None for other types."""
    zone: str | None = data_type.tz if pa.types.is_timestamp(data_type) else None
    return zone


def zone_in(engine_type: str) -> str | None:
    """The zone of values that DuckDB reads from a file in this type: UTC, or none."""
    return UTC if "TIME ZONE" in engine_type or "TZ" in engine_type else None


def as_shown(batch: pa.RecordBatch, came: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The batch with its columns in the zones of their original types, and with durations as durations."""
    for place, field in enumerate(batch.schema):
        if field.name in came:
            wanted = _shown_type(field.type, came[field.name])
            if wanted != field.type:
                batch = batch.set_column(place, field.with_type(wanted), in_type(batch.column(place), wanted))
    return batch


def as_they_came(batch: pa.RecordBatch, came: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """A batch without rows, with its columns in their original types."""
    fields = [field.with_type(came.get(field.name, field.type)) for field in batch.schema]
    return pa.RecordBatch.from_pylist([], schema=pa.schema(fields))


def has_within(data_type: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    """Whether this type is of a kind, or one nested in it is."""
    fields = (data_type.field(place) for place in range(data_type.num_fields))
    return is_kind(data_type) or any(has_within(field.type, is_kind) for field in fields)


def _shown_type(data_type: pa.DataType, came: pa.DataType) -> pa.DataType:
    if pa.types.is_interval(data_type) and pa.types.is_duration(came):
        return came
    return in_zones_of(data_type, came)


def in_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values of an array in the given type."""
    if array.type.equals(wanted):  # Arrow's cast of a struct with a field of no type breaks it
        return array
    return _durations(array, wanted) if pa.types.is_interval(array.type) else array.cast(wanted)


def in_schema(rows: _Rows, schema: pa.Schema) -> _Rows:
    """The rows with their columns in the types of a schema; ValueError if it has other names."""
    if rows.schema.names != schema.names:
        raise ValueError(f"the columns are {rows.schema.names}, not {schema.names}")
    columns = [in_type(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return type(rows).from_arrays(columns, schema=schema)


def _durations(intervals: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Durations from intervals that DuckDB made of them: of nanoseconds only, months and days are 0."""
    if not len(intervals):
        return pa.array([], wanted)
    parts = np.frombuffer(intervals.buffers()[1], _INTERVAL, len(intervals) + intervals.offset)
    missing = ~intervals.is_valid().to_numpy(zero_copy_only=False)
    nanoseconds = pa.array(parts["nanoseconds"][intervals.offset :], pa.duration("ns"), mask=missing)
    return nanoseconds.cast(wanted)


def _has_items(data_type: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(is_kind(data_type) for is_kind in kinds)
