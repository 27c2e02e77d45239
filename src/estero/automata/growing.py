"""Monotone conditions, which stay true as more events are marked, such as ``count(DISTINCT x.user) >= 5``.

Among the complex events with the same start and end it is enough to check such a condition on the greatest
one, if there is one (`greatest`): one that marks fewer events satisfies it only if the greatest one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeGuard

from estero.automata.cea import CEA
from estero.automata.residual import Key, Residual
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.whole import ENDS

_NEVER_NEGATIVE: Final = frozenset({"abs", "length", "sqrt"})
"""Functions whose values are never negative."""


class _Way(NamedTuple):
    """The directions in which a value may change as more events are marked; NULL may become anything."""

    falls: bool
    rises: bool


_CONSTANT, _RISING, _FALLING, _ANY = (
    _Way(False, False),
    _Way(False, True),
    _Way(True, False),
    _Way(True, True),
)


def growing_keys(residuals: Iterable[Residual], automaton: CEA) -> frozenset[Key] | None:
    """The labels that the residuals refer to, if all residuals stay true as more events get these labels.

    None if one of them may become false, or refers to parts of a complex event. If there are no labels, the
    residuals depend on the start and the end alone.
    """
    keys: set[Key] = set()
    for residual in residuals:
        plain = residual.place is None and residual.nearby is None and not residual.refuted
        if not plain or not isinstance(residual.condition, e.Node):
            return None
        bindings = dict(residual.bindings)
        if not _Growth(automaton, bindings).stays(residual.condition, true=True):
            return None
        keys.update(key for name, key in residual.bindings if name not in ENDS)
    return frozenset(keys)


class _Growth:
    """The monotonicity of conditions as more events of an automaton are marked."""

    def __init__(self, automaton: CEA, bindings: dict[str, Key]) -> None:
        self._automaton, self._bindings = automaton, bindings

    def stays(self, condition: e.Node, *, true: bool) -> bool:
        """Whether a true condition stays true or, unless `true`, a false one stays false."""
        match condition:
            case e.And(parts) | e.Or(parts):
                return all(self.stays(part, true=true) for part in parts)
            case e.Not(part):
                return self.stays(part, true=not true)
            case e.Between(operand, low, high):
                parts = e.Comparison(">=", operand, low), e.Comparison("<=", operand, high)
                return all(self.stays(part, true=true) for part in parts)
            case e.Comparison(operator, left, right):
                return self._stays_so(operator if true else e.NEGATED[operator], left, right)
            case _:
                return self._way(condition) == _CONSTANT

    def _stays_so(self, operator: e.ComparisonOperator, left: e.Node, right: e.Node) -> bool:
        one, other = self._way(left), self._way(right)
        match operator:
            case ">" | ">=":
                return not (one.falls or other.rises)
            case "<" | "<=":
                return not (one.rises or other.falls)
            case _:
                return one == other == _CONSTANT

    def _way(self, node: e.Node) -> _Way:
        """The way of an expression; NaN is the largest number, and sums of infinities may be NaN."""
        match node:
            case e.Literal(value):
                return _ANY if isinstance(value, float) and not math.isfinite(value) else _CONSTANT
            case e.Attribute(variable=variable) if variable in ENDS:
                return _CONSTANT
            case e.Aggregate(function="count" | "max"):
                return _RISING
            case e.Aggregate(function="min"):
                return _FALLING
            case e.Aggregate(function="sum", variable=variable, operand=e.Node() as operand):
                return _RISING if self._is_never_negative(operand, self._bindings[variable]) else _ANY
            case e.Arithmetic("+" | "-" as operator, left, right):
                one, two = self._way(left), self._way(right)
                if operator == "-" and two != _CONSTANT:
                    two = _FALLING if two == _RISING and _counts(right) else _ANY
                sure = _CONSTANT in (one, two) or _counts(left) or _counts(right)
                return _Way(one.falls or two.falls, one.rises or two.rises) if sure else _ANY
            case e.Arithmetic("*" | "/", operand, e.Literal(factor)) if _is_positive(factor):
                return self._way(operand)
            case e.Arithmetic("*", e.Literal(factor), operand) if _is_positive(factor):
                return self._way(operand)
            case e.Attribute() | e.Aggregate() | e.SetPredicate() | e.Previous() | e.EventFilter():
                return _ANY
            case _:
                alike = all(self._way(child) == _CONSTANT for child in node.children())
                return _CONSTANT if alike else _ANY

    def _is_never_negative(self, node: e.Node, key: Key) -> bool:
        """Whether an expression over events with a label is never negative, by its form or its predicates."""
        match node:
            case e.Literal(value):
                return _is_number(value) and value >= 0
            case e.Call(name) if name in _NEVER_NEGATIVE:
                return True
            case e.Arithmetic("+" | "*" | "/", left, right):
                return self._is_never_negative(left, key) and self._is_never_negative(right, key)
            case e.Case(whens, e.Node() as default):
                return all(
                    self._is_never_negative(branch, key)
                    for branch in (default, *(one.value for one in whens))
                )
            case e.Attribute():
                marking = [
                    transition for transition in self._automaton.transitions if transition.carries(key)
                ]
                return all(
                    any(_says_so(part, node) for part in self._asked(transition.guard.present))
                    for transition in marking
                )
            case _:
                return False

    def _asked(self, bits: Iterable[int]) -> Iterator[e.Node]:
        """The conjuncts of the conditions of predicates."""
        for bit in bits:
            condition = self._automaton.predicates[bit].condition
            if isinstance(condition, e.And):
                yield from condition.parts
            elif condition is not None:
                yield condition


def _says_so(condition: e.Node, value: e.Node) -> bool:
    """Whether a condition implies that a value is not negative."""
    match condition:
        case e.Comparison(">" | ">=", operand, e.Literal(bound)) | e.Between(operand, e.Literal(bound)):
            return operand == value and _is_number(bound) and bound >= 0
        case e.Comparison("<" | "<=", e.Literal(bound), operand):
            return operand == value and _is_number(bound) and bound >= 0
        case _:
            return False


def _counts(node: e.Node) -> bool:
    """Whether an expression is computed from counts and integers alone."""
    match node:
        case e.Aggregate(function="count") | e.Literal(int()):
            return True
        case e.Arithmetic("+" | "*", left, right):
            return _counts(left) and _counts(right)
        case _:
            return False


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_positive(value: Value) -> bool:
    return _is_number(value) and value > 0
