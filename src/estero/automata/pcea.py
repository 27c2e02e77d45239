"""Parallelised complex event automata (PCEA): frozen, validated, printable.

They are those of "Complex event recognition meets hierarchical conjunctive queries", section 3. A run is a
tree. A transition gathers runs that stand in several states and began independently of each other, provided
that the event at hand agrees with the last event of each of them on a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from estero.automata.cea import EventPredicate, LabelSet
from estero.language.tree.expressions import Node

KeyText = Callable[[int, tuple[str, ...]], str]
"""The text of a key, by its number, for events of some types."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """What events are joined by: for events of a type the values of some expressions over one event.

    `forms` maps types to their expressions, as many for every type; events of other types have no key, nor
    have those of which a value is NULL. A key of no expressions is the same for all events of its types.
    """

    forms: Mapping[str, tuple[Node, ...]]

    def __post_init__(self) -> None:
        if not self.forms:
            raise ValueError("a join key is of no type")
        if len({len(expressions) for expressions in self.forms.values()}) > 1:
            raise ValueError(f"a join key has a different number of values for different types: {self}")

    @property
    def width(self) -> int:
        """How many values the key has."""
        return len(next(iter(self.forms.values())))

    def __hash__(self) -> int:
        return hash(frozenset(self.forms.items()))

    def of(self, types: tuple[str, ...]) -> str:
        """The text of the key for events of some types."""
        texts = dict.fromkeys(", ".join(map(str, self.forms[name])) for name in types if name in self.forms)
        return " or ".join(texts) if self.width == 1 else " or ".join(f"({text})" for text in texts)

    def __str__(self) -> str:
        return "; ".join(f"{name}: {self.of((name,)) or '()'}" for name in self.forms)


@dataclass(frozen=True, slots=True)
class Source:
    """A run that a transition gathers: one in `state`.

    Key `left` of the event that it entered the state by has to be key `right` of the event at hand; both
    are numbers of `PCEA.keys`.
    """

    state: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class PceaTransition:
    """On an event with bit `predicate`, marked with `labels`: all `sources` gathered, to `target`.

    Without sources a run begins.
    """

    sources: tuple[Source, ...]
    predicate: int
    labels: LabelSet
    target: int


@dataclass(frozen=True, slots=True)
class PCEA:
    """A parallelised automaton with states ``0 … len(states) - 1``, which are named by `states`.

    Bit k of an event is whether `predicates[k]` is true of it. A run accepts by entering a state of `final`.
    """

    states: tuple[str, ...]
    final: frozenset[int]
    transitions: tuple[PceaTransition, ...]
    predicates: tuple[EventPredicate, ...]
    keys: tuple[JoinKey, ...]

    def __post_init__(self) -> None:
        for state in self.final:
            self._check_state(state, "final")
        widths = [key.width for key in self.keys]
        for number, transition in enumerate(self.transitions):
            self._check_transition(transition, widths, f"in transition {number}")

    def _check_transition(self, transition: PceaTransition, widths: Sequence[int], where: str) -> None:
        self._check_state(transition.target, where)
        if not 0 <= transition.predicate < len(self.predicates):
            raise ValueError(f"bit {transition.predicate} has no predicate, {where}")
        if not transition.labels:
            raise ValueError(f"an event is read and not marked, {where}")
        gathered = [source.state for source in transition.sources]
        if len(set(gathered)) < len(gathered):
            raise ValueError(f"a state is gathered twice, {where}")
        for source in transition.sources:
            self._check_state(source.state, where)
            for key in (source.left, source.right):
                if not 0 <= key < len(self.keys):
                    raise ValueError(f"there is no key {key}, {where}")
            if widths[source.left] != widths[source.right]:
                raise ValueError(f"keys {source.left} and {source.right} differ in length, {where}")

    def _check_state(self, state: int, where: str) -> None:
        if not 0 <= state < len(self.states):
            raise ValueError(f"state {state} is not one of 0 to {len(self.states) - 1}, {where}")

    @property
    def size(self) -> int:
        """States, and for each transition its sources, its labels and one: the measure of the paper."""
        sizes = (len(each.sources) + len(each.labels) + 1 for each in self.transitions)
        return len(self.states) + sum(sizes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The states and transitions, a line each."""
        final = ", ".join(self.states[state] for state in sorted(self.final))
        count = len(self.states)
        yield f"{count} state{'s' * (count != 1)}: {', '.join(self.states)}; a run accepts in {final}"
        entered = self._entering_types()

        @cache
        def text(key: int, types: tuple[str, ...]) -> str:
            return self.keys[key].of(types)

        for transition in self.transitions:
            yield self._line(transition, entered, text)

    def _entering_types(self) -> list[tuple[str, ...]]:
        """The types of the events by which each state is entered."""
        entered: list[dict[str, None]] = [{} for _ in self.states]
        for transition in self.transitions:
            entered[transition.target] |= dict.fromkeys(self.predicates[transition.predicate].types)
        return [tuple(types) for types in entered]

    def _line(self, transition: PceaTransition, entered: list[tuple[str, ...]], text: KeyText) -> str:
        predicate = self.predicates[transition.predicate]
        gathered = " & ".join(self.states[source.state] for source in transition.sources) or "begin"
        mark = f"mark {', '.join(sorted(transition.labels))}"
        joins = [
            self._join(source, entered[source.state], predicate.types, text) for source in transition.sources
        ]
        joining = f", joining {'; '.join(joins)}" if joins else ""
        return f"{gathered} → {self.states[transition.target]}  on {predicate}: {mark}{joining}"

    def _join(self, source: Source, left: tuple[str, ...], right: tuple[str, ...], text: KeyText) -> str:
        if self.keys[source.left].width == 0:
            return f"any {self.states[source.state]}"
        keys = text(source.left, left), text(source.right, right)
        return f"{self.states[source.state]} by {' = '.join(keys)}"
