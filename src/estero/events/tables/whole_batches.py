"""Batches that begin where their arrays begin: DuckDB refuses a struct sliced out of a longer one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from estero.events.tables.shown_types import has_within


def whole_table(table: pa.Table) -> pa.Table:
    """The same events in batches that DuckDB can read; the table itself if it already can."""
    if not any(has_within(field.type, pa.types.is_struct) for field in table.schema):
        return table
    return pa.Table.from_batches(map(whole_batch, table.to_batches()), table.schema)


def whole_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same events, with structs copied if they begin inside longer arrays."""
    if not any(map(_is_cut, batch.columns)):
        return batch
    everything = pa.array(range(batch.num_rows), pa.int64())
    columns = [pc.take(column, everything) if _is_cut(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_cut(array: pa.Array) -> bool:
    """Whether this array contains a struct that begins in the middle of another."""
    if pa.types.is_struct(array.type):
        return array.offset != 0 or any(_is_cut(array.field(place)) for place in range(array.type.num_fields))
    nested = pa.types.is_nested(array.type) and has_within(array.type, pa.types.is_struct)
    return bool(nested and (array.offset != 0 or _is_cut(array.values)))
