"""The columns of events in one table, or in a table for each type, and the union of such tables.

A column that several tables share has one type for all, to which no value is bent. What has no exact form in
that type is an error of the row that has it: it names the column, its value and what the other table holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from estero.classify.column_names import event_column
from estero.classify.columns import MOST_DIGITS, ColumnType, Tick, common_decimal, reference
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.sql_texts import literal
from estero.classify.sql_trees import cast
from estero.errors import DataError
from estero.events.database import EVENTS
from estero.language.tree.schema import Kind

_EXACT = frozenset({Kind.INT, Kind.DECIMAL})
_INTEGERS = "DECIMAL(19,0)"
"""The decimal type that holds all integers of 64 bits."""
_HINT = "rename one of the two columns, or convert it"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, called `type_name` in messages: DuckDB's type, and how expressions read it."""

    type_name: str
    engine_type: str
    column: ColumnType


Tables = Mapping[str, Mapping[str, TableColumn]]
"""For each table the columns, by name; a table is called by the type of its events, or by its file."""


def union_columns(tables: Tables) -> dict[str, ColumnType]:
    """How expressions read the columns of all tables; an integer beside a float is read as a float.

    Raises `DataError` for columns of one name that hold values of different kinds.
    """
    union: dict[str, TableColumn] = {}
    for columns in tables.values():
        for name, here in columns.items():
            known = union.get(name)
            union[name] = here if known is None else _common(name, known, here)
    return {name: described.column for name, described in union.items()}


def union_query(
    tables: Tables, union: Mapping[str, ColumnType], types: Sequence[str | None], type_column: str
) -> str:
    """All events of ``events0``, ``events1``, …, the tables in order.

    Those of a table whose type is known have it in `type_column`.
    """
    parts = []
    for place, (type_name, columns) in enumerate(zip(types, tables.values(), strict=True)):
        selected = []
        if type_name is not None:
            selected.append(f"{literal(type_name)} AS {DUCKDB.quoted(type_column)}")
        for name, here in columns.items():
            sharing = [table[name] for table in tables.values() if name in table]
            value = _in_union(name, here, union[name], sharing)
            selected.append(f"{value.sql('duckdb')} AS {DUCKDB.quoted(event_column(name))}")
        parts.append(f"SELECT {', '.join(selected)} {renaming_query(columns, place)}")
    return " UNION ALL BY NAME ".join(parts)


def renaming_query(columns: Iterable[str], place: int = 0) -> str:
    """The table ``events…`` of that place, its columns called by `event_column`.

    They are named by their places, because DuckDB has names of its own for empty ones.
    """
    return (
        f"FROM {EVENTS}{place} AS named({', '.join(DUCKDB.quoted(event_column(name)) for name in columns)})"
    )


def _common(name: str, one: TableColumn, other: TableColumn) -> TableColumn:
    """How a column of two tables is read in their union; raises `DataError` for values of two kinds.

    Integers beside floats are floats, and timestamps have the finer resolution.
    """
    left, right = one.column, other.column
    kinds = {left.kind, right.kind}
    if left == right and (one.engine_type == other.engine_type or not _loses(left)):
        return one
    if Kind.NULL in kinds:
        return other if left.kind is Kind.NULL else one
    if kinds == {Kind.OPAQUE}:
        return TableColumn(one.type_name, one.engine_type, _merged(left, right))
    if Kind.DECIMAL in kinds and kinds <= _EXACT:
        return TableColumn(one.type_name, one.engine_type, _decimal(name, one, other))
    if len(kinds) == 1:
        tick: Tick = "ns" if "ns" in (left.tick, right.tick) else "us"
        return TableColumn(one.type_name, one.engine_type, ColumnType(left.kind, tick=tick))
    if kinds == {Kind.INT, Kind.FLOAT}:
        return TableColumn(one.type_name, one.engine_type, ColumnType(Kind.FLOAT))
    raise DataError(
        f"{name!r} is {left.kind.value} in the table of {one.type_name} "
        f"and {right.kind.value} in that of {other.type_name}",
        column=name,
        hint=_HINT,
    )


def _decimal(name: str, one: TableColumn, other: TableColumn) -> ColumnType:
    """The decimals that have the values of both columns, which are of decimals and integers."""
    types = [
        str(side.column.cast) if side.column.kind is Kind.DECIMAL else _INTEGERS for side in (one, other)
    ]
    common = common_decimal(types)
    if common is None:
        raise DataError(
            f"{name!r} is {types[0]} in the table of {one.type_name} and {types[1]} in that of "
            f"{other.type_name}: together they need more than {MOST_DIGITS} digits",
            column=name,
            hint=_HINT,
        )
    return ColumnType(Kind.DECIMAL, common)


