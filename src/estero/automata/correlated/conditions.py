"""Conditions of transitions on their event and the one before, closed under conjunction and complement.

They are the types of Theorem 8 of "Towards streaming evaluation of queries with correlation in complex event
processing" (docs/papers.md): each *term* has a few outcomes that exclude one another, and a condition is the
set of allowed outcomes of some terms. The complement of a condition is thus a union of a few disjoint
conditions. Unknown is an outcome of its own: if a value is NULL, neither ``=`` nor ``!=`` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, product
from typing import Final, NamedTuple

from estero.automata.chain import Neighbours, asked_before
from estero.automata.reads import not_true
from estero.language.tree.expressions import (
    And,
    Call,
    Comparison,
    ComparisonOperator,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
)

LESS, EQUAL, GREATER, UNKNOWN = 1, 2, 4, 8
TRUE, FALSE, NEITHER = 1, 2, 4
_COMPARED, _DIFFERENT = LESS | EQUAL | GREATER, LESS | GREATER

_OUTCOMES: Final[Mapping[ComparisonOperator, int]] = {
    "=": EQUAL,
    "!=": _DIFFERENT,
    "<": LESS,
    "<=": LESS | EQUAL,
    ">": GREATER,
    ">=": GREATER | EQUAL,
}
_OPERATORS: Final = {outcomes: operator for operator, outcomes in _OUTCOMES.items()}


class Side(NamedTuple):
    """An expression over the previous event, or over the current one."""

    before: bool
    value: Node


class Compared(NamedTuple):
    """A comparison of two values, whose outcome is LESS, EQUAL, GREATER or UNKNOWN."""

    left: Side
    right: Side


Term = Compared | Side
"""A comparison, or a condition on one of the two events, whose outcome is TRUE, FALSE or NEITHER."""

Condition = tuple[tuple[int, int], ...]
"""Pairs of a term's number, ascending, and its allowed outcomes, as bits; all of them must hold."""

ANY: Final[Condition] = ()


