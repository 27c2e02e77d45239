"""Complex event automata (CEA), validated and printable.

They are the unary complex event automata of "A Second-Order Approach to Complex Event Recognition", section
6, and the CEA of "CORE: a Complex Event Recognition Engine" (docs/papers.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from estero.automata.exploration import reached
from estero.automata.residual import NO_HIDDEN, HiddenSet, Key, carries
from estero.language.tree.expressions import Node
from estero.language.tree.pattern import Pattern

LabelSet = frozenset[str]
NO_LABELS: LabelSet = frozenset()


@dataclass(frozen=True, slots=True)
class EventPredicate:
    """One bit of an event: its type is one of `types` and `condition` is true of it.

    `condition` is a predicate over one event (attributes without a variable), or None for no
    condition. Unknown (NULL) counts as not true.
    """

    types: tuple[str, ...]
    condition: Node | None = None

    def __str__(self) -> str:

        if self == FIRST:
            return "first event of the stream"
        name = " | ".join(self.types)
        return name if self.condition is None else f"{name}[{self.condition!s}]"


FIRST = EventPredicate(())
"""True of the first event of a stream, or of a partition: it depends on the position, not on attributes."""


def in_text_order(predicates: Collection[EventPredicate]) -> list[EventPredicate]:
    """Some predicates in the order of their texts; a text may be long, and one predicate needs none."""
    return sorted(predicates, key=str) if len(predicates) > 1 else list(predicates)


@dataclass(frozen=True, slots=True)
class Guard:
    """A conjunction of literals over bits: all of `present` are set, none of `absent` is."""

    present: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()

    def allows(self, bits: int) -> bool:
        """Whether an event with these bits (bit k is predicate k) passes."""
        return all(bits >> k & 1 for k in self.present) and not any(bits >> k & 1 for k in self.absent)

    def meet(self, other: Guard) -> Guard | None:
        """The conjunction of two guards, or None if it is contradictory."""
        both = Guard(self.present | other.present, self.absent | other.absent)
        return None if both.present & both.absent else both


ALWAYS = Guard()

Origin = tuple[Pattern, ...]
"""The parts of a pattern that a state was made for, from the whole pattern to the smallest part."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition from `source` to `target` on an event that passes `guard`, marked with `labels`.

    Without labels it reads the event unmarked. Answers do not show the labels in `hidden` (residual.py).
    """

    source: int
    guard: Guard
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN

    def carries(self, key: Key) -> bool:
        """Whether the transition marks its event with `key`."""
        return carries(self.labels, self.hidden, key)


@dataclass(frozen=True, slots=True)
class CEA:
    """An automaton with states ``0 … states-1``.

    A run may begin at any event in any of `initial`; it accepts by entering a state of `final`, which no
    transition leaves. Bit k in the guards stands for `predicates[k]`; `FIRST` can only be the last of them.
    `origins[s]`, if known, are the parts of the pattern that state s was made for.
    """

    states: int
    initial: frozenset[int]
    final: frozenset[int]
    transitions: tuple[Transition, ...]
    predicates: tuple[EventPredicate, ...]
    origins: tuple[Origin, ...] = field(default=(), compare=False, repr=False)

    @property
    def repeats(self) -> bool:
        """Whether a run can come back to a state otherwise than by waiting there."""
        into: dict[int, set[int]] = defaultdict(set)
        for transition in self.transitions:
            if transition.source == transition.target and (transition.labels or transition.hidden):
                return True
            if transition.source != transition.target:
                into[transition.target].add(transition.source)
        try:
            TopologicalSorter(into).prepare()
        except CycleError:
            return True
        return False

    def __post_init__(self) -> None:
        for state in self._named_states():
            if not 0 <= state < self.states:
                raise ValueError(f"state {state} is named, but the states are 0 to {self.states - 1}")
        if FIRST in self.predicates[:-1]:
            raise ValueError("the predicate FIRST is not the last one")
        for transition in self.transitions:
            if transition.source in self.final:
                raise ValueError(f"final state {transition.source} has a transition: {transition}")
            for bit in transition.guard.present | transition.guard.absent:
                if not 0 <= bit < len(self.predicates):
                    raise ValueError(f"bit {bit} has no predicate: {transition}")

    def _named_states(self) -> Iterator[int]:
        yield from self.initial
        yield from self.final
        for transition in self.transitions:
            yield transition.source
            yield transition.target

    def types_of(self, guard: Guard) -> tuple[str, ...] | None:
        """The types of events that can pass a guard; None if the guard names no types."""
        asked = [self.predicates[bit] for bit in sorted(guard.present)]
        types = [predicate.types for predicate in asked if predicate != FIRST]
        return tuple(name for name in types[0] if all(name in kind for kind in types)) if types else None

    def leading_to(self, states: Iterable[int], along: Callable[[Transition], bool]) -> set[int]:
        """The states from which `states` are reachable by transitions that satisfy `along`; these too."""
        before: dict[int, list[int]] = {}
        for transition in filter(along, self.transitions):
            before.setdefault(transition.target, []).append(transition.source)
        return {*reached(states, lambda state: before.get(state, ()))}


def without_marks(automaton: CEA) -> CEA:
    """The automaton without labels, whose runs say where complex events end, but not what they mark."""
    passing = dict.fromkeys(
        Transition(transition.source, transition.guard, NO_LABELS, transition.target)
        for transition in automaton.transitions
    )
    return replace(automaton, transitions=tuple(passing))


def with_hidden(automaton: CEA, kept: HiddenSet) -> CEA:
    """The automaton with its hidden labels restricted to `kept`."""
    transitions = (
        replace(transition, hidden=transition.hidden & kept) for transition in automaton.transitions
    )
    return replace(automaton, transitions=tuple(dict.fromkeys(transitions)))


def from_first(automaton: CEA) -> CEA:
    """The automaton with runs that begin only at the first event of their stream.

    No transition may enter its initial states.
    """
    predicates = automaton.predicates if FIRST in automaton.predicates else (*automaton.predicates, FIRST)
    first = frozenset({len(predicates) - 1})
    transitions = (
        replace(transition, guard=Guard(transition.guard.present | first, transition.guard.absent))
        if transition.source in automaton.initial
        else transition
        for transition in automaton.transitions
    )
    return replace(automaton, transitions=tuple(transitions), predicates=predicates)


def why_others_matter(automaton: CEA) -> str:
    """The reason why runs depend on events that they do not mark, as a phrase; empty if they do not.

    If they do not, each state between the first and the last marked event has a loop over any event, and no
    other transition reads an event without marking it.
    """
    if FIRST in automaton.predicates:
        return "it depends on which event is the first of the stream"
    waiting = {transition.source for transition in automaton.transitions if _waits(transition)}
    entered = {transition.target for transition in automaton.transitions}
    if automaton.initial & (waiting | entered):
        return "a run can begin in a state that others pass through"
    for transition in automaton.transitions:
        if not transition.labels and not _waits(transition):
            if transition.source == transition.target and transition.guard.absent:
                return "it forbids an event in between"
            return "it reads an event without marking it"
    if any(state not in waiting for state in entered - automaton.final):
        return "some events have to follow one another directly"
    return ""


def _waits(transition: Transition) -> bool:
    """Whether the transition is a loop that passes over any event without marking it."""
    return (
        transition.source == transition.target
        and transition.guard == ALWAYS
        and not (transition.labels or transition.hidden)
    )
