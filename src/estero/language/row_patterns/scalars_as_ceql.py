"""Conditions of SQL, as trees of SQLGlot → the same condition in CEQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from estero.language.tree.durations import UNITS


class Unsaid(Exception):
    """Raised if CEQL has no counterpart; the text says of what."""


_BINARY: Final[dict[type, str]] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.And: "AND",
    exp.Or: "OR",
}
_FUNCTIONS: Final[dict[type, str]] = {
    exp.Abs: "abs",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Sqrt: "sqrt",
    exp.Length: "length",
    exp.Coalesce: "coalesce",
    exp.Nullif: "nullif",
}
"""Functions that mean the same in both languages."""
_TIMESTAMPS: Final = frozenset({exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ})


def as_ceql(tree: exp.Expr, column: Callable[[str], str]) -> str:
    """The text of a condition, in which `column` gives the names of columns; raises `Unsaid`."""

    def said(node: exp.Expr) -> str:
        return as_ceql(node, column)

    if type(tree) in _BINARY and isinstance(tree, exp.Binary):
        return f"({said(tree.left)} {_BINARY[type(tree)]} {said(tree.right)})"
    if type(tree) in _FUNCTIONS and isinstance(tree, exp.Func):
        others = tree.expressions if isinstance(tree, exp.Coalesce) else [tree.args.get("expression")]
        arguments = [said(part) for part in (tree.this, *others) if part is not None]
        return f"{_FUNCTIONS[type(tree)]}({', '.join(arguments)})"
    match tree:
        case exp.Paren():
            return said(tree.this)
        case exp.Column():
            return column(tree.name)
        case exp.Not():
            return f"(NOT {said(tree.this)})"
        case exp.Neg():
            return f"(-{said(tree.this)})"
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return f"({said(tree.this)} IS NULL)"
        case exp.Between():
            low, high = said(tree.args["low"]), said(tree.args["high"])
            value = said(tree.this)
            return f"({value} >= {low} AND {value} <= {high})"
        case exp.In() if tree.expressions:
            members = [_member(member) for member in tree.expressions]
            return f"({said(tree.this)} IN {{{', '.join(members)}}})"
        case exp.Like() | exp.ILike() if isinstance(tree.expression, exp.Literal):
            return f"({said(tree.this)} {tree.key.upper()} {said(tree.expression)})"
    return _constant_as_ceql(tree)


def _constant_as_ceql(tree: exp.Expr) -> str:
    match tree:
        case exp.Interval():
            return duration_as_ceql(tree)
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.to.this in _TIMESTAMPS:
            return f"TIMESTAMP {_literal(tree.this)}"
        case exp.Boolean():
            return "TRUE" if tree.this else "FALSE"
        case exp.Null():
            return "NULL"
        case exp.Literal():
            return _literal(tree)
    if isinstance(tree, exp.Func):
        name = str(tree.this) if isinstance(tree, exp.Anonymous) else tree.sql_name()
        raise Unsaid(f"the function {name.upper()}")
    raise Unsaid(tree.key.upper())


def _member(node: exp.Expr) -> str:
    """The text of a constant in a list."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal):
        raise Unsaid("IN with a value that is not a constant")
    return f"-{_literal(inner)}" if inner is not node else _literal(inner)


def _literal(tree: exp.Literal) -> str:
    text = str(tree.this)
    return "'" + text.replace("'", "''") + "'" if tree.is_string else text


_AMOUNTS: Final = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*")


def duration_as_ceql(interval: exp.Interval) -> str:
    """The text of a duration; raises `Unsaid` for months and years, which have no fixed length."""
    unit = interval.args.get("unit")
    text = (
        f"{interval.this.this} {unit.name}" if unit is not None else str(getattr(interval.this, "this", ""))
    )
    pieces = []
    at = 0
    for match in _AMOUNTS.finditer(text):
        name = match[2].upper()
        if match.start() != at or name not in UNITS:
            break
        pieces.append(f"{match[1]} {UNITS[name].name}")
        at = match.end()
    if not pieces or at != len(text):
        raise Unsaid(interval.sql("duckdb"))
    return " ".join(pieces)


def window_as_ceql(text: str, time: str) -> str:
    """The text of a window: a duration, or a number of ticks of the time column."""
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]
    except (SqlglotError, IndexError):
        raise Unsaid(text) from None
    if isinstance(tree, exp.Interval):
        return duration_as_ceql(tree)
    if isinstance(tree, exp.Literal) and not tree.is_string and time:
        return f"{tree.this} [{time}]"
    raise Unsaid(text)
