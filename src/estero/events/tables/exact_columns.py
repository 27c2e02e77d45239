"""Inputs whose columns differ only in case, read under names that engines distinguish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.events.tables.lazy_tables import Dataset
from estero.events.tables.relations import Relation
from estero.language.tree.exact_names import exact_names, given_name
from estero.language.tree.schema import EventLayout

if TYPE_CHECKING:
    from estero.events.inputs import Input


def with_exact_columns(inputs: dict[str, Input], layout: EventLayout) -> tuple[dict[str, Input], EventLayout]:
    """Inputs and layout with internal names for columns that differ only in case; usually unchanged.

    Parquet files are then read by Arrow, because DuckDB takes such columns for one.
    """
    exact = exact_names(name for source in inputs.values() for name in _names(source))
    if not exact:
        return inputs, layout
    return {name: _renamed(source, exact) for name, source in inputs.items()}, exact_layout(layout, exact)


def exact_layout(layout: EventLayout, exact: Mapping[str, str]) -> EventLayout:
    """The layout with the internal names of its columns."""

    def inside(name: str | None) -> str | None:
        return None if name is None else exact.get(name, name)

    order = tuple(exact.get(name, name) for name in layout.order)
    return replace(layout, type=inside(layout.type), time=inside(layout.time), order=order)


def renamed_schema(schema: pa.Schema, exact: Mapping[str, str]) -> pa.Schema:
    """The schema with the internal names."""
    return pa.schema(
        [field.with_name(exact.get(field.name, field.name)) for field in schema], schema.metadata
    )


def renamed_table(table: pa.Table, exact: Mapping[str, str]) -> pa.Table:
    """The table with the internal names."""
    return table.rename_columns([exact.get(name, name) for name in table.column_names])


def _names(source: Input) -> Iterable[str]:
    if source.layout is not None:
        return [given_name(column.name) for column in source.layout.columns]
    schema = source.schema if source.schema is not None else source.written
    return () if schema is None else schema.names


def _renamed(source: Input, exact: Mapping[str, str]) -> Input:
    names = list(_names(source))
    if not any(name in exact for name in names) or len(set(names)) < len(names):
        return source
    if source.table is not None:
        table = renamed_table(source.table, exact)
        nothing = None if source.nothing is None else renamed_schema(source.nothing, exact)
        return replace(source, table=table, schema=table.schema, nothing=nothing)
    if source.stream is not None and source.schema is not None and not isinstance(source.stream, Relation):
        return _streamed(source, source.stream, source.schema, exact)
    if source.written is not None and source.layout is None and source.partitions is None:
        from pyarrow import dataset

        scanned = Dataset(dataset.dataset(list(source.files), format="parquet"))
        given = replace(source, query=None, plain=None, written=None)
        return _streamed(given, scanned, scanned.schema, exact)
    return source


def _streamed(source: Input, stream: Any, schema: pa.Schema, exact: Mapping[str, str]) -> Input:
    given = {exact.get(name, name): name for name in schema.names}
    return replace(source, stream=_ExactStream(stream, given), schema=renamed_schema(schema, exact))


@dataclass(frozen=True, slots=True)
class _ExactStream:
    """A stream under other names; `given` are those of its own columns by these."""

    stream: Any
    given: Mapping[str, str]

    def __call__(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        reader = self.stream(None if columns is None else [self.given[name] for name in columns])
        inside = {own: name for name, own in self.given.items()}
        schema = renamed_schema(reader.schema, inside)
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
        return pa.RecordBatchReader.from_batches(schema, batches)
