"""Two runs that mark the same events alike: a stream on which an automaton has them, or none.

Chain automata are searched exhaustively, over events of all kinds that their conditions tell apart and a
few values of each attribute that they compare. Runs of a parallelised automaton are trees, for which no such
search is known; all short streams of these events are tried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from estero.automata.cea import EventPredicate
from estero.automata.chain import Chain, ChainTransition
from estero.automata.pcea import PCEA, JoinKey
from estero.errors import DataError
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.queries.decisions.event_kinds import kinds_of
from estero.reference.values import Event, compare, evaluate_expression, evaluate_predicate

VALUES: Final = (1, 2, 3)
"""What an attribute can be that is compared with that of another event: two that are equal, and others."""
MOST_EVENTS: Final = 200
"""The most different events that are tried."""
MOST_STREAMS: Final = 20_000
"""The most streams on which a parallelised automaton is tried."""


def ambiguous_stream(automaton: Chain | PCEA) -> list[Event] | None:
    """A stream on which two accepting runs make the same marks; None where none was found."""
    if isinstance(automaton, Chain):
        sides = [
            side
            for each in automaton.transitions
            for one in each.comparisons
            for side in (one.left, one.right)
        ]
        return _of_chain(automaton, _events(automaton.predicates, sides))
    sides = [value for key in automaton.keys for values in key.forms.values() for value in values]
    return _of_parallelised(automaton, _events(automaton.predicates, sides))


def _events(predicates: Sequence[EventPredicate], compared: Sequence[e.Node]) -> list[Event]:
    """Events of all kinds, with all choices of `VALUES` for what is compared."""
    names = dict.fromkeys(
        node.name for side in compared for node in side.walk() if isinstance(node, e.Attribute)
    )
    found: list[Event] = []
    for kind in kinds_of(predicates, free=False):
        open_names = [name for name in names if name not in kind.event.attributes]
        for values in product(VALUES, repeat=len(open_names)):
            if kind.bits and len(found) < MOST_EVENTS:
                attributes = {**kind.event.attributes, **dict(zip(open_names, values, strict=True))}
                found.append(Event(kind.event.type, attributes))
    return found


def _passes(predicate: EventPredicate, event: Event) -> bool:
    if event.type not in predicate.types:
        return False
    return predicate.condition is None or evaluate_predicate(predicate.condition, event) is True


# ---------------------------------------------------------------------------------------------- chains


class _Two(NamedTuple):
    """Two runs with the same marks: their states, the last event, and whether they have ever differed."""

    one: int
    other: int
    event: int
    differ: bool


def _of_chain(chain: Chain, events: Sequence[Event]) -> list[Event] | None:
    before: dict[_Two, _Two | None] = {}
    queue: deque[_Two | None] = deque([None])
    while queue:
        here = queue.popleft()
        for following in _after(chain, events, here):
            if following in before:
                continue
            before[following] = here
            if following.differ and {following.one, following.other} <= chain.final:
                return _stream(following, before, events)
            queue.append(following)
    return None


def _after(chain: Chain, events: Sequence[Event], here: _Two | None) -> Iterator[_Two]:
    for number, event in enumerate(events):
        last = None if here is None else events[here.event]
        ones, others = (
            [each for each in chain.transitions if each.source == state and _takes(chain, each, last, event)]
            for state in ((None, None) if here is None else (here.one, here.other))
        )
        for one in ones:
            for other in others:
                if one.labels == other.labels:
                    differ = one != other or (here is not None and here.differ)
                    yield _Two(one.target, other.target, number, differ)


def _takes(chain: Chain, transition: ChainTransition, last: Event | None, event: Event) -> bool:
    if not _passes(chain.predicates[transition.predicate], event):
        return False
    try:
        return last is None or all(
            compare(
                each.operator, evaluate_expression(each.left, last), evaluate_expression(each.right, event)
            )
            is True
            for each in transition.comparisons
        )
    except DataError:  # values of these types are in no column
        return False


def _stream(end: _Two, before: dict[_Two, _Two | None], events: Sequence[Event]) -> list[Event]:
    found: list[Event] = []
    here: _Two | None = end
    while here is not None:
        found.append(events[here.event])
        here = before[here]
    return found[::-1]


# ------------------------------------------------------------------------------- parallelised automata


class _Tree(NamedTuple):
    """A run: its state, its last event, and its marks as pairs of a position and a label."""

    state: int
    event: Event
    marks: tuple[tuple[int, str], ...]


def _of_parallelised(automaton: PCEA, events: Sequence[Event]) -> list[Event] | None:
    streams: deque[tuple[list[Event], list[_Tree]]] = deque([([], [])])
    tried = 0
    while streams and tried < MOST_STREAMS:
        stream, runs = streams.popleft()
        for event in events:
            tried += 1
            new = list(_begun(automaton, runs, event, len(stream)))
            ended = [each for each in new if each.state in automaton.final]
            marks = [frozenset(each.marks) for each in ended]
            twice = len(set(marks)) < len(marks)
            if twice or any(len(set(each.marks)) < len(each.marks) for each in ended):
                return [*stream, event]
            streams.append(([*stream, event], [*runs, *new]))
    return None


def _begun(automaton: PCEA, runs: Sequence[_Tree], event: Event, position: int) -> Iterator[_Tree]:
    for transition in automaton.transitions:
        if not _passes(automaton.predicates[transition.predicate], event):
            continue
        gathered = [
            [
                run
                for run in runs
                if run.state == source.state
                and _agree(automaton.keys[source.left], run.event, automaton.keys[source.right], event)
            ]
            for source in transition.sources
        ]
        own = tuple((position, label) for label in sorted(transition.labels))
        for together in product(*gathered):
            yield _Tree(transition.target, event, sum((each.marks for each in together), own))


def _agree(left: JoinKey, before: Event, right: JoinKey, event: Event) -> bool:
    ours, theirs = _values(left, before), _values(right, event)
    return (
        ours is not None
        and theirs is not None
        and all(compare("=", one, other) is True for one, other in zip(ours, theirs, strict=True))
    )


def _values(key: JoinKey, event: Event) -> list[Value] | None:
    forms = key.forms.get(event.type)
    return None if forms is None else [evaluate_expression(each, event) for each in forms]
