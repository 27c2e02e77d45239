"""Parts of conditions that read one row: computed by DuckDB for all rows, and looked up by a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from estero.language.row_patterns.slots import Address, Expression, Presence, Slot, Value, column_name
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.statements import Statements, unique, written

_PARTS: Final = (exp.Binary, exp.Unary, exp.Func, exp.Predicate, exp.Bracket, exp.Dot)


@dataclass(frozen=True, eq=False)
class Computed:
    """A value for each row, read at an address; `absent` if there is no such row."""

    address: Address
    values: list[Any]
    absent: Any
    kind: str


FarSlot = Slot | Computed


@dataclass(frozen=True)
class FarExpression:
    """An expression over slots and computed values, which are its columns s0, s1 and so on."""

    tree: exp.Expr
    slots: tuple[FarSlot, ...]


def with_computed(statements: Statements, rows: OrderedRows, condition: Expression) -> FarExpression:
    """The condition with computed values in place of its largest parts that read one row each."""
    slots: dict[FarSlot, int] = {}
    of = {f"s{number}": slot for number, slot in enumerate(condition.slots)}

    def named(slot: FarSlot) -> exp.Expr:
        return exp.column(f"s{slots.setdefault(slot, len(slots))}")

    def part(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return named(of[node.name]) if node.name in of and len(node.parts) == 1 else node
        address = _address(node, of)
        if address is None:
            return node
        return named(_computed(statements, rows, node, of, address))

    tree = condition.tree.transform(part)
    return FarExpression(tree, tuple(slots))


def _address(node: exp.Expr, of: Mapping[str, Slot]) -> Address | None:
    """The single address that an expression reads; None for any other node."""
    if not isinstance(node, _PARTS) or isinstance(node.parent, exp.Case) or node.find_ancestor(exp.Lambda):
        return None
    slots = [of[column.name] for column in node.find_all(exp.Column) if column.name in of]
    addresses = {slot.address for slot in slots if isinstance(slot, Value | Presence)}
    is_one = len(addresses) == 1 and all(isinstance(slot, Value | Presence) for slot in slots)
    return next(iter(addresses)) if is_one else None


def _computed(
    statements: Statements,
    rows: OrderedRows,
    node: exp.Expr,
    of: Mapping[str, Slot],
    address: Address,
) -> Computed:
    slots = tuple(of.values())
    expression = Expression(node, slots)
    names = [_name(slot) for slot in slots]
    columns = sorted({slot.column for slot in slots if isinstance(slot, Value) and slot.address == address})
    relation = unique("rows")
    table = pa.table(
        {"there": pa.array([True]).take(pa.array([0] * rows.size, pa.int64()))}
        | {column_name(number): rows.columns[number] for number in columns}
    )
    sql = f"SELECT ({written(expression, names)}) AS computed FROM {relation}"
    values = statements.table(sql, "DEFINE", {relation: table}).column(0).to_pylist()
    nothing = [f"CAST(NULL AS {rows.types[number]}) AS {column_name(number)}" for number in columns]
    source = ", ".join(["FALSE AS there", *nothing])
    absent = f"SELECT ({written(expression, names)}) AS computed FROM (SELECT {source})"
    ((_, kind),) = statements.types(absent, "DEFINE")
    return Computed(address, values, statements.value(absent, [], "DEFINE"), kind)


def _name(slot: Slot) -> str:
    return column_name(slot.column) if isinstance(slot, Value) else "there"
