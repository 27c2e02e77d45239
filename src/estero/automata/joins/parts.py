"""Splits a pattern of single events, ALL, `;`, OR and repetition into the parts of a joining automaton.

Labels and conditions on one event belong to the events, and equalities between events become classes of
values. Any other operator is a reason why there is no joining automaton.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from estero.automata.cea import LabelSet
from estero.automata.exploration import merged
from estero.automata.joins.shapes import Choice, Rounds, Shape, Single, Succession, Together, all_shapes
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import as_unary, conjuncts, of_one_event
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind, Schema, fit, type_names
from estero.language.tree.words import quoted


class NotJoinedError(ValueError):
    """The reason why there is no joining automaton, as a phrase."""


@dataclass(frozen=True, slots=True)
class EventPart:
    """One event of a pattern, or an atom: of one of `types`, marked with `labels`.

    `values` maps classes to the attributes that have their value; several attributes of one class are equal.
    `constants` are the attributes that `conditions` set to constants. `name` is its name in states, and
    `text` in q-trees.
    """

    types: tuple[str, ...]
    labels: LabelSet
    name: str
    text: str
    conditions: tuple[e.Node, ...] = ()
    values: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EqualValues:
    """A class of values that are equal, in each instance of the shape with number `scope`."""

    name: str
    scope: int
    total: bool = True
    """Whether an instance with one of the values always has all of them."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a joining automaton: events, their shape, and classes of equal values."""

    shape: Shape
    events: tuple[EventPart, ...]
    classes: tuple[EqualValues, ...]
    texts: Mapping[int, str] = field(default_factory=dict)
    """The texts of shapes by their numbers."""
    left: tuple[e.Node, ...] = ()
    """Conditions on several events other than equalities, which the automaton does not check."""

    @property
    def overlap(self) -> bool:
        """Whether one event of the stream may serve as several of the events."""
        together = (shape for shape in all_shapes(self.shape) if isinstance(shape, Together))
        return any(others for shape in together for others in shape.beside.values())

    def text(self, shape: Shape) -> str:
        """The text of a part; a single event has all its conditions there."""
        event = self._event(shape)
        return self.texts[shape.number] if event is None else event.text

    def name(self, shape: Shape) -> str:
        """The name of a part in a sentence."""
        event = self._event(shape)
        return self.texts[shape.number] if event is None else quoted(event.name)

    def _event(self, shape: Shape) -> EventPart | None:
        return self.events[next(iter(shape.singles))] if isinstance(shape, Single) else None


def parts_of(pattern: p.Pattern, streams: tuple[str, ...], schema: Schema) -> Parts:
    """The parts of a checked pattern; raises `NotJoinedError` if there is no joining automaton."""
    pattern = p.unshared(pattern)
    reading = _Reading(streams, schema)
    shape = reading.shape(pattern)
    reading.filters(pattern, ())
    return reading.parts(shape)


