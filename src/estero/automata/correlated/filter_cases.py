"""Rewrites filters that join comparisons of several events by OR and NOT, so that automata can check them.

NOT moves inwards to comparisons whose variables have exactly one event each: in Kleene's three-valued logic
``NOT a.k = b.k`` is then ``a.k != b.k``, as NULL makes both unknown. OR becomes a disjunction of patterns.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

from estero.language.tree import pattern as p
from estero.language.tree.conditions import as_unary, conjoined, conjuncts, variables_of
from estero.language.tree.expressions import (
    NEGATED,
    And,
    Attribute,
    Between,
    Comparison,
    Node,
    Not,
    Or,
    has_previous,
)
from estero.language.tree.marks import ONE, marks_of
from estero.language.tree.selection import label_types

MOST_NODES: Final = 2_000
"""The most nodes of the patterns that this makes."""


def positive(pattern: p.Pattern) -> p.Pattern:
    """The pattern with NOT moved inside AND and OR, or replaced by the opposite comparison."""
    changed = p.with_children(pattern, positive)
    if not isinstance(changed, p.Filter):
        return changed
    return replace(changed, condition=_Negations(changed.pattern).moved(changed.condition, wanted=True))


class _Negations:
    """Moves NOT inwards, in a filter on the events of `pattern`."""

    def __init__(self, pattern: p.Pattern) -> None:
        self._pattern = pattern
        self._inside = set(label_types(pattern))

    def moved(self, condition: Node, *, wanted: bool) -> Node:
        """A condition that is true if and only if `condition` is true, or false unless `wanted`."""
        match condition:
            case _ if as_unary(condition, self._inside) is not None:
                return condition if wanted else Not(condition)
            case Not(part):
                return self.moved(part, wanted=not wanted)
            case And(parts) | Or(parts):
                connective = And if isinstance(condition, And) is wanted else Or
                return connective(tuple(self.moved(part, wanted=wanted) for part in parts))
            case Comparison(operator) if not wanted and self._is_of_single_events(condition):
                return replace(condition, operator=NEGATED[operator])
            case Between(operand, low, high) if not wanted and self._is_of_single_events(condition):
                return Or((Comparison("<", operand, low), Comparison(">", operand, high)))
            case _:
                return condition if wanted else Not(condition)

    def _is_of_single_events(self, condition: Node) -> bool:
        """Whether each variable that the condition reads has exactly one event."""
        if has_previous(condition):
            return False  # true of a single event, and so is its opposite
        variables = {node.variable for node in condition.walk() if isinstance(node, Attribute)}
        return all(marks_of(self._pattern, variable) == ONE for variable in variables if variable is not None)


def in_cases(pattern: p.Pattern) -> p.Pattern:
    """The pattern with each OR of comparisons of several events turned into OR of patterns.

    Only the compared parts of a sequence are copied. An OR that would make too many copies stays as it is.
    """
    return _Cases().of(pattern)


class _Cases:
    def __init__(self) -> None:
        self._nodes = 0

    def of(self, pattern: p.Pattern) -> p.Pattern:
        match pattern:
            case p.Filter(inner, condition):
                return self._filtered(pattern, inner, condition)
            case p.Unless(inner):
                return replace(pattern, pattern=self.of(inner))
            case p.Sequence(parts):
                return replace(pattern, parts=tuple(map(self.of, parts)))
            case _:
                return p.with_children(pattern, self.of)

    def _filtered(self, pattern: p.Filter, inner: p.Pattern, condition: Node) -> p.Pattern:
        inside = set(label_types(inner))
        filtered = self.of(inner)
        rest: list[Node] = []
        for part in conjuncts(condition):
            parted = None
            if isinstance(part, Or) and as_unary(part, inside) is None:
                parted = self._parted(filtered, part)
            if parted is None:
                rest.append(part)
            else:
                filtered = parted
        left = conjoined(rest)
        return filtered if left is None else replace(pattern, pattern=filtered, condition=left)

    def _parted(self, pattern: p.Pattern, condition: Or) -> p.Pattern | None:
        """The pattern split into the cases of `condition`; None if there are too many."""
        first, last = _compared(pattern, variables_of(condition))
        if isinstance(pattern, p.Sequence) and last - first + 1 < len(pattern.parts):
            few = p.Sequence(pattern.parts[first : last + 1], pattern.links[first:last])
            parted = self._parted(few, condition)
            if parted is None:
                return None
            parts = (*pattern.parts[:first], parted, *pattern.parts[last + 1 :])
            return replace(pattern, parts=parts, links=(*pattern.links[:first], *pattern.links[last:]))
        nodes = _size(condition) * sum(1 for _ in pattern.walk())
        if self._nodes + nodes > MOST_NODES:
            return None
        self._nodes += nodes
        return self._narrowed(pattern, condition)

    def _narrowed(self, pattern: p.Pattern, case: Node) -> p.Pattern:
        parts = [self._narrowed(pattern, part) for part in case.parts] if isinstance(case, Or) else []
        if parts:
            return p.Disjunction(tuple(parts))
        ors = [part for part in conjuncts(case) if isinstance(part, Or)]
        plain = conjoined(part for part in conjuncts(case) if not isinstance(part, Or))
        narrowed = pattern if plain is None else p.Filter(pattern, plain)
        for part in ors:
            narrowed = self._narrowed(narrowed, part)
        return narrowed


def _compared(pattern: p.Pattern, variables: set[str]) -> tuple[int, int]:
    """The first and the last part of a sequence that `variables` refer to; all parts if unsure."""
    if not isinstance(pattern, p.Sequence):
        return 0, 0
    with_them = [
        place for place, part in enumerate(pattern.parts) if not variables.isdisjoint(label_types(part))
    ]
    first, last = (with_them[0], with_them[-1]) if with_them else (0, -1)
    about = pattern.parts[first : last + 1]
    if len(about) < 2 or any(isinstance(part, p.Optional) for part in about):
        return 0, len(pattern.parts) - 1
    return first, last


def _size(condition: Node) -> int:
    """The number of cases of a condition."""
    match condition:
        case Or(parts):
            return sum(map(_size, parts))
        case And(parts):
            return prod(map(_size, parts))
        case _:
            return 1
