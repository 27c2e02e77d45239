"""Conditions of DEFINE on rows: evaluated by DuckDB for all rows, packed into bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from estero.errors import QueryError
from estero.language.row_patterns.slots import Expression, Presence, Slot, Value
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.statements import Statements, alias, unique, written

_ROWS = 1 << 20
"""The number of rows that are classified at once."""
_BITS = 64


@dataclass(frozen=True)
class Divided:
    """A condition in two parts: one decided by rows at fixed distances, one by the match so far."""

    near: Expression | None
    far: Expression | None


def divided(condition: Expression) -> Divided:
    """The parts of a conjunction by what they depend on."""
    near: list[exp.Expr] = []
    far: list[exp.Expr] = []
    for part in _conjuncts(condition.tree):
        (near if all(map(_is_near, _slots_in(part, condition.slots))) else far).append(part)
    return Divided(_joined(near, condition.slots), _joined(far, condition.slots))


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.left), *_conjuncts(tree.right)]
    return [tree]


def _slots_in(tree: exp.Expr, slots: Sequence[Slot]) -> list[Slot]:
    names = {column.name for column in tree.find_all(exp.Column)}
    return [slot for number, slot in enumerate(slots) if f"s{number}" in names]


def _is_near(slot: Slot) -> bool:
    return isinstance(slot, Value | Presence) and slot.address.is_near


def _joined(parts: Sequence[exp.Expr], slots: Sequence[Slot]) -> Expression | None:
    if not parts:
        return None
    tree = parts[0].copy()
    for part in parts[1:]:
        tree = exp.And(this=exp.Paren(this=tree), expression=exp.Paren(this=part.copy()))
    return Expression(tree, tuple(slots))


def check_types(
    statements: Statements,
    clause: RowPatternClause,
    conditions: Mapping[str, Expression],
    types: Mapping[Slot, str],
) -> None:
    """Raises `QueryError` for a condition that is not boolean."""
    if not conditions:
        return
    places = {entry.name.casefold(): entry.expression for entry in clause.define}
    for variable, condition in conditions.items():
        slots = [
            alias(f"CAST(NULL AS {types[slot]})", f"s{number}") for number, slot in enumerate(condition.slots)
        ]
        source = f" FROM (SELECT {', '.join(slots)})" if slots else ""
        sql = f"SELECT ({written(condition, [f's{n}' for n in range(len(slots))])}) AS condition{source}"
        ((_, kind),) = statements.types(sql, f"the condition of {variable} in DEFINE")
        if kind not in ("BOOLEAN", '"NULL"', "NULL"):
            span = places[variable].span
            raise QueryError(
                f"the condition of {clause.variables[variable]} has the type {kind}, not BOOLEAN",
                text=clause.text,
                span=span,
                found=places[variable].text,
                hint="compare it with something, as in x > 0",
            )


def row_bits(
    statements: Statements, rows: OrderedRows, conditions: Sequence[Expression]
) -> NDArray[np.uint64]:
    """The conditions that each row fulfils, as bits uint64[rows, words]."""
    words = max(1, -(-len(conditions) // _BITS))
    bits = np.zeros((rows.size, words), np.uint64)
    if not conditions:
        return bits
    slots: dict[Slot, int] = {}
    texts = []
    for condition in conditions:
        numbers = [slots.setdefault(slot, len(slots)) for slot in condition.slots if _is_near(slot)]
        named = iter(numbers)
        names = [f"s{next(named)}" if _is_near(slot) else "NULL" for slot in condition.slots]
        texts.append(written(condition, names))
    sql = _statement(texts, list(slots), words)
    for start in range(0, rows.size, _ROWS):
        size = min(_ROWS, rows.size - start)
        name = unique("rows")
        table = statements.table(sql.format(name), "DEFINE", {name: _chunk(rows, list(slots), start, size)})
        for word in range(words):
            bits[start : start + size, word] = table.column(word).to_numpy()
    return bits


def _statement(conditions: Sequence[str], slots: Sequence[Slot], words: int) -> str:
    flags = [
        f"CASE WHEN ({text}) THEN {1 << number % _BITS}::UBIGINT ELSE 0::UBIGINT END"
        for number, text in enumerate(conditions)
    ]
    selected = [" | ".join(flags[word * _BITS : (word + 1) * _BITS]) for word in range(words)]
    inner = [f"{_guarded(slot, number)} AS s{number}" for number, slot in enumerate(slots)] or [
        "1 AS nothing"
    ]
    text = f"SELECT {', '.join(selected)} FROM (SELECT {', '.join(inner)} FROM "
    return text.replace("{", "{{").replace("}", "}}") + "{})"


def _guarded(slot: Slot, number: int) -> str:
    """The value that a slot reads, if its row is in the partition."""
    assert isinstance(slot, Value | Presence)  # noqa: S101 - conditions on rows have no others
    shift = slot.address.shift
    inside = f"place >= {-shift}" if shift < 0 else f"rest >= {shift}"
    if isinstance(slot, Presence):
        return f"({inside})" if shift else "TRUE"
    return f"CASE WHEN {inside} THEN r{number} END" if shift else f"r{number}"


def _chunk(rows: OrderedRows, slots: Sequence[Slot], start: int, size: int) -> pa.Table:
    place, rest = rows.places(start, size)
    columns = {"place": pa.array(place), "rest": pa.array(rest)}
    for number, slot in enumerate(slots):
        if isinstance(slot, Value):
            columns[f"r{number}"] = _shifted(rows.columns[slot.column], start + slot.address.shift, size)
    return pa.table(columns)


def _shifted(column: pa.Array, start: int, size: int) -> pa.Array:
    """The values shifted by a distance, NULL beyond the ends."""
    first, last = max(start, 0), min(start + size, len(column))
    if last <= first:
        return pa.nulls(size, column.type)
    part = column.slice(first, last - first)
    before, behind = first - start, start + size - last
    if not before and not behind:
        return part
    return pa.concat_arrays([pa.nulls(before, column.type), part, pa.nulls(behind, column.type)])
