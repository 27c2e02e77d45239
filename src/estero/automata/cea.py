"""Complex event automata (UCEA of SO-CEL, section 6; CEA of CORE): frozen, validated, printable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from estero.automata.residual import NO_HIDDEN, HiddenSet
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
"""Whether the event is the first of its stream, or of its partition's: position tells it, no attribute."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A conjunction over bits: all of `present` are set, none of `absent` is. Empty is always true."""

    present: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()

    def allows(self, bits: int) -> bool:
        """Whether an event with these bits (bit k is predicate k) passes."""
        return all(bits >> k & 1 for k in self.present) and not any(bits >> k & 1 for k in self.absent)

    def meet(self, other: Guard) -> Guard | None:
        """Both at once, or None where no event could pass."""
        both = Guard(self.present | other.present, self.absent | other.absent)
        return None if both.present & both.absent else both


ALWAYS = Guard()

Origin = tuple[Pattern, ...]
"""The parts of a pattern that a state was made for, from the whole pattern to the smallest part."""


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` on an event that passes `guard`, marked with `labels` (or read unmarked), to `target`.

    `hidden` are labels that answers do not show (residual.py).
    """

    source: int
    guard: Guard
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN


@dataclass(frozen=True, slots=True)
class CEA:
    """An automaton with states ``0 … states-1``.

    A run may begin at any event in any of `initial`; it accepts by entering a state of `final`,
    which no transition leaves. `predicates` gives the meaning of the bits in the guards; `FIRST` is the
    last of them if it is one. `origins`, where they are known, say of each state what it was made for.
    """

    states: int
    initial: frozenset[int]
    final: frozenset[int]
    transitions: tuple[Transition, ...]
    predicates: tuple[EventPredicate, ...]
    origins: tuple[Origin, ...] = field(default=(), compare=False, repr=False)

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
