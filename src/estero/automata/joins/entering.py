"""The states and transitions of an automaton that gathers runs, with the keys that they compare.

A state knows the classes whose value is in an attribute of the event that entered it. An event that gathers
runs is compared with each of them by the classes that it has a value of, and by those that are then known to
be equal. If a run has values of a class that its last event does not have, the class cannot be compared any
more, and the pattern is refused if it has to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count, pairwise
from typing import Final, NamedTuple

from estero.automata.cea import EventPredicate
from estero.automata.joins.parts import NotJoinedError, Parts
from estero.automata.joins.scopes import Scopes
from estero.automata.joins.shapes import NOTHING, Served
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.errors import LimitExceeded
from estero.language.tree.conditions import conjoined
from estero.language.tree.expressions import Attribute, Comparison, IsNull, Not
from estero.language.tree.expressions import Node as Condition
from estero.language.tree.literals import Value
from estero.language.tree.names import some

SOURCE_CAP: Final = 250_000
"""The most sources of all transitions together; 500 atoms with one variable need that many."""

Form = dict[str, tuple[Condition, ...]]
"""The attributes that hold some values, by the type of the event."""

Slots = tuple[frozenset[int], ...]
"""The classes whose values a state knows; classes in one slot have the same value."""


class Link(NamedTuple):
    """A state whose runs are gathered, and the shapes that begin a new instance then."""

    state: int
    begun: frozenset[int] = NOTHING


class End(NamedTuple):
    """A way to complete a part: an event that serves as `served` and gathers `links`."""

    served: Served
    links: tuple[Link, ...]


class Entry(NamedTuple):
    """The comparisons of an event that enters a state, and what the state knows afterwards."""

    served: Served
    types: tuple[str, ...]
    bit: int
    sources: tuple[Source, ...]
    slots: Slots
    values: tuple[Condition, ...]
    lost: frozenset[int]


_Seen = tuple[tuple[tuple[int, frozenset[int]], ...], frozenset[int]]
"""The slots of a gathered run by their numbers, and the classes that it has lost."""


@dataclass(slots=True)
class _State:
    """A state: its name, the classes that it knows, and the attributes that hold their values."""

    name: str
    slots: Slots
    lost: frozenset[int]
    form: Form
    joins: bool
    """Whether it is a node of a q-tree."""
    entered_by: list[Served] = field(default_factory=list)


@dataclass(slots=True)
class States:
    """The states and transitions of an automaton under construction, with at most `cap` transitions."""

    parts: Parts
    scopes: Scopes
    cap: int
    sources: int = 0
    """The number of sources of all transitions."""
    _states: list[_State] = field(default_factory=list)
    _transitions: list[PceaTransition] = field(default_factory=list)
    _predicates: dict[EventPredicate, int] = field(default_factory=dict)
    _keys: list[Form] = field(default_factory=list)
    _left_keys: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    _known: dict[Link, _Seen] = field(default_factory=dict)

    def pcea(self, final: Iterable[int]) -> PCEA:
        """The automaton with these final states."""
        return PCEA(
            states=tuple(self._names()),
            final=frozenset(final),
            transitions=tuple(self._transitions),
            predicates=tuple(self._predicates),
            keys=tuple(map(JoinKey, self._keys)),
        )

    def entered(self, end: End, kept: frozenset[int]) -> Entry | None:
        """The comparisons of an event that enters a state; None if there is no such event.

        `kept` are the classes that matter there.
        """
        types = self.types(end.served)
        if not types:
            return None
        known: dict[int, str] = {}
        for single in end.served:
            for number, attributes in self.parts.events[single].values.items():
                known.setdefault(number, attributes[0])
        seen = list(map(self._seen, end.links))
        alike = Counter(seen)
        _infer(known, alike)
        lost = self._lost(alike, known)
        compared: dict[_Seen, list[tuple[int, str]]] = {}
        right: dict[_Seen, int] = {}
        sources = []
        for link, facts in zip(end.links, seen, strict=True):
            if facts not in compared:
                compared[facts] = [
                    (place, name)
                    for place, classes in facts[0]
                    for name in dict.fromkeys(known[number] for number in sorted(classes) if number in known)
                ]
            left = self._left_key(link.state, tuple(place for place, _ in compared[facts]))
            if facts not in right:
                values = tuple(Attribute(name) for _, name in compared[facts])
                right[facts] = self._key(dict.fromkeys(types, values))
            sources.append(Source(link.state, left, right[facts]))
        slots_after: dict[str, list[int]] = {}
        for number in sorted(kept.intersection(known)):
            slots_after.setdefault(known[number], []).append(number)
        return Entry(
            end.served,
            types,
            self._bit(end.served, types),
            tuple(sources),
            tuple(map(frozenset, slots_after.values())),
            tuple(map(Attribute, slots_after)),
            lost & kept,
        )

    def _seen(self, link: Link) -> _Seen:
        """The slots of the runs of a state that still matter."""
        if link not in self._known:
            state = self._states[link.state]
            ended = self.scopes.ended(link.begun)
            slots = ((place, classes - ended) for place, classes in enumerate(state.slots))
            known = tuple((place, classes) for place, classes in slots if classes)
            self._known[link] = known, state.lost - ended
        return self._known[link]

    def _lost(self, alike: Counter[_Seen], known: dict[int, str]) -> frozenset[int]:
        """The classes that some gathered run has values of, and the event has not.

        Raises `NotJoinedError` if they would have to be compared.
        """
        having: Counter[int] = Counter()
        lost: set[int] = set()
        for (slots, gone), times in alike.items():
            for number in (*gone, *(number for _, classes in slots for number in classes)):
                having[number] += times
            lost |= gone
        for number in sorted((lost & known.keys()) | {n for n in having if having[n] > 1 and n not in known}):
            name = self.parts.classes[number].name
            raise NotJoinedError(f"some events that join runs do not have the value of {name}")
        return frozenset(number for number in having if number not in known)

    def enter(self, entry: Entry, among: list[int], name: str, *, apart: bool = False) -> int:
        """Adds a transition to the state that an event enters, one of `among` or a new one; returns it.

        Events of several types may enter it if it knows the same of them; with `apart` only these events do.
        """
        form: Form = dict.fromkeys(entry.types, entry.values)
        for number in among:
            state = self._states[number]
            if apart and entry.served not in state.entered_by:
                continue
            if state.slots == entry.slots and state.lost == entry.lost and _agree(state.form, form):
                break
        else:
            number = len(self._states)
            among.append(number)
            self._states.append(_State(name, entry.slots, entry.lost, {}, joins=not apart))
        state = self._states[number]
        state.form |= form
        if entry.served not in state.entered_by:
            state.entered_by.append(entry.served)
        labels = frozenset(label for single in entry.served for label in self.parts.events[single].labels)
        self.sources += len(entry.sources)
        if len(self._transitions) >= self.cap:
            raise self.too_many_served(single for served in state.entered_by for single in served)
        if self.sources > SOURCE_CAP:
            raise self.too_many_parts(SOURCE_CAP)
        self._transitions.append(PceaTransition(entry.sources, entry.bit, labels, number))
        return number

    def types(self, served: Served) -> tuple[str, ...]:
        """The types of the events that can serve as all of these."""
        first, *others = (self.parts.events[single].types for single in served)
        return tuple(name for name in first if all(name in types for types in others)) if others else first

    def constants(self, served: Served) -> dict[str, Value]:
        """The attributes with constant values of an event that serves as these."""
        return {
            name: value for single in served for name, value in self.parts.events[single].constants.items()
        }

    def _bit(self, served: Served, types: tuple[str, ...]) -> int:
        predicate = EventPredicate(types, conjoined(self._conditions(served)))
        return self._predicates.setdefault(predicate, len(self._predicates))

    def _conditions(self, served: Served) -> Iterator[Condition]:
        """The conditions on an event to serve as all of these (Lemma B.3 of the PCEA paper)."""
        places: dict[int, list[str]] = {}
        for single in served:
            event = self.parts.events[single]
            yield from event.conditions
            for number, attributes in event.values.items():
                places.setdefault(number, []).extend(attributes)
        for names in places.values():
            distinct = tuple(dict.fromkeys(names))
            yield from (Comparison("=", Attribute(a), Attribute(b)) for a, b in pairwise(distinct))
            if len(distinct) == 1 < len(names):  # compared with itself, so not NULL
                yield Not(IsNull(Attribute(distinct[0])))

    def _left_key(self, state: int, places: tuple[int, ...]) -> int:
        if (state, places) not in self._left_keys:
            form = self._states[state].form.items()
            key = self._key({name: tuple(values[place] for place in places) for name, values in form})
            self._left_keys[state, places] = key
        return self._left_keys[state, places]

    def _key(self, form: Form) -> int:
        """The number of a key with this form; forms of different types can share one."""
        width = len(next(iter(form.values())))
        for number, key in enumerate(self._keys):
            if len(next(iter(key.values()))) == width and _agree(key, form):
                key.update(form)
                return number
        self._keys.append(dict(form))
        return len(self._keys) - 1

    # ---------------------------------------------------------------------------------------- in words

    def _names(self) -> dict[str, None]:
        """The names of the states; those with one name get the events that enter them, or a number."""
        alike = Counter(state.name for state in self._states)
        names: dict[str, None] = {}
        for state in self._states:
            entering = " or ".join(map(self.name_of, state.entered_by))
            name = f"{state.name} by {entering}" if alike[state.name] > 1 and state.joins else state.name
            tries = chain((name,), (f"{name} {number}" for number in count(2)))
            names[next(candidate for candidate in tries if candidate not in names)] = None
        return names

    def name_of(self, served: Served) -> str:
        """The name of an event that serves as these."""
        return " + ".join(self.parts.events[single].name for single in served)

    def too_many_served(self, singles: Iterable[int]) -> LimitExceeded:
        """An error: too many of these events can be one event; it names those of the commonest type."""
        events = [self.parts.events[single] for single in sorted(set(singles))]
        types = Counter(name for event in events for name in event.types)
        name, most = types.most_common(1)[0]
        if most == 1:
            return self.too_many_parts(self.cap)
        atoms = [event.name for event in events if name in event.types]
        return LimitExceeded(
            f"this query needs an automaton of more than {self.cap:,} transitions, because one event of type "
            f"{name} may serve any of {len(atoms)} atoms at once ({some(atoms)}): use constants that "
            "distinguish these atoms, or fewer atoms"
        )

    def too_many_parts(self, cap: int) -> LimitExceeded:
        """An error: transitions gather more than `cap` runs."""
        return LimitExceeded(
            f"this query joins {len(self.parts.events)} atoms, and its automaton would combine partial "
            f"matches in more than {cap:,} ways: write fewer atoms, or several queries"
        )


def _infer(known: dict[int, str], seen: Iterable[_Seen]) -> None:
    """Adds the classes that some gathered run has in one slot with a known class."""
    slots = [classes for facts, _ in seen for _, classes in facts]
    before = -1
    while before < len(known):
        before = len(known)
        for classes in slots:
            classified = [number for number in sorted(classes) if number in known]
            if classified:
                known |= dict.fromkeys(classes.difference(known), known[classified[0]])


def _agree(one: Form, other: Form) -> bool:
    return all(one[name] == values for name, values in other.items() if name in one)
