"""Parallelised complex event automata (PCEA): frozen, validated, printable.

They are those of "Complex event recognition meets hierarchical conjunctive queries", section 3. A run is a
tree. A transition gathers runs that stand in several states and began independently of each other, provided
that the event at hand agrees with the last event of each of them on a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from estero.automata.cea import EventPredicate, LabelSet
from estero.language.tree.expressions import Node

LEFT, RIGHT = range(2)
"""The sides of a comparison: the event before, and that at hand."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """What events are joined by: for events of a type the values of some expressions over one event.

    `forms` maps types to their expressions, as many for every type; events of other types have no key, nor
    have those of which a value is NULL. A key of no expressions is the same for all events of its types.
    With `null` every event has a key: where a value is NULL, one that no event has on the other side.
    """

    forms: Mapping[str, tuple[Node, ...]]
    null: int | None = None

    def __post_init__(self) -> None:
        if not self.forms:
            raise ValueError("a join key names no type")
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
        check_states(self.states, {"final": self.final})
        widths = [key.width for key in self.keys]
        for number, transition in enumerate(self.transitions):
            where = f"in transition {number}"
            gathered = [source.state for source in transition.sources]
            check_states(self.states, {where: (transition.target, *gathered)})
            check_marks(transition.predicate, self.predicates, transition.labels, where)
            if len(set(gathered)) < len(gathered):
                raise ValueError(f"a state is gathered twice, {where}")
            for source in transition.sources:
                for key in (source.left, source.right):
                    if not 0 <= key < len(self.keys):
                        raise ValueError(f"there is no key {key}, {where}")
                if widths[source.left] != widths[source.right]:
                    raise ValueError(f"keys {source.left} and {source.right} differ in length, {where}")

    @property
    def size(self) -> int:
        """States, and for each transition its sources, its labels and one: the measure of the paper."""
        sizes = (len(transition.sources) + len(transition.labels) + 1 for transition in self.transitions)
        return len(self.states) + sum(sizes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The states and transitions, a line each."""
        yield states_line(self.states, self.final)
        steps = ((transition.predicate, transition.target) for transition in self.transitions)
        entered = entering_types(len(self.states), steps, self.predicates)

        @cache
        def text(key: int, types: tuple[str, ...]) -> str:
            return self.keys[key].of(types)

        def join(source: Source, types: tuple[str, ...]) -> str:
            state, before = self.states[source.state], entered[source.state]
            if self.keys[source.left].width == 0:
                return f"any {state}"
            return f"{state} by {text(source.left, before)} = {text(source.right, types)}"

        for transition in self.transitions:
            predicate = self.predicates[transition.predicate]
            gathered = " & ".join(self.states[source.state] for source in transition.sources) or "begin"
            joins = "; ".join(join(source, predicate.types) for source in transition.sources)
            joining = f", joining {joins}" if joins else ""
            marks = ", ".join(sorted(transition.labels))
            yield f"{gathered} → {self.states[transition.target]}  on {predicate}: mark {marks}{joining}"


# ------------------------------------------------------- what chains (chain.py) have in common with these


def check_states(states: Sequence[str], named: Mapping[str, Iterable[int]]) -> None:
    """Raises ValueError where a state is none of the automaton; the keys of `named` say where it is."""
    for where, numbers in named.items():
        for state in numbers:
            if not 0 <= state < len(states):
                raise ValueError(f"state {state} is not one of 0 to {len(states) - 1}, {where}")


def check_marks(bit: int, predicates: Sequence[EventPredicate], labels: LabelSet, where: str) -> None:
    """Raises ValueError where a transition asks for a bit that there is not, or marks nothing."""
    if not 0 <= bit < len(predicates):
        raise ValueError(f"bit {bit} has no predicate, {where}")
    if not labels:
        raise ValueError(f"an event is read and not marked, {where}")


def entering_types(
    states: int, transitions: Iterable[tuple[int, int]], predicates: Sequence[EventPredicate]
) -> list[tuple[str, ...]]:
    """For each state the types of the events that enter it; `transitions` are their bits and targets."""
    entered: list[dict[str, None]] = [{} for _ in range(states)]
    for bit, target in transitions:
        entered[target] |= dict.fromkeys(predicates[bit].types)
    return [tuple(types) for types in entered]


def states_line(states: Sequence[str], final: Iterable[int]) -> str:
    """The states of an automaton, and in which of them a run accepts, in one line."""
    accepts = ", ".join(states[state] for state in sorted(final))
    return f"{len(states)} state{'s' * (len(states) != 1)}: {', '.join(states)}; a run accepts in {accepts}"
