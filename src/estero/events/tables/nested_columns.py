"""Fields of structs as columns, if ``type=``, ``time=`` or ``order=`` name them: ``event.outcome``.

A column with that very name takes precedence. The new one has the path as its name; it is NULL where the
struct is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.sql_texts import quoted
from estero.events.tables.relations import Relation
from estero.language.tree.schema import EventLayout

if TYPE_CHECKING:
    from estero.events.inputs import Input

Paths = Mapping[str, Sequence[str]]
"""The names of fields from the outside to the inside, by the name of the column made of them."""

_MADE: Final = b"estero:nested"


def named_in(layout: EventLayout) -> list[str]:
    """The columns named by a layout that may be fields."""
    names = (layout.type, layout.time, *layout.order)
    return [name for name in dict.fromkeys(names) if name is not None and "." in name]


def paths_in(names: Iterable[str], schema: pa.Schema) -> Paths:
    """The fields that names without a column refer to, as far as they exist.

    >>> paths_in(["a.b", "a.c"], pa.schema({"a": pa.struct({"b": pa.int64()})}))
    {'a.b': ('a', 'b')}
    """
    paths = {name: _steps(name, list(schema)) for name in names if name not in schema.names}
    return {name: steps for name, steps in paths.items() if steps is not None}


def _steps(name: str, fields: Sequence[pa.Field]) -> tuple[str, ...] | None:
    for field in fields:
        if field.name == name:
            return (name,)
        inner = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if name.startswith(f"{field.name}.") and pa.types.is_struct(inner):
            rest = _steps(name[len(field.name) + 1 :], list(inner))
            if rest is not None:
                return (field.name, *rest)
    return None


def with_fields(table: pa.Table, paths: Paths) -> pa.Table:
    """The table with a column for each path."""
    for name, (first, *rest) in paths.items():
        column = pc.struct_field(table.column(first), rest)
        table = table.append_column(pa.field(name, column.type, metadata={_MADE: b""}), column)
    return table


def extended(schema: pa.Schema, layout: EventLayout) -> pa.Schema:
    """The schema of a table `with_fields`."""
    paths = paths_in(named_in(layout), schema)
    return with_fields(schema.empty_table(), paths).schema if paths else schema


def as_given(schema: pa.Schema) -> pa.Schema:
    """An `extended` schema without the added columns."""
    return pa.schema([field for field in schema if _MADE not in (field.metadata or {})])


def with_nested_columns(events: Input, layout: EventLayout, described: Any) -> Input:
    """An input with the fields that a layout names as columns.

    `described` gives the schema of files, and is called only if some name may be a field.
    """
    names = named_in(layout)
    schema = (events.schema if events.schema is not None else described(events)) if names else None
    paths = paths_in(names, schema) if schema is not None else {}
    if not paths or schema is None:
        return events
    wide = with_fields(schema.empty_table(), paths).schema
    if events.table is not None:
        table = with_fields(events.table, paths)
        return replace(events, table=table, schema=table.schema)
    if isinstance(events.stream, Relation):
        return replace(events, stream=events.stream.with_columns(_selected(paths)), schema=wide)
    if events.stream is not None:
        return replace(events, stream=_NestedStream(events.stream, paths, schema), schema=wide)
    query = f"SELECT *, {_selected(paths)} FROM ({events.query})"
    written = None if events.written is None else with_fields(events.written.empty_table(), paths).schema
    return replace(events, query=query, written=written, made=tuple(paths), plain=None)


def _selected(paths: Paths) -> str:
    """The columns in DuckDB's SQL."""
    return ", ".join(f"{'.'.join(map(quoted, steps))} AS {quoted(name)}" for name, steps in paths.items())


class _NestedStream:
    """A stream with a column for each path."""

    def __init__(self, stream: Any, paths: Paths, schema: pa.Schema) -> None:
        self._stream = stream
        self._paths = paths
        self._names = schema.names

    def __call__(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        wanted = [*self._names, *self._paths] if columns is None else list(columns)
        made = {name: self._paths[name] for name in wanted if name in self._paths}
        inside = {steps[0] for steps in made.values()}
        reader = self._stream([name for name in self._names if name in wanted or name in inside])
        schema = with_fields(reader.schema.empty_table(), made).schema
        batches = (
            batch
            for arrived in reader
            for batch in with_fields(pa.Table.from_batches([arrived]), made).to_batches()
        )
        return pa.RecordBatchReader.from_batches(schema, batches)
