"""Expressions over a few values: by Python if its result is certainly the same, else by DuckDB."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from estero.recognize.row_patterns.statements import Statements, Written, written


class Doubt(Exception):
    """Raised if Python might compute another result than DuckDB."""


Values = Sequence[Any]
Function = Callable[[Values], Any]

_SAFE: Final = 1 << 31
_MOST_REMEMBERED: Final = 1 << 16
_COMPARISONS: Final[dict[type, Callable[[Any, Any], bool]]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_ARITHMETIC: Final[dict[type, Callable[[Any, Any], Any]]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}


class ScalarFunction:
    """An expression as a function of the values of its slots."""

    def __init__(
        self, expression: Written, types: Sequence[str], statements: Statements, purpose: str
    ) -> None:
        self._statements, self._purpose = statements, purpose
        names = [f"s{number}" for number in range(len(types))]
        slots = [f"CAST(? AS {kind}) AS {name}" for kind, name in zip(types, names, strict=True)]
        source = f" FROM (SELECT {', '.join(slots)})" if slots else ""
        self._sql = f"SELECT ({written(expression, names)}){source}"
        self._function = _function(expression.tree)
        self._known: dict[Any, Any] = {}

    def __call__(self, values: Values) -> Any:
        """Its value."""
        if self._function is not None:
            try:
                return self._function(values)
            except Doubt:
                pass
        key = repr(values)
        if key not in self._known:
            if len(self._known) > _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = self._statements.value(self._sql, values, self._purpose)
        return self._known[key]


def _function(node: exp.Expr) -> Function | None:
    """The function for a tree; None if Python has no equivalent of a part of it."""
    try:
        return _of(node)
    except Doubt:
        return None


def _of(node: exp.Expr) -> Function:
    match node:
        case exp.Paren():
            return _of(node.this)
        case exp.Column():
            return operator.itemgetter(int(node.name[1:]))
        case exp.Literal() | exp.Boolean() | exp.Null():
            constant = _constant(node)
            return lambda _: constant
        case exp.And() | exp.Or():
            return _connected(_of(node.left), _of(node.right), decisive=isinstance(node, exp.Or))
        case exp.Not():
            return _negated(_of(node.this))
        case exp.Is() if isinstance(node.expression, exp.Null):
            of = _of(node.this)
            return lambda values: of(values) is None
        case exp.Between():
            value, low, high = _of(node.this), _of(node.args["low"]), _of(node.args["high"])
            return _connected(
                _of_both(value, low, operator.ge), _of_both(value, high, operator.le), decisive=False
            )
        case exp.Coalesce():
            return _first_of([_of(part) for part in (node.this, *node.expressions)])
        case exp.Case() if node.this is None:
            ifs = [(_of(branch.this), _of(branch.args["true"])) for branch in node.args["ifs"]]
            default = node.args.get("default")
            return _case(ifs, _of(default) if default is not None else None)
    if isinstance(node, exp.Binary) and type(node) in _COMPARISONS:
        return _of_both(_of(node.left), _of(node.right), _COMPARISONS[type(node)])
    if isinstance(node, exp.Binary) and type(node) in _ARITHMETIC:
        return _computed(_of(node.left), _of(node.right), _ARITHMETIC[type(node)])
    raise Doubt


def _constant(node: exp.Expr) -> Any:
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    text = str(node.this)
    if node.is_string:
        return text
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _connected(left: Function, right: Function, *, decisive: bool) -> Function:
    """AND (false decides) or OR (true decides)."""

    def value(values: Values) -> Any:
        first = _truth(left(values))
        if first is decisive:
            return decisive
        second = _truth(right(values))
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return value


def _truth(value: Any) -> bool | None:
    if value is None or value is True or value is False:
        return value
    raise Doubt


def _negated(of: Function) -> Function:
    def value(values: Values) -> Any:
        truth = _truth(of(values))
        return None if truth is None else not truth

    return value


def _of_both(left: Function, right: Function, compute: Callable[[Any, Any], Any]) -> Function:
    """The result of a function of two values of one type; NULL if one is NULL."""

    def value(values: Values) -> Any:
        first, second = left(values), right(values)
        return None if first is None or second is None else compute(*_alike(first, second))

    return value


def _computed(left: Function, right: Function, compute: Callable[[Any, Any], Any]) -> Function:
    def number(first: Any, second: Any) -> Any:
        if type(first) not in _NUMBERS or type(second) not in _NUMBERS:
            raise Doubt
        result = compute(first, second)
        if not -_SAFE < result < _SAFE:
            raise Doubt
        return result

    return _of_both(left, right, number)


_NUMBERS: Final = frozenset({int, float, Decimal})
_ORDERED: Final = frozenset({str, date, datetime, bool})


def _alike(first: Any, second: Any) -> tuple[Any, Any]:
    """The two values as DuckDB compares them: of one type, doubles if one is."""
    kind, other = type(first), type(second)
    if kind is other:
        if kind is float and (first != first or second != second):  # noqa: PLR0124 - NaN
            raise Doubt
        if kind in _NUMBERS or kind in _ORDERED:
            return first, second
    elif kind in _NUMBERS and other in _NUMBERS:
        if float in (kind, other):
            return _alike(float(first), float(second))
        return first, second
    raise Doubt


def _first_of(parts: Sequence[Function]) -> Function:
    def value(values: Values) -> Any:
        for part in parts:
            result = part(values)
            if result is not None:
                return result
        return None

    return value


def _case(ifs: Sequence[tuple[Function, Function]], default: Function | None) -> Function:
    def value(values: Values) -> Any:
        for condition, result in ifs:
            if _truth(condition(values)):
                return result(values)
        return None if default is None else default(values)

    return value
