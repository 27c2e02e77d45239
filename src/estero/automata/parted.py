"""Splits states of a parallelized automaton, so that all events that enter one have the same key attributes.

The events that enter a state may be of several types with the key in different attributes, as C and A in
``Q(x, y) <- C(x, y), A(y, x)``. The text of a transition names attributes, so such a state is split into
several.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from estero.automata.cea import EventPredicate
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.language.tree.expressions import Node

_Form = tuple[Node, ...] | None
"""The expressions of a key for events of a type; None if they have no such key."""


def parted(pcea: PCEA) -> PCEA:
    """An equivalent automaton in which every key has one form."""
    return _Parting(pcea).done()


class _Parting:
    def __init__(self, pcea: PCEA) -> None:
        self._pcea = pcea
        asked: list[dict[int, None]] = [{} for _ in pcea.states]
        for transition in pcea.transitions:
            for source in transition.sources:
                asked[source.state][source.left] = None
        self._asked = [tuple(left_keys) for left_keys in asked]
        self._states: dict[tuple[int, tuple[_Form, ...]], int] = {}
        self._types: list[dict[str, None]] = []
        for transition in pcea.transitions:
            for name in pcea.predicates[transition.predicate].types:
                state = self._entered(transition.target, name)
                number = self._states.setdefault(state, len(self._states))
                if number == len(self._types):
                    self._types.append({})
                self._types[number][name] = None
        self._predicates: dict[EventPredicate, int] = {}
        self._keys: dict[JoinKey, int] = {}

    def done(self) -> PCEA:
        transitions = tuple(dict.fromkeys(self._transitions()))
        final = frozenset(number for (state, _), number in self._states.items() if state in self._pcea.final)
        return PCEA(self._names(), final, transitions, tuple(self._predicates), tuple(self._keys))

    def _names(self) -> tuple[str, ...]:
        taken, given, names = set(self._pcea.states), set[int](), list[str]()
        for state, _ in self._states:
            name = self._pcea.states[state]
            while state in given and name in taken:
                name += "'"
            taken.add(name)
            given.add(state)
            names.append(name)
        return tuple(names)

    def _form(self, key: int, event_type: str) -> _Form:
        return self._pcea.keys[key].forms.get(event_type)

    def _entered(self, state: int, event_type: str) -> tuple[int, tuple[_Form, ...]]:
        return state, tuple(self._form(key, event_type) for key in self._asked[state])

    def _key(self, types: list[str], form: tuple[Node, ...]) -> int:
        return self._keys.setdefault(JoinKey(dict.fromkeys(types, form)), len(self._keys))

    def _transitions(self) -> Iterator[PceaTransition]:
        for transition in self._pcea.transitions:
            alike: dict[tuple[int, tuple[tuple[Node, ...], ...]], list[str]] = {}
            predicate = self._pcea.predicates[transition.predicate]
            for name in predicate.types:
                here = [self._form(source.right, name) for source in transition.sources]
                known = tuple(form for form in here if form is not None)
                if len(known) == len(here):
                    target = self._states[self._entered(transition.target, name)]
                    alike.setdefault((target, known), []).append(name)
            for (target, forms), types in alike.items():
                bit = self._predicates.setdefault(
                    EventPredicate(tuple(types), predicate.condition), len(self._predicates)
                )
                rights = [self._key(types, form) for form in forms]
                for sources in self._ways(transition, rights):
                    yield PceaTransition(sources, bit, transition.labels, target)

    def _ways(self, transition: PceaTransition, rights: list[int]) -> Iterator[tuple[Source, ...]]:
        """The combinations of states that a transition may leave, with the keys of the events before."""
        ways: list[list[Source]] = []
        for source, right in zip(transition.sources, rights, strict=True):
            place = self._asked[source.state].index(source.left)
            ways.append(
                [
                    Source(number, self._key(list(self._types[number]), form), right)
                    for (state, forms), number in self._states.items()
                    if state == source.state and (form := forms[place]) is not None
                ]
            )
        yield from product(*ways)
