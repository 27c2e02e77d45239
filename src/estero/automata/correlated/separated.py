"""Comparisons of sums and differences, rewritten so that each side speaks of one event.

``y.time - x.time <= 5 MINUTES`` becomes ``y.time <= x.time + 5 MINUTES``, so that runs and indices can keep
the value of one event and compare that of the other with it. Except for overflows this is exact for integers,
timestamps and durations. Floats stay as they are, as their sums depend on the order, except for a constant
that integers are compared with: ``y.n - x.n >= 0.5`` is ``y.n - x.n >= 1``. Timestamps other than the time of
the stream are moved as durations since 1970, as "never" is often the end of the year 9999, the last
timestamp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.schema import Kind

_EXACT: Final = frozenset({Kind.INT, Kind.TIMESTAMP, Kind.DURATION})
_ROUNDED: Final = _EXACT | {Kind.FLOAT}
_EPOCH: Final = e.Literal(datetime(1970, 1, 1, tzinfo=UTC))
_SHORT: Final = 2**61 * 1000
"""The largest constant duration, in nanoseconds, that is added to a time."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a sum, which is added or subtracted."""

    node: e.Node
    is_added: bool


def separated(
    comparison: e.Comparison,
    kind: Callable[[e.Node], Kind | None],
    time: str | None,
    is_later: Callable[[str, str], bool],
    *,
    exactly: bool = True,
) -> e.Comparison | None:
    """An equivalent comparison with one variable on each side; None if there is none.

    `kind` is that of an expression over the events of one variable, or of none. `time` is the time column.
    Constants stand beside the variable that `is_later` than the other, so that two ends of one range are
    compared with one value of the event before. Unless `exactly`, floats are moved, too, which may round them
    differently.
    """
    if any(isinstance(node, e.Aggregate) for node in comparison.walk()):
        return None
    comparison = _in_integers(comparison, kind)
    terms = [*_terms(comparison.left, True), *_terms(comparison.right, False)]
    names_by_term = [_variables(term.node) for term in terms]
    variables = set[str]().union(*names_by_term)
    if len(variables) != 2 or any(len(names) > 1 for names in names_by_term):
        return None
    kinds = [kind(term.node) for term in terms]
    movable = _EXACT if exactly else _ROUNDED
    if not all(term_kind in movable for term_kind in kinds) or not all(
        _is_short(term.node) for term in terms
    ):
        return None
    one, other = sorted(variables)
    later = {one} if is_later(one, other) else {other}
    names_by_term = [names or later for names in names_by_term]
    moved = sorted(zip(terms, names_by_term, kinds, strict=True), key=lambda item: not item[0].is_added)
    first = moved[0][1]
    left = [(term, term_kind) for term, names, term_kind in moved if names == first]
    right = [
        (_Term(term.node, not term.is_added), term_kind) for term, names, term_kind in moved if names != first
    ]
    is_plain = all(_is_time(side, time) for side in (left, right))
    sides = (
        _sum([term if is_plain else _since_epoch(term, term_kind) for term, term_kind in side])
        for side in (left, right)
    )
    return e.Comparison(comparison.operator, *sides, span=comparison.span)


def _in_integers(comparison: e.Comparison, kind: Callable[[e.Node], Kind | None]) -> e.Comparison:
    """The comparison with an integer instead of a float literal if the other side is an integer."""
    left, operator, right = comparison.left, comparison.operator, comparison.right

    def bound(literal: e.Node, other: e.Node, downwards: tuple[str, str]) -> e.Literal | None:
        number = _float_in(literal)
        if number is None or any(kind(term.node) is not Kind.INT for term in _terms(other, True)):
            return None
        if operator in ("=", "!=") and not number.is_integer():
            return None
        return e.Literal(math.floor(number) if operator in downwards else math.ceil(number))

    if (whole := bound(right, left, (">", "<="))) is not None:
        return replace(comparison, right=whole)
    if (whole := bound(left, right, ("<", ">="))) is not None:
        return replace(comparison, left=whole)
    return comparison


def _float_in(node: e.Node) -> float | None:
    """The value of a float literal in the range of 64-bit integers."""
    match node:
        case e.Negative(e.Literal(float() as value)):
            value = -value
        case e.Literal(float() as value):
            pass
        case _:
            return None
    return value if abs(value) < 2.0**62 else None


def _terms(node: e.Node, is_added: bool) -> Iterator[_Term]:
    match node:
        case e.Arithmetic("+" | "-" as sign, left, right):
            yield from _terms(left, is_added)
            yield from _terms(right, is_added is (sign == "+"))
        case e.Negative(operand):
            yield from _terms(operand, not is_added)
        case _:
            yield _Term(node, is_added)


def _variables(node: e.Node) -> set[str]:
    return {
        inner.variable
        for inner in node.walk()
        if isinstance(inner, e.Attribute) and inner.variable is not None
    }


def _is_short(node: e.Node) -> bool:
    return not any(
        isinstance(inner, e.Literal)
        and isinstance(inner.value, Duration)
        and abs(inner.value.nanoseconds) > _SHORT
        for inner in node.walk()
    )


def _is_time(side: list[tuple[_Term, Kind | None]], time: str | None) -> bool:
    """Whether the only timestamp on a side is the time of an event."""
    moments = [term for term, kind in side if kind is Kind.TIMESTAMP]
    match moments:
        case [_Term(e.Attribute(name), is_added)]:
            return name == time and is_added
        case _:
            return False


def _since_epoch(term: _Term, kind: Kind | None) -> _Term:
    if kind is not Kind.TIMESTAMP:
        return term
    return _Term(e.Arithmetic("-", term.node, _EPOCH), term.is_added)


def _sum(terms: list[_Term]) -> e.Node:
    """The sum of the terms, positive ones first."""
    first, *others = sorted(terms, key=lambda term: not term.is_added)
    total = first.node if first.is_added else e.Negative(first.node)
    for term in others:
        total = e.Arithmetic("+" if term.is_added else "-", total, term.node)
    return total
