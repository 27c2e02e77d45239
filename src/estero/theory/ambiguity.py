"""A search for streams on which a parallelized automaton (PCEA) is ambiguous.

Runs of a PCEA are trees, for which no exhaustive search is known. All short streams are tried, with events of
all kinds that the conditions of the automaton distinguish, and a few values of each attribute that is
compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice, product
from typing import Final, NamedTuple

from estero.automata.cea import EventPredicate, LabelSet
from estero.automata.pcea import PCEA, JoinKey
from estero.errors import DataError
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.words import named
from estero.reference.values import Event, compare, evaluate_expression, evaluate_predicate
from estero.theory.event_kinds import Kind, kinds_of

VALUES: Final = (1, 2, 3)
"""The values that are tried for attributes compared with those of other events."""
MOST_EVENTS: Final = 200
"""The most events that are tried."""
MOST_STREAMS: Final = 20_000
"""The most streams that are tried."""


class Ambiguity(NamedTuple):
    """A stream on which two accepting runs mark alike or, if `by_one`, one run marks an event twice."""

    stream: list[Event]
    by_one: bool


def ambiguity(automaton: PCEA) -> Ambiguity | None:
    """A stream on which the automaton is ambiguous; None if none was found."""
    trial = _Trial(automaton, _events(automaton))
    streams: deque[tuple[list[int], list[_Tree]]] = deque([([], [])])
    tried = 0
    while streams and tried < MOST_STREAMS:
        before, runs = streams.popleft()
        for number in range(len(trial.events)):
            tried += 1
            stream, new = [*before, number], list(trial.begun(runs, number, len(before)))
            ended = [run for run in new if run.state in automaton.final]
            by_one = any(len(set(run.marks)) < len(run.marks) for run in ended)
            if by_one or len({_marked(run) for run in ended}) < len(ended):
                return Ambiguity([trial.events[place] for place in stream], by_one)
            streams.append((stream, [*runs, *new]))
    return None


def refuse_ambiguous(machine: PCEA) -> None:
    """Raises ValueError if the automaton is ambiguous on a short stream, which the message shows."""
    shown = ambiguity(machine)
    if shown is None:
        return
    events = " ".join(
        f"{event.type}({', '.join(f'{named(name)}={value!r}' for name, value in event.attributes.items())})"
        for event in shown.stream
    )
    if shown.by_one:
        raise ValueError(
            f"one run of this automaton marks an event twice, for instance on {events}: runs that it gathers "
            "have that event in common; give it different labels in them, or let their events differ"
        )
    raise ValueError(
        f"two runs of this automaton mark the same events alike, for instance on {events}: "
        "make the conditions of its transitions exclude one another, or give them different labels"
    )


# ---------------------------------------------------------------------------------------------- events


def _events(automaton: PCEA) -> list[Event]:
    """Events of all kinds, with all choices of `VALUES` for attributes that are compared between events."""
    by_text: dict[str, Event] = {}
    for kind in kinds_of(automaton.predicates, free=False):
        names = list(dict.fromkeys(_compared(automaton, kind.event.type)))
        for event in _of_kind(kind, names, automaton.predicates) if kind.bits else ():
            by_text.setdefault(repr(event), event)
    return list(by_text.values())[:MOST_EVENTS]


def _compared(automaton: PCEA, name: str) -> Iterator[str]:
    """The attributes of a type in join keys, and in comparisons of two attributes of one event."""
    sides = [value for key in automaton.keys for value in key.forms.get(name, ())]
    for predicate in automaton.predicates:
        if name in predicate.types and predicate.condition is not None:
            sides += [node for node in predicate.condition.walk() if _is_of_two(node)]
    for side in sides:
        yield from (node.name for node in side.walk() if isinstance(node, e.Attribute))


def _is_of_two(node: e.Node) -> bool:
    """Whether a node compares attributes of one event with each other."""
    literals = (isinstance(child, e.Literal) for child in node.children())
    return isinstance(node, e.Comparison) and not any(literals)


def _of_kind(kind: Kind, names: Sequence[str], predicates: Sequence[EventPredicate]) -> list[Event]:
    """Events of a kind with all values for these attributes, or for those that its conditions do not fix."""
    name, own = kind.event.type, kind.event.attributes

    def with_values(of: Sequence[str]) -> Iterator[Event]:
        for values in islice(product(VALUES, repeat=len(of)), MOST_STREAMS):
            yield Event(name, {**own, **dict(zip(of, values, strict=True))})

    fitting = [event for event in with_values(names) if _bits(predicates, event) == kind.bits]
    return fitting or list(with_values([name for name in names if name not in own]))


def _bits(predicates: Sequence[EventPredicate], event: Event) -> int | None:
    """The predicates that are true of an event, as bits; None if no column can have its values."""
    try:
        return sum(1 << bit for bit, predicate in enumerate(predicates) if _passes(predicate, event))
    except DataError:
        return None


def _passes(predicate: EventPredicate, event: Event) -> bool:
    if event.type not in predicate.types:
        return False
    return predicate.condition is None or evaluate_predicate(predicate.condition, event) is True


# ------------------------------------------------------------------------------------------------ runs


class _Tree(NamedTuple):
    """A run: its state, the number of its last event, and its marks as pairs of a position and labels."""

    state: int
    event: int
    marks: tuple[tuple[int, LabelSet], ...]


def _marked(run: _Tree) -> frozenset[tuple[int, str]]:
    """The pairs of position and label of a run; those of one event may come from several gathered runs."""
    return frozenset((position, label) for position, labels in run.marks for label in labels)


class _Trial:
    """The runs of an automaton over some events, whose conditions are evaluated once for all streams."""

    def __init__(self, automaton: PCEA, events: Sequence[Event]) -> None:
        self.events = events
        self._keys = automaton.keys
        self._read_by = [
            [step for step in automaton.transitions if _passes(automaton.predicates[step.predicate], event)]
            for event in events
        ]
        self._agree = cache(self._agreement)

    def begun(self, runs: Sequence[_Tree], number: int, position: int) -> Iterator[_Tree]:
        """The runs that event `number` begins or goes on with at this position, after `runs`."""
        for transition in self._read_by[number]:
            gathered = [
                [
                    run
                    for run in runs
                    if run.state == source.state and self._agree(source.left, source.right, run.event, number)
                ]
                for source in transition.sources
            ]
            own = ((position, transition.labels),)
            for together in product(*gathered):
                yield _Tree(transition.target, number, sum((run.marks for run in together), own))

    def _agreement(self, left: int, right: int, before: int, number: int) -> bool:
        ours = _values(self._keys[left], self.events[before])
        theirs = _values(self._keys[right], self.events[number])
        if ours is None or theirs is None:
            return False
        try:
            return all(compare("=", one, other) is True for one, other in zip(ours, theirs, strict=True))
        except DataError:  # no column can have these values
            return False


def _values(key: JoinKey, event: Event) -> list[Value] | None:
    forms = key.forms.get(event.type)
    return None if forms is None else [evaluate_expression(form, event) for form in forms]