@dataclass(slots=True)
class _Event:
    """An event of a pattern, with the conditions on it alone."""

    event_type: p.EventType
    types: tuple[str, ...]
    labels: dict[str, None]
    conditions: list[e.Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Values:
    """An attribute of the events that a variable marks."""

    singles: tuple[int, ...]
    attribute: str


@dataclass(frozen=True, slots=True)
class _Equality:
    """An equality of all values of `groups`, if all of them have events or, with `alone`, if one has."""

    groups: tuple[_Values, ...]
    scope: Shape
    alone: bool = False

    @property
    def is_total(self) -> bool:
        """Whether all values of an instance are equal, as each group has events in it."""
        return self.alone or all(self.scope.count(frozenset(group.singles))[0] for group in self.groups)

    @property
    def compared_with_themselves(self) -> list[tuple[int, str]]:
        """The events and attributes that must not be NULL, as they are compared with themselves."""
        if not self.is_total:
            return sorted({term for term in self.terms if self.terms.count(term) > 1})
        alone = self.scope.count(frozenset(single for single, _ in self.terms))[0] < 2
        return sorted(set(self.terms)) if alone else []

    @property
    def terms(self) -> list[tuple[int, str]]:
        """The events and attributes of all groups."""
        return [(single, group.attribute) for group in self.groups for single in group.singles]


_Marks = dict[str, tuple[int, ...]]
"""The events that each label marks."""


@dataclass(slots=True)
class _Reading:
    """A traversal of a pattern that collects its events and equalities."""

    streams: tuple[str, ...]
    schema: Schema
    events: list[_Event] = field(default_factory=list)
    equal: list[_Equality] = field(default_factory=list)
    marks: dict[int, _Marks] = field(default_factory=dict)
    """The events that the labels of each node of the pattern mark, by its `id`."""
    shapes: dict[int, Shape] = field(default_factory=dict)
    """The shape of each node of the pattern, by its `id`."""
    around: dict[int, Shape] = field(default_factory=dict)
    """The enclosing ALL of each ALL directly inside another one, by number; both have the same instances."""
    texts: dict[int, str] = field(default_factory=dict)
    left: list[e.Node] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    # ------------------------------------------------------------------------------------------ shapes

    def shape(self, node: p.Pattern) -> Shape:
        """The shape of a node; also collects the events that its labels mark."""
        match node:
            case p.EventType(name):
                marks: _Marks = {name: (len(self.events),)}
                self.events.append(_Event(node, type_names(node, self.streams), {name: None}))
                shape: Shape = Single(self._number(node), frozenset(marks[name]), ())
            case p.As(inner, variable):
                shape = self.shape(inner)
                marks = dict(self.marks[id(inner)])
                below = _numbers(marks)
                marks[variable] = below
                for number in below:
                    self.events[number].labels[variable] = None
            case p.Filter(inner) | p.PartitionBy(inner):
                shape = self.shape(inner)
                marks = self.marks[id(inner)]
            case _:
                shape = self._composed(node)
                marks = {}
                for part in node.children():
                    for label, numbers in self.marks[id(part)].items():
                        marks[label] = (*marks.get(label, ()), *numbers)
        self.marks[id(node)] = marks
        self.shapes[id(node)] = shape
        return shape

    def _composed(self, node: p.Pattern) -> Shape:
        match node:
            case p.All(parts):
                flat: list[Shape] = []
                inside: list[Shape] = []
                for part in map(self.shape, parts):
                    if isinstance(part, Together):
                        inside.append(part)
                    flat += part.parts if isinstance(part, Together) else [part]
                together = Together(self._number(node), _singles(flat), tuple(flat), self._beside(flat))
                self.around |= dict.fromkeys((part.number for part in inside), together)
                return together
            case p.Sequence(parts, links) if all(link == p.Link() for link in links):
                optional = tuple(isinstance(part, p.Optional) for part in parts)
                below = tuple(map(self.shape, parts))
                return Succession(self._number(node), _singles(below), below, optional)
            case p.Optional(inner):
                return self.shape(inner)
            case p.Disjunction(parts):
                below = tuple(map(self.shape, parts))
                return Choice(self._number(node), _singles(below), below)
            case p.Iteration(inner, False, minimum, maximum, step) if step == p.Step():
                body = self.shape(inner)
                return Rounds(self._number(node), body.singles, (body,), minimum, maximum)
            case _:
                raise NotJoinedError(f"{p.shortened(node)} is more than events joined by ALL, ;, OR and +")

    def _number(self, node: p.Pattern) -> int:
        number = next(self.numbers)
        self.texts[number] = p.shortened(node)
        return number

    def _beside(self, parts: Sequence[Shape]) -> dict[int, frozenset[int]]:
        """The events of other parts that can be the same event of the stream, for each event of the parts."""
        alike = self._alike()
        inside = _singles(parts)
        return {
            single: frozenset(alike[single] & inside - part.singles)
            for part in parts
            for single in part.singles
        }

    def _alike(self) -> list[set[int]]:
        """The other events with a common type, for each event."""
        of_type: dict[str, list[int]] = {}
        for number, event in enumerate(self.events):
            for name in event.types:
                of_type.setdefault(name, []).append(number)
        return [
            {other for name in event.types for other in of_type[name]} - {number}
            for number, event in enumerate(self.events)
        ]

    # ----------------------------------------------------------------------------------------- filters

    def filters(self, node: p.Pattern, above: tuple[p.Pattern, ...]) -> None:
        """Collects the filters at a node and below; `above` are the patterns around it, outermost first."""
        around = (*above, node)
        if isinstance(node, p.Filter):
            inside = set(self.marks[id(node.pattern)])
            for part in conjuncts(node.condition):
                unary = as_unary(part, inside)
                if unary is None:
                    self._equality(part, around)
                else:
                    self._ask(unary, node)
        elif isinstance(node, p.PartitionBy):
            self._agreement(node, around)
        for child in node.children():
            self.filters(child, around)

    def _ask(self, condition: e.Node, node: p.Filter) -> None:
        """Adds a condition on single events."""
        marks = self.marks[id(node.pattern)]
        if isinstance(condition, e.EventFilter):
            for number in marks[condition.variable]:
                self.events[number].conditions.append(condition.predicate)
            return
        filters = [
            event_filter for event_filter in condition.walk() if isinstance(event_filter, e.EventFilter)
        ]
        speaking = {number for event_filter in filters for number in marks[event_filter.variable]}
        if len(speaking) > 1 or self.shapes[id(node)].count(frozenset(speaking)) != (1, 1):
            raise NotJoinedError(f"{condition!s} is about several events, and not an equality")
        self.events[speaking.pop()].conditions.append(of_one_event(condition))

    def _equality(self, condition: e.Node, around: tuple[p.Pattern, ...]) -> None:
        match condition:
            case e.Comparison("=", e.Attribute(one, str(left)), e.Attribute(other, str(right))):
                self._equal(((one, left), (other, right)), around, str(condition))
            case _:
                self.left.append(condition)

    def _equal(
        self,
        terms: Iterable[tuple[str, str]],
        around: tuple[p.Pattern, ...],
        text: str,
        *,
        alone: bool = False,
    ) -> None:
        """Adds an equality of attributes of variables, inside the outermost pattern that binds one of them.

        Events of one variable are compared with those of another. So if a variable can mark several events,
        the other variables must have some: otherwise its events need not be equal.
        """
        groups: list[_Values] = []
        outermost = len(around)
        for attribute, variable in terms:
            place = self._bound(variable, around)
            outermost = min(outermost, place)
            groups.append(_Values(self.marks[id(around[place])][variable], attribute))
        scope = self.shapes[id(around[outermost])]
        counts = [scope.count(frozenset(group.singles)) for group in groups]
        for number, (_, most) in enumerate(counts):
            if (
                most > 1
                and any(few == 0 for few, _ in (*counts[:number], *counts[number + 1 :]))
                and not alone
            ):
                raise NotJoinedError(f"{text} requires nothing of several events if others are missing")
        self.equal.append(_Equality(tuple(groups), scope, alone))

    def _bound(self, variable: str, around: tuple[p.Pattern, ...]) -> int:
        """The index of the smallest pattern around that binds a variable."""
        for place in range(len(around) - 1, -1, -1):
            if variable in self.marks[id(around[place])]:
                return place
        raise NotJoinedError(f"nothing binds {quoted(variable)}")

    def _agreement(self, node: p.PartitionBy, around: tuple[p.Pattern, ...]) -> None:
        """Adds that all values of the keys are equal, and none is NULL."""
        named = [(key.attribute, key.variable) for key in node.keys if key.variable is not None]
        if named:
            self._equal(named, around, str(node), alone=True)
        alternatives = [key.attribute for key in node.keys if key.variable is None]
        if alternatives:
            scope = self.shapes[id(node)]
            groups = tuple(
                _Values((number,), self._first(self.events[number], alternatives))
                for number in sorted(scope.singles)
            )
            before = self.equal.pop().groups if named else ()
            self.equal.append(_Equality((*before, *groups), scope, alone=True))

    def _first(self, event: _Event, keys: Sequence[str]) -> str:
        """The first of the keys that an event has, which must be the same for all its types."""
        if len(keys) == 1:
            return keys[0]
        first_keys = {
            next((key for key in keys if key in attributes), None)
            for attributes in map(self.schema.attributes_of, event.types)
            if attributes is not None
        }
        name = first_keys.pop() if len(first_keys) == 1 else None
        if name is None:
            raise NotJoinedError(f"which key {event.event_type!s} has depends on its event")
        return name

    # ------------------------------------------------------------------------------------------- parts

    def parts(self, shape: Shape) -> Parts:
        """The parts of the pattern with this shape; classes are named after their values."""
        self._check_labels(shape)
        names = self._names()
        values: list[dict[int, tuple[str, ...]]] = [{} for _ in self.events]
        classes: list[EqualValues] = []
        for number, equality in enumerate(self._classes()):
            self._check_kinds(equality)
            terms = sorted(set(equality.terms))
            text = " = ".join(f"{quoted(names[single])}.{quoted(attribute)}" for single, attribute in terms)
            classes.append(EqualValues(text, self._scope(equality).number, equality.is_total))
            for single, attribute in terms:
                values[single][number] = (*values[single].get(number, ()), attribute)
            for single, attribute in equality.compared_with_themselves:
                self.events[single].conditions.append(e.Not(e.IsNull(e.Attribute(attribute))))
        events = tuple(
            EventPart(
                event.types,
                frozenset(event.labels),
                names[number],
                _text(event),
                tuple(dict.fromkeys(event.conditions)),
                values[number],
            )
            for number, event in enumerate(self.events)
        )
        return Parts(shape, events, tuple(classes), self.texts, tuple(self.left))

    def _scope(self, equality: _Equality) -> Shape:
        scope = equality.scope
        while scope.number in self.around:
            scope = self.around[scope.number]
        return scope

    def _classes(self) -> list[_Equality]:
        """The equalities, merged if they share a group that has events in every instance."""
        classes: list[_Equality] = []
        shared: dict[object, list[int]] = {}
        for number, equality in enumerate(self.equal):
            scope = self._scope(equality)
            for group in equality.groups if equality.is_total else ():
                for single in group.singles:
                    if scope.count(frozenset({single}))[0]:
                        shared.setdefault((scope.number, single, group.attribute), []).append(number)
        for numbers in merged([*([number] for number in range(len(self.equal))), *shared.values()]):
            together = [self.equal[number] for number in sorted(numbers)]
            groups = tuple(group for equality in together for group in equality.groups)
            classes.append(_Equality(groups, together[0].scope, any(equality.alone for equality in together)))
        return sorted(classes, key=lambda equality: min(equality.terms))

    def _names(self) -> list[str]:
        """The names of the events: the last label of each that no other event has, or else its last label."""
        given: dict[str, int] = {}
        for event in self.events:
            for label in event.labels:
                given[label] = given.get(label, 0) + 1
        return [
            next((label for label in reversed(event.labels) if given[label] == 1), [*event.labels][-1])
            for event in self.events
        ]

    def _check_labels(self, shape: Shape) -> None:
        """Checks that the labels of an event of the stream determine which of the pattern's events it is."""
        beside: dict[int, frozenset[int]] = {}
        for inner in all_shapes(shape):
            if isinstance(inner, Together):
                for single, those in inner.beside.items():
                    beside[single] = beside.get(single, frozenset()) | those
        others = self._alike()
        for number, event in enumerate(self.events):
            alike = [self.events[other] for other in others[number]]
            own = set(event.labels).difference(*(other.labels for other in alike))
            same = any(set(other.labels) == set(event.labels) for other in alike)
            if same or (beside.get(number) and not own):
                raise NotJoinedError(
                    f"its event number {number + 1}, {event.event_type!s}, has no label of its own, so two "
                    "choices of events can be one complex event"
                )

    def _check_kinds(self, equality: _Equality) -> None:
        """Checks that joined values are comparable, and that columns of one name are of one kind."""
        tables = (*self.schema.types.values(), self.schema.shared or {})
        for name in dict.fromkeys(group.attribute for group in equality.groups):
            if not fit(table[name] for table in tables if name in table):
                raise NotJoinedError(f"values of {quoted(name)} are not all of one comparable kind")
        kinds = {
            table[group.attribute]
            for group in equality.groups
            for table in tables
            if group.attribute in table
        }
        if Kind.DECIMAL in kinds and kinds != {Kind.DECIMAL}:
            raise NotJoinedError("values of decimals are only joined with those of decimals")


def _singles(parts: Iterable[Shape]) -> frozenset[int]:
    return frozenset(single for part in parts for single in part.singles)


def _numbers(marks: _Marks) -> tuple[int, ...]:
    """The events that some label marks, ascending."""
    return tuple(sorted({number for numbers in marks.values() for number in numbers}))


def _text(event: _Event) -> str:
    """The text of an event with all its conditions."""
    asked = " AND ".join(str(condition) for condition in dict.fromkeys(event.conditions))
    names = [label for label in event.labels if label != event.event_type.name]
    text = " AS ".join([str(event.event_type), *map(quoted, names)])
    return f"{text} [{asked}]" if asked else text
