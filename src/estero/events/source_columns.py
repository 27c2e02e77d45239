"""The columns of a source, combined from its inputs and checked.

Nothing is read here but the descriptions of the inputs.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

import pyarrow as pa

from estero.classify.column_names import KEYS, MAPPED_TYPE, check_names_together, event_column, free_name
from estero.classify.columns import ColumnType
from estero.classify.duckdb_types import has_order
from estero.errors import DataError
from estero.events.inputs import Input
from estero.events.reading_errors import how_to_have_timestamps
from estero.events.stream_order import refuse_infinite
from estero.events.tables.shown_types import (
    as_shown,
    as_they_came,
    common_zone,
    plain_type,
    zone_in,
    zone_of,
)
from estero.events.tables.table_columns import Tables, union_columns
from estero.language.tree.exact_names import given_name
from estero.language.tree.names import some
from estero.language.tree.schema import Attributes, EventLayout, Kind, Schema
from estero.language.tree.words import named

_INTEGER = ColumnType(Kind.INT, "BIGINT")
_TIMESTAMP = ColumnType(Kind.TIMESTAMP, "TIMESTAMP")


class SourceColumns:
    """The columns of all inputs together; `tables` are those of each, `layout` gives the meaning of some.

    `types` is how expressions read them, `schema` what the language checks against, `order` what the stream
    is sorted by: the time, then the columns that break ties. `view` is a query over the inputs, with columns
    named by `event_column`: their union if there are several tables, with the type in `type_column` if each
    table is of one type (`mapped`); None if there is one input with exactly these names. `file` is their only
    path.

    Raises `DataError` for columns that are missing, of a wrong kind, or of several kinds in several tables.
    """

    def __init__(
        self, inputs: Mapping[str, Input], tables: Tables, layout: EventLayout, *, mapped: bool
    ) -> None:
        check_names_together(tables)
        files = {source.file for source in inputs.values()}
        self.file: str | None = files.pop() if len(files) == 1 else None
        self._inputs = inputs
        self._tables = tables
        self._layout = layout
        self.mapped = mapped
        union = union_columns(tables)
        self.type_column: str | None = free_name(MAPPED_TYPE, union) if mapped else layout.type
        if layout.time is not None and union.get(layout.time, _INTEGER).kind is Kind.NULL:
            # Times without any value are read in the form that the query will need.
            union[layout.time] = _TIMESTAMP if layout.time_unit is None else _INTEGER
        self.names: tuple[str, ...] = tuple(union)
        of_type = {str(self.type_column): ColumnType(Kind.STRING)} if mapped else {}
        self.types: Mapping[str, ColumnType] = of_type | union
        self.view: str | None = self._view(union)
        self.order: tuple[str, ...] = (*(() if layout.time is None else (layout.time,)), *layout.order)
        self._came = self._types_as_they_came()
        self._nothing = self._types_of_nothing()
        self._check_there()
        self._check_kinds()
        self.schema: Schema = self._schema()

    @property
    def of_inputs(self) -> list[list[str]]:
        """The names of the columns of each input."""
        return [list(columns) for columns in self._tables.values()]

    def is_nested(self, name: str) -> bool:
        """Whether a name is that of a field of a struct in a file and not of a column."""
        return any(name in source.made for source in self._inputs.values())

    @property
    def zone(self) -> str | None:
        """The zone of the time column; None if it has no zone or there is no time."""
        time = self._layout.time
        came = None if time is None else self._came.get(event_column(time))
        return None if came is None else zone_of(came)

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A classified batch with columns in the types in which they are kept and shown.

        Raises `DataError` for an infinite time.
        """
        refuse_infinite(batch, self._layout.time)
        shown = as_shown(batch, self._came) if self._nothing is None else as_they_came(batch, self._nothing)
        for place, field in enumerate(shown.schema):
            if field.name in KEYS and field.type == pa.int64():  # unsigned, which DuckDB may hold so
                shown = shown.set_column(place, field.name, shown.column(place).view(pa.uint64()))
        return shown

    def tick_ns(self) -> int | None:
        """The length of a tick of the time column in nanoseconds, None if there is no time or no unit.

        Raises `DataError` for a column that cannot be the time.
        """
        time, unit = self._layout.time, self._layout.time_unit
        if time is None:
            return None
        column = self.types[time]
        if column.kind is Kind.INT:
            return None if unit is None else unit.value
        if column.kind is not Kind.TIMESTAMP:
            raise DataError(
                f"the time column holds {column.kind.value}; it must hold timestamps or integers",
                file=self.file,
                column=named(time),
                hint=how_to_have_timestamps(self.file, time, column.kind, nested=self.is_nested(time)),
            )
        if unit is not None:
            raise DataError(
                "time_unit is for integer time columns, but this one holds timestamps", column=named(time)
            )
        return 1 if column.tick == "ns" else 1000

    def _check_there(self) -> None:
        """Raises `DataError` for a missing column; each table has its own time and its own type."""
        layout = self._layout
        ties = (("order", name) for name in layout.order)
        for role, name in (("type", self.type_column), ("time", layout.time), *ties):
            if name is not None and name not in self.types:
                raise self._no_such_column(role, name, self.names)
        own = [("time", layout.time), ("type", None if self.mapped else layout.type)]
        for table, columns in self._tables.items():
            for role, name in own:
                if name is not None and name not in columns:
                    raise self._no_such_column(role, name, columns, f" in the table of {table}")

    def _no_such_column(self, role: str, name: str, names: Collection[str], where: str = "") -> DataError:
        name, names = given_name(name), list(map(given_name, names))
        near = difflib.get_close_matches(name, names, 3, 0.5) or [
            candidate for candidate in names if candidate.lower() == name.lower()
        ]
        hint = f"did you mean {' or '.join(near)}?" if near else f"the columns are {', '.join(names)}"
        hint += "".join(f"; {source.hint}" for source in self._inputs.values() if source.hint)
        return DataError(f"there is no {role} column {name!r}{where}", file=self.file, hint=hint)

    def _check_kinds(self) -> None:
        """Raises `DataError` for types that are not strings, and for values of `order` without an order."""
        if self.type_column is not None and self.types[self.type_column].kind is not Kind.STRING:
            kind = self.types[self.type_column].kind.value
            strings = [name for name, column in self.types.items() if column.kind is Kind.STRING]
            raise DataError(
                f"the type column holds {kind}, not strings",
                file=self.file,
                column=named(self.type_column),
                hint=f"type= names a column of strings: {some(strings)}"
                if strings
                else f"there is no column of strings: make one of {self.type_column}, or leave type= out",
            )
        for name in self._layout.order:
            for here in (columns[name] for columns in self._tables.values() if name in columns):
                if not has_order(here.engine_type, here.column):
                    raise DataError(
                        f"the order column holds values of type {here.engine_type}, which cannot be sorted",
                        file=self.file,
                        column=named(name),
                        hint="name columns of numbers, strings, truth values or times",
                    )

    def _view(self, union: Mapping[str, ColumnType]) -> str | None:
        names = [list(columns) for columns in self._tables.values()]
        if not self.mapped and len(names) == 1 and names[0] == list(map(event_column, names[0])):
            return None
        from estero.events.tables.table_unions import renaming_query, union_query  # writes SQL

        if self.mapped or len(self._tables) > 1:
            types = [source.type_name for source in self._inputs.values()]
            return union_query(self._tables, union, types, str(self.type_column))
        (columns,) = self._tables.values()
        return renaming_query(columns)

    def _schema(self) -> Schema:
        time, time_unit = self._layout.time, self._layout.time_unit
        together: Attributes = {name: self.types[name].kind for name in self.names}
        nested = {
            name: column.nested for name, column in self.types.items() if column.fields or column.element
        }
        if self.type_column is None:
            only = {self._layout.only_type: together}
            return Schema(only, closed=True, time=time, time_unit=time_unit, untyped=True, nested=nested)
        if not self.mapped:
            return Schema(shared=together, time=time, time_unit=time_unit, nested=nested)
        types: dict[str, dict[str, Kind]] = {}
        for source, table in zip(self._inputs.values(), self._tables.values(), strict=True):
            types.setdefault(str(source.type_name), {}).update({name: together[name] for name in table})
        return Schema(types, closed=True, time=time, time_unit=time_unit, nested=nested)

    def _types_as_they_came(self) -> dict[str, pa.DataType]:
        """The original type of each column whose zones are those in which its values are shown."""
        came: dict[str, list[pa.DataType]] = {}
        for source, columns in zip(self._inputs.values(), self._tables.values(), strict=True):
            for name, column in columns.items():
                known = pa.timestamp("us", zone_in(column.engine_type))
                said = source.written if source.schema is None else source.schema
                if said is not None and said.get_field_index(name) >= 0:
                    known = plain_type(said.field(name).type)
                came.setdefault(name, []).append(known)
        common = {event_column(name): common_zone(types) for name, types in came.items()}
        return {name: zoned for name, zoned in common.items() if zoned is not None}

    def _types_of_nothing(self) -> dict[str, pa.DataType] | None:
        """The original types of columns if no table has a row; None if one may have."""
        schemas = [source.nothing for source in self._inputs.values() if source.nothing is not None]
        if len(schemas) < len(self._inputs):
            return None
        return {event_column(field.name): plain_type(field.type) for schema in schemas for field in schema}
