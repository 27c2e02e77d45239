"""Parallelized complex event automata (PCEA), validated and printable.

They are defined in section 3 of "Complex event recognition meets hierarchical conjunctive queries"
(docs/papers.md). A run is a tree: a transition gathers independent runs in several states, provided that the
current event agrees with the last event of each of them on a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from estero.automata.cea import EventPredicate, LabelSet
from estero.language.tree.expressions import Node

LEFT, RIGHT = range(2)
"""The sides of a comparison: the event before, and the current one."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The key by which events are joined: the values of expressions over one event, for each type.

    `forms` maps types to their expressions, the same number for every type. Events of other types, and events
    with a NULL among the values, have no key. A key without expressions is the same for all events of its
    types. With `null` an event with a NULL has a key, too, which no event on the other side has.
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
        """The number of values of the key."""
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
    """A run in `state` that a transition gathers.

    Key `left` of the event that entered the state must equal key `right` of the current event; both are
    numbers in `PCEA.keys`.
    """

    state: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class PceaTransition:
    """A transition to `target` on an event with bit `predicate`, which it marks with `labels`.

    It gathers a run from each of `sources`; without sources a run begins.
    """

    sources: tuple[Source, ...]
    predicate: int
    labels: LabelSet
    target: int


@dataclass(frozen=True, slots=True)
class PCEA:
    """A parallelized automaton with states ``0 … len(states) - 1``, which are named by `states`.

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
        """The size as the paper defines it: states, and for each transition 1 + sources + labels."""
        sizes = (len(transition.sources) + len(transition.labels) + 1 for transition in self.transitions)
        return len(self.states) + sum(sizes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The states and the transitions, one on each line."""
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
    """Raises ValueError if a state does not exist; the keys of `named` say where it is named."""
    for where, numbers in named.items():
        for state in numbers:
            if not 0 <= state < len(states):
                raise ValueError(f"state {state} is not one of 0 to {len(states) - 1}, {where}")


def check_marks(bit: int, predicates: Sequence[EventPredicate], labels: LabelSet, where: str) -> None:
    """Raises ValueError if a transition has a bit without a predicate, or marks nothing."""
    if not 0 <= bit < len(predicates):
        raise ValueError(f"bit {bit} has no predicate, {where}")
    if not labels:
        raise ValueError(f"an event is read and not marked, {where}")


def entering_types(
    states: int, transitions: Iterable[tuple[int, int]], predicates: Sequence[EventPredicate]
) -> list[tuple[str, ...]]:
    """The types of the events that enter each state; `transitions` are pairs of a bit and a target."""
    entered: list[dict[str, None]] = [{} for _ in range(states)]
    for bit, target in transitions:
        entered[target] |= dict.fromkeys(predicates[bit].types)
    return [tuple(types) for types in entered]


def states_line(states: Sequence[str], final: Iterable[int]) -> str:
    """The states of an automaton, and the accepting ones, on one line."""
    accepts = ", ".join(states[state] for state in sorted(final))
    return f"{len(states)} state{'s' * (len(states) != 1)}: {', '.join(states)}; a run accepts in {accepts}"
