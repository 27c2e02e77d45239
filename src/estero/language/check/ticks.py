"""Durations combined with the integer time column, as numbers of its ticks.

If times are integers, a constant duration stands for whole ticks: ``x.ts - y.ts <= 5 MINUTES`` is ``x.ts -
y.ts <= 300000`` if a tick is a millisecond. A value compared with a duration must be a difference of times,
and one added to it a time or such a difference; next to other integers a duration remains one, which the
check of kinds refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, TypeVar, cast

from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.nodes import SyntaxNode, with_changed
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import QueryTree, Selected, SelectExpression
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import START_TIME, times_of
from estero.language.tree.whole import DEADLINE, END_OF

Select = tuple[Selected, ...] | None
Tree = TypeVar("Tree", bound=SyntaxNode)

_TIME, _DIFFERENCE = "time", "difference"
_OF_ONE: Final = frozenset({"first", "last", "min", "max"})
"""Aggregates whose value is a time where the events' are."""
_ALIKE: Final = frozenset({"greatest", "least", "coalesce", "nullif", "abs"})
"""Functions whose value is one of their arguments, or its negative."""
_WHOLE: Final[Mapping[str, Any]] = {"<": ceil, ">=": ceil, "<=": floor, ">": floor}
"""The comparison of an integer with an integer that replaces one with a fraction."""


def in_ticks(tree: Pattern, schema: Schema | None) -> Pattern:
    """The same pattern with ticks for the durations that are combined with integer times."""
    length = _tick_of(schema)
    if length is None or schema is None or schema.time is None:
        return tree
    return _Ticks(frozenset({schema.time}), length).pattern(tree)


def select_in_ticks(tree: QueryTree, schema: Schema | None) -> Select:
    """The same list of SELECT of a query, in which the times of complex events are such times, too."""
    length, select = _tick_of(schema), tree.select
    if select is None or length is None or schema is None or schema.time is None:
        return select
    ticks = _Ticks(frozenset({schema.time, *times_of(tree)}), length)
    return tuple(ticks.pattern(item) if isinstance(item, SelectExpression) else item for item in select)


def _tick_of(schema: Schema | None) -> int | None:
    """The length of a tick of integer times in nanoseconds; None for other times."""
    if schema is None or schema.time is None or schema.time_unit is None:
        return None
    return schema.time_unit.value if schema.column_kinds.get(schema.time) is Kind.INT else None


@dataclass(frozen=True, slots=True)
class _Ticks:
    times: frozenset[str]
    length: int

    def pattern(self, tree: Tree) -> Tree:
        def change(item: object) -> object:
            if isinstance(item, e.Node):
                return self.condition(item)
            return self.pattern(item) if isinstance(item, SyntaxNode) else item

        return with_changed(tree, change)

    def condition(self, node: e.Node) -> e.Node:
        """An expression or a condition, its parts first."""
        if isinstance(node, e.Literal | e.Attribute | e.Previous):
            return node
        changed = with_changed(node, lambda item: self.condition(item) if isinstance(item, e.Node) else item)
        match changed:
            case e.Comparison(operator, left, right):
                if self._is(left, _DIFFERENCE):
                    return replace(changed, right=self._bound(right, operator))
                if self._is(right, _DIFFERENCE):
                    return replace(changed, left=self._bound(left, e.MIRRORED[operator]))
            case e.Between(operand, low, high) if self._is(operand, _DIFFERENCE):
                return replace(changed, low=self._bound(low, ">="), high=self._bound(high, "<="))
            case e.In(operand, members) if self._is(operand, _DIFFERENCE):
                return replace(changed, members=tuple(map(self._member, members)))
            case e.Arithmetic("+" | "-", left, right):
                if self._role(left) is not None:
                    return replace(changed, right=self._whole(right))
                if self._role(right) is not None:
                    return replace(changed, left=self._whole(left))
            case e.Call(name, arguments) if name in _ALIKE and any(
                self._is(argument, _DIFFERENCE) for argument in arguments
            ):
                return replace(changed, arguments=tuple(map(self._whole, arguments)))
            case _:
                pass
        return changed

    def _is(self, node: e.Node, role: str) -> bool:
        return self._role(node) == role

    def _role(self, node: e.Node) -> str | None:
        """Whether an expression is a time, or a difference of times, in ticks."""
        match node:
            case e.Attribute("duration", None) if START_TIME in self.times:
                return _DIFFERENCE
            case e.Attribute(name, variable):
                decided = name == DEADLINE and variable == END_OF
                return _TIME if decided or name in self.times else None
            case e.Aggregate(function, _, e.Attribute(name)):
                return _TIME if name in self.times and function in _OF_ONE else None
            case e.Previous(operand):
                return self._role(operand)
            case e.Negative(operand) if self._is(operand, _DIFFERENCE):
                return _DIFFERENCE
            case e.Call(name, arguments) if name in _ALIKE:
                roles = {self._role(argument) for argument in arguments} - {None}
                return roles.pop() if len(roles) == 1 else None
            case e.Arithmetic("-", left, right) if self._is(left, _TIME) and self._is(right, _TIME):
                return _DIFFERENCE
            case e.Arithmetic("+" | "-", left, right):
                roles = {self._role(left), self._role(right)} - {None}
                return roles.pop() if len(roles) == 1 else None
            case _:
                return None

    def _member(self, member: e.Literal | e.Range) -> e.Literal | e.Range:
        if isinstance(member, e.Range):
            low, high = self._bound(member.low, ">="), self._bound(member.high, "<=")
            return replace(member, low=cast(e.Literal, low), high=cast(e.Literal, high))
        return cast(e.Literal, self._bound(member, "="))

    def _bound(self, node: e.Node, operator: str) -> e.Node:
        """The integer that replaces a constant duration in a comparison."""
        ticks = self._ticks(node)
        if ticks is None:
            return node
        if ticks.denominator == 1:
            return e.Literal(int(ticks), span=node.span)
        whole = _WHOLE.get(operator)
        return e.Literal(float(ticks) if whole is None else whole(ticks), span=node.span)

    def _whole(self, node: e.Node) -> e.Node:
        """The integer that replaces a constant duration of whole ticks in a sum."""
        ticks = self._ticks(node)
        return node if ticks is None or ticks.denominator > 1 else e.Literal(int(ticks), span=node.span)

    def _ticks(self, node: e.Node) -> Fraction | None:
        nanoseconds = _nanoseconds(node)
        return None if nanoseconds is None else Fraction(nanoseconds, self.length)


def _nanoseconds(node: e.Node) -> int | None:
    """The length of a constant duration; None for anything else."""
    match node:
        case e.Literal(Duration(nanoseconds)):
            return nanoseconds
        case e.Negative(operand):
            length = _nanoseconds(operand)
            return None if length is None else -length
        case e.Arithmetic("*", e.Literal(int() as factor), value) | e.Arithmetic(
            "*", value, e.Literal(int() as factor)
        ):
            length = _nanoseconds(value)
            return None if length is None else factor * length
        case _:
            return None