class Terms:
    """A numbering of terms, with the operations on conditions over them."""

    def __init__(self) -> None:
        self._numbers: dict[Term, int] = {}
        self._terms: list[Term] = []
        self.both: Callable[[Condition, Condition], Condition | None] = cache(self._both)

    def of_neighbours(self, comparisons: Iterable[Neighbours]) -> Condition | None:
        """The condition that all comparisons are true, or None if they exclude one another."""
        return self.all_of((self._of_neighbours(comparison),) for comparison in comparisons)

    def _of_neighbours(self, asked: Neighbours) -> tuple[int, int]:
        match asked:
            case Neighbours("=", left, Literal(bool(truth))):
                return self._number(Side(True, left)), TRUE if truth else FALSE
            case _:
                outcomes = _OUTCOMES[asked.operator] | (UNKNOWN if asked.or_null else 0)
                return self._compared(Side(True, asked.left), Side(False, asked.right), outcomes)

    def of_event(self, parts: Iterable[Node]) -> list[Condition]:
        """Disjoint conditions whose union is the conjunction of `parts` on the event."""
        ways = product(*(list(self._ways(part, wanted=True)) for part in parts))
        conditions = (self.all_of(way) for way in ways)
        return [condition for condition in conditions if condition is not None]

    def all_of(self, conditions: Iterable[Condition]) -> Condition | None:
        """The conjunction of the conditions, or None if they exclude one another."""
        joint: Condition | None = ANY
        for condition in conditions:
            joint = None if joint is None else self.both(joint, condition)
        return joint

    def without(self, one: Condition, other: Condition) -> Iterator[Condition]:
        """Disjoint conditions whose union is the difference of `one` and `other`."""
        rest: Condition | None = one
        for number, outcomes in other:
            if rest is None:
                return
            outside = self.both(rest, ((number, self._all(number) & ~outcomes),))
            if outside is not None:
                yield outside
            rest = self.both(rest, ((number, outcomes),))

    def fused(self, conditions: Iterable[Condition]) -> list[Condition]:
        """Merges disjoint conditions into fewer ones with the same union."""
        fewer = list(dict.fromkeys(conditions))
        changed = True
        while changed and len(fewer) > 1:
            changed = False
            for number in sorted({number for condition in fewer for number, _ in condition}):
                alike: dict[Condition, int] = {}
                for condition in fewer:
                    outcomes = dict(condition).get(number, self._all(number))
                    others = tuple(item for item in condition if item[0] != number)
                    alike[others] = alike.get(others, 0) | outcomes
                if len(alike) < len(fewer):
                    changed = True
                    fewer = [
                        tuple(sorted((*others, (number, outcomes))))
                        if outcomes != self._all(number)
                        else others
                        for others, outcomes in alike.items()
                    ]
        return fewer

    def written(
        self, condition: Condition, *, null_differs: bool
    ) -> Iterator[tuple[tuple[Node, ...], tuple[Neighbours, ...]]]:
        """Disjoint cases of a condition: conditions on the current event, and comparisons of both events.

        With `null_differs` a comparison may require that values differ or are NULL.
        """
        ways = [list(self._written(number, outcomes, null_differs)) for number, outcomes in condition]
        for way in product(*ways):
            here = dict.fromkeys(part for part in chain.from_iterable(way) if isinstance(part, Node))
            asked = dict.fromkeys(part for part in chain.from_iterable(way) if isinstance(part, Neighbours))
            yield tuple(here), tuple(asked)

    # ------------------------------------------------------------------------------------ reckoning

    def _number(self, term: Term) -> int:
        number = self._numbers.setdefault(term, len(self._terms))
        if number == len(self._terms):
            self._terms.append(term)
        return number

    def _all(self, number: int) -> int:
        match self._terms[number]:
            case Compared():
                return _COMPARED | UNKNOWN
            case Side(_, IsNull()):
                return TRUE | FALSE
            case _:
                return TRUE | FALSE | NEITHER

    def _compared(self, left: Side, right: Side, outcomes: int) -> tuple[int, int]:
        """A comparison with the event before on its left, or else with its sides in a fixed order."""
        if left.before < right.before or (left.before == right.before and str(left.value) > str(right.value)):
            left, right = right, left
            outcomes = outcomes & ~_DIFFERENT | (outcomes & LESS) << 2 | (outcomes & GREATER) >> 2
        return self._number(Compared(left, right)), outcomes

    def _ways(self, condition: Node, *, wanted: bool) -> Iterator[Condition]:
        """Disjoint conditions under which `condition` is true of the current event, or not true."""
        match condition:
            case Not(Call("coalesce", (part, Literal(False)))):
                yield from self._ways(part, wanted=not wanted)
            case And(parts) if wanted:
                for way in product(*(list(self._ways(part, wanted=True)) for part in parts)):
                    both = self.all_of(way)
                    if both is not None:
                        yield both
            case And((first, *others)):
                yield from self._ways(first, wanted=False)
                rest = And(tuple(others)) if len(others) > 1 else others[0]
                for true, other in product(self._ways(first, wanted=True), self._ways(rest, wanted=False)):
                    both = self.both(true, other)
                    if both is not None:
                        yield both
            case Comparison(operator, left, right):
                outcomes = _OUTCOMES[operator] if wanted else 15 & ~_OUTCOMES[operator]
                yield (self._compared(Side(False, left), Side(False, right), outcomes),)
            case IsNull() | Not(IsNull()):
                asked = condition if isinstance(condition, IsNull) else condition.part
                yield ((self._number(Side(False, asked)), TRUE if wanted is (asked is condition) else FALSE),)
            case Not(part):
                yield ((self._number(Side(False, part)), FALSE if wanted else TRUE | NEITHER),)
            case _:
                yield ((self._number(Side(False, condition)), TRUE if wanted else FALSE | NEITHER),)

    def _both(self, one: Condition, other: Condition) -> Condition | None:
        allowed = dict(one)
        for number, outcomes in other:
            allowed[number] = allowed.get(number, outcomes) & outcomes
        tidy = self._with_equal_values(allowed)
        if tidy is None or not all(tidy.values()) or not self._knows(tidy):
            return None
        return tuple(sorted(tidy.items()))

    def _with_equal_values(self, allowed: Mapping[int, int]) -> dict[int, int] | None:
        """Rewrites comparisons between both events into comparisons within one event, by their equalities.

        If x.a = y.b, then x.a compares with y.c as y.b does. None if that is contradictory.
        """
        equals: dict[Side, Side] = {}
        tidied = {number: outcomes for number, outcomes in allowed.items() if not self._crossing(number)}
        for number in sorted(allowed, key=lambda number: (allowed[number] != EQUAL, number)):
            term, outcomes = self._crossing(number), allowed[number]
            if term is None:
                continue
            left, right = equals.get(term.left, term.left), equals.get(term.right, term.right)
            if left == term.left and right == term.right:
                if outcomes == EQUAL:
                    equals |= {left: right, right: left}
                tidied[number] = outcomes
                continue
            pair = (left, term.right) if left != term.left else (term.left, right)
            if pair[0] == pair[1]:
                if not outcomes & EQUAL:
                    return None
                continue
            same, outcomes = self._compared(*pair, outcomes)
            tidied[same] = tidied.get(same, outcomes) & outcomes
        return tidied

    def _crossing(self, number: int) -> Compared | None:
        """The term if it compares the event before with the current one, else None."""
        term = self._terms[number]
        crosses = isinstance(term, Compared) and term.left.before and not term.right.before
        return term if isinstance(term, Compared) and crosses else None

    def _knows(self, allowed: dict[int, int]) -> bool:
        """Removes the terms that NULLs decide; false if the condition is contradictory."""
        asked = [
            (number, Side(term.before, term.value.operand))
            for number in allowed
            if isinstance(term := self._terms[number], Side) and isinstance(term.value, IsNull)
        ]
        for number, side in asked:
            pairs = [compared for compared in allowed if isinstance(self._terms[compared], Compared)]
            about = [pair for pair in pairs if side in self._terms[pair]]
            if allowed[number] == FALSE:
                if any(not allowed[pair] & UNKNOWN for pair in about):
                    del allowed[number]
            else:
                for pair in about:
                    if not allowed[pair] & UNKNOWN:
                        return False
                    del allowed[pair]
        return True

    # --------------------------------------------------------------------------------------- writing

    def _written(
        self, number: int, outcomes: int, null_differs: bool
    ) -> Iterator[tuple[Node | Neighbours, ...]]:
        """Disjoint cases in which a term has one of the outcomes."""
        term = self._terms[number]
        if isinstance(term, Side):
            yield (_asked(term.before, _truth(term.value, outcomes)),)
        elif self._crossing(number) is None:
            yield (_asked(term.left.before, _comparison(term.left.value, term.right.value, outcomes)),)
        else:
            left, right = term.left.value, term.right.value
            if outcomes in _OPERATORS:
                yield (Neighbours(_OPERATORS[outcomes], left, right),)
            elif outcomes == _DIFFERENT | UNKNOWN and null_differs:
                yield (Neighbours("!=", left, right, or_null=True),)
            else:
                known = outcomes & _COMPARED
                here, before = _asked(False, Not(IsNull(right))), _asked(True, Not(IsNull(left)))
                if known:
                    compared = known in _OPERATORS
                    yield (Neighbours(_OPERATORS[known], left, right),) if compared else (here, before)
                if outcomes & UNKNOWN:
                    yield (_asked(False, IsNull(right)),)
                    yield here, _asked(True, IsNull(left))


def _asked(before: bool, condition: Node) -> Node | Neighbours:
    """A condition on the current event, or on the event before as a comparison of its truth."""
    if not before:
        return condition
    return asked_before(condition)


def _truth(condition: Node, outcomes: int) -> Node:
    """A condition that is true if and only if `condition` has one of the outcomes."""
    match outcomes:
        case 1:
            return condition
        case 2:
            return Not(condition)
        case 4:
            return IsNull(condition)
        case 3:
            return Not(IsNull(condition))
        case 5:
            return not_true(Not(condition))
        case _:
            return not_true(condition)


def _comparison(left: Node, right: Node, outcomes: int) -> Node:
    """A condition that is true if and only if comparing two values has one of the outcomes."""
    if outcomes in _OPERATORS:
        return Comparison(_OPERATORS[outcomes], left, right)
    others = 15 & ~outcomes
    if others in _OPERATORS:
        return not_true(Comparison(_OPERATORS[others], left, right))
    if outcomes == UNKNOWN:
        return Or((IsNull(left), IsNull(right)))
    if outcomes == _COMPARED:
        return And((Not(IsNull(left)), Not(IsNull(right))))
    raise ValueError(f"no condition is needed where all outcomes are allowed: {left}, {right}")