def _merged(one: ColumnType, other: ColumnType) -> ColumnType:
    """The inner columns of two structs or lists together; those of different kinds cannot be compared."""
    if one.kind is Kind.NULL or one == other:
        return other
    if other.kind is Kind.NULL:
        return one
    if one.fields is not None and other.fields is not None:
        fields = dict(one.fields)
        for name, inner in other.fields:
            fields[name] = _merged(fields[name], inner) if name in fields else inner
        return ColumnType(Kind.OPAQUE, fields=tuple(fields.items()))
    if one.element is not None and other.element is not None:
        return ColumnType(Kind.OPAQUE, element=_merged(one.element, other.element))
    if Kind.DECIMAL in (one.kind, other.kind):
        return ColumnType(Kind.OPAQUE)
    if one.kind is other.kind:
        tick: Tick = "ns" if "ns" in (one.tick, other.tick) else "us"
        return ColumnType(one.kind, one.cast or other.cast, checked=one.checked or other.checked, tick=tick)
    numbers = {one.kind, other.kind} == {Kind.INT, Kind.FLOAT}
    return ColumnType(Kind.FLOAT, "DOUBLE") if numbers else ColumnType(Kind.OPAQUE)


def _in_union(name: str, here: TableColumn, shared: ColumnType, tables: Sequence[TableColumn]) -> exp.Expr:
    """The column of one table as it is in the union; `tables` are those that have it, this one among them.

    Evaluating it is an error for a value that has no equal there.
    """
    column = here.column
    if column.kind is Kind.NULL and shared.kind is not Kind.NULL:
        return exp.Null()
    if column.kind is Kind.OPAQUE:
        return reference(name, column)  # DuckDB joins the fields of structs
    if column == shared and not here.engine_type.startswith("ENUM("):
        return reference(name, column)
    value = DUCKDB.as_read(name, column)
    bent = cast(value.copy(), _engine_type(shared))
    if column.kind is Kind.INT and shared.kind is Kind.FLOAT:
        whole = exp.EQ(this=cast(bent.copy(), "HUGEINT"), expression=cast(value.copy(), "HUGEINT"))
        other = next(table for table in tables if table.column.kind is Kind.FLOAT)
        said = f"beside floats in that of {other.type_name}, and no float is equal to it"
        return _checked(name, here, whole, bent, said)
    if column.kind is Kind.TIMESTAMP and (column.tick, shared.tick) == ("us", "ns"):
        tried = exp.TryCast(this=value.copy(), to=bent.args["to"].copy())
        other = next(table for table in tables if table.column.tick == "ns")
        said = (
            f"beside nanoseconds in that of {other.type_name}, which hold no time before 1677 or after 2262"
        )
        return _checked(name, here, exp.Not(this=exp.Is(this=tried, expression=exp.Null())), bent, said)
    return bent


def _loses(column: ColumnType) -> bool:
    """Whether DuckDB's own union of two types that are both read so may round, cut off or overflow."""
    return column.kind is Kind.FLOAT or column.checked


def _checked(name: str, here: TableColumn, fits: exp.Expr, bent: exp.Expr, said: str) -> exp.Expr:
    shown = reference(name, here.column)
    text = exp.DPipe(
        this=exp.DPipe(
            this=exp.Literal.string(f"estero: column {name!r}: "),
            expression=cast(shown, "VARCHAR"),
            safe=True,
        ),
        expression=exp.Literal.string(f" in the table of {here.type_name} is {said}\n{_HINT}"),
        safe=True,
    )
    missing = exp.Is(this=shown.copy(), expression=exp.Null())
    error = exp.Anonymous(this="error", expressions=[text])
    return exp.Case().when(exp.or_(missing, fits), bent).else_(error)


def _engine_type(column: ColumnType) -> str:
    """The DuckDB type of a column that inputs with different types share."""
    if column.kind is Kind.DECIMAL:
        return str(column.cast)
    if column.kind is Kind.TIMESTAMP:
        return "TIMESTAMP_NS" if column.tick == "ns" else "TIMESTAMP"
    return {Kind.BOOL: "BOOLEAN", Kind.INT: "BIGINT", Kind.FLOAT: "DOUBLE"}.get(column.kind, "VARCHAR")
