"""Guards of fragments: conditions on an event before predicates are numbered as bits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from estero.automata.cea import FIRST, EventPredicate
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.expressions import Node


@dataclass(frozen=True, slots=True)
class SymbolicGuard:
    """A conjunction of predicates of an event, and of negated ones.

    With `types` (None: any type) the event has one of them, and satisfies all `conditions`; no
    condition is an AND. None of `absent` is true of it, and with `first` it is the first of its stream.
    """

    types: tuple[str, ...] | None = None
    conditions: tuple[Node, ...] = ()
    absent: frozenset[EventPredicate] = frozenset()
    first: bool = False

    def also(self, condition: Node) -> SymbolicGuard:
        """The guard with one more condition."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *conjuncts(condition)))))

    @property
    def present(self) -> tuple[EventPredicate, ...]:
        """The predicates that must be true."""
        first = (FIRST,) if self.first else ()
        if self.types is None:
            return first
        return (EventPredicate(self.types, conjoined(self.conditions)), *first)

    def meet(self, other: SymbolicGuard) -> SymbolicGuard | None:
        """The conjunction of two guards, or None if no event can pass."""
        types = _common(self.types, other.types)
        conditions = tuple(dict.fromkeys((*self.conditions, *other.conditions)))
        both = SymbolicGuard(types, conditions, frozenset(), self.first or other.first)
        return both.without(self.absent | other.absent) if types != () else None

    def without(self, absent: Iterable[EventPredicate]) -> SymbolicGuard | None:
        """The guard with `absent` forbidden as well; None if no event can pass."""
        left = [predicate for predicate in absent if not self.excludes(predicate)]
        if any(self.implies(predicate) for predicate in left):
            return None
        return replace(self, absent=self.absent | frozenset(left))

    def implies(self, predicate: EventPredicate) -> bool:
        """Whether the form of the guard shows that `predicate` is true of all events that pass."""
        if predicate == FIRST:
            return self.first
        if self.types is None or not set(self.types) <= set(predicate.types):
            return False
        return set(conjuncts(predicate.condition)) <= set(self.conditions)

    def excludes(self, predicate: EventPredicate) -> bool:
        """Whether the form of the guard shows that `predicate` is true of no event that passes."""
        if predicate in self.absent:
            return True
        return predicate != FIRST and self.types is not None and set(self.types).isdisjoint(predicate.types)

    def split(self, predicate: EventPredicate) -> tuple[SymbolicGuard | None, SymbolicGuard | None]:
        """The guard with `predicate` true, and with it not true; None for one that no event can pass."""
        if self.excludes(predicate):
            return None, self
        return self.meet(guard_of(predicate)), self.without({predicate})


ANYTHING = SymbolicGuard()


def guard_of(predicate: EventPredicate) -> SymbolicGuard:
    """The guard that asks for just this predicate."""
    if predicate == FIRST:
        return SymbolicGuard(first=True)
    return SymbolicGuard(predicate.types, tuple(conjuncts(predicate.condition)))


def _common(one: tuple[str, ...] | None, two: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or two is None:
        return two if one is None else one
    return tuple(name for name in one if name in two)
