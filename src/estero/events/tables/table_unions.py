"""The union of tables of events, a table for each type or for each file, in SQL.

Columns that have another type than the union are cast, and a value without an exact form is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from estero.classify.column_names import event_column
from estero.classify.columns import ColumnType, reference
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.sql_texts import literal
from estero.classify.sql_trees import cast
from estero.events.database import EVENTS
from estero.events.tables.table_columns import CONVERT_IT, TableColumn, Tables
from estero.language.tree.schema import Kind


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
    """The table ``events…`` of that index, with its columns named by `event_column`.

    They are identified by index, because DuckDB has its own names for empty ones.
    """
    return (
        f"FROM {EVENTS}{place} AS named({', '.join(DUCKDB.quoted(event_column(name)) for name in columns)})"
    )


def _in_union(name: str, here: TableColumn, shared: ColumnType, tables: Sequence[TableColumn]) -> exp.Expr:
    """The column of one table in the form of the union; `tables` are those that have it, including this.

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


def _checked(name: str, here: TableColumn, fits: exp.Expr, bent: exp.Expr, said: str) -> exp.Expr:
    shown = reference(name, here.column)
    text = exp.DPipe(
        this=exp.DPipe(
            this=exp.Literal.string(f"estero: column {name!r}: "),
            expression=cast(shown, "VARCHAR"),
            safe=True,
        ),
        expression=exp.Literal.string(f" in the table of {here.type_name} is {said}\n{CONVERT_IT}"),
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
