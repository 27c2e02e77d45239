"""The layout of events as users give it, and the schema known before a query runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from estero.errors import DataError
from estero.language.tree.durations import TimeUnit
from estero.language.tree.exact_names import exact_among
from estero.language.tree.paths import column_of, is_path, steps_of
from estero.language.tree.pattern import EventType

UNITS_OF_TIME: Mapping[str, TimeUnit] = {
    "ns": TimeUnit.NANOSECONDS,
    "us": TimeUnit.MICROSECONDS,
    "ms": TimeUnit.MILLISECONDS,
    "s": TimeUnit.SECONDS,
    "min": TimeUnit.MINUTES,
    "h": TimeUnit.HOURS,
    "d": TimeUnit.DAYS,
}
"""The names of units of an integer time column."""


@dataclass(frozen=True, slots=True)
class EventLayout:
    """The roles of the columns of events, as a user gives them with the events.

    `type` is the column with the event type; without it all events are of type `only_type`. `time` is the
    time column, `order` the columns that break ties of time, and `time_unit` the length of a tick where times
    are integers. `types` are the types there may be beside those that occur.
    """

    type: str | None = None
    time: str | None = None
    order: tuple[str, ...] = ()
    time_unit: TimeUnit | None = None
    only_type: str = "Event"
    types: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        *,
        only_type: str = "Event",
    ) -> EventLayout:
        """The layout that the keyword arguments of public functions describe.

        `time_unit` is one of "ns", "us", "ms", "s", "min", "h" and "d"; a single name is an `order`, too.
        Raises `DataError` for another unit.
        """
        if time_unit is not None and time_unit not in UNITS_OF_TIME:
            raise DataError(
                f"{time_unit!r} is not a unit of time", hint=f"it is one of {', '.join(UNITS_OF_TIME)}"
            )
        columns = (order,) if isinstance(order, str) else tuple(order)
        unit = None if time_unit is None else UNITS_OF_TIME[time_unit]
        return cls(type, time, columns, unit, only_type, tuple(types))


class Kind(Enum):
    """The kind of the values of an attribute.

    OPAQUE ones (lists, bytes, …) can be shown, not compared. An attribute that is NULL in every event, or
    of a file without any, may be read as every kind.
    """

    BOOL = "a truth value"
    INT = "an integer"
    FLOAT = "a float"
    DECIMAL = "a decimal"
    STRING = "a string"
    TIMESTAMP = "a timestamp"
    DURATION = "a duration"
    OPAQUE = "a value that cannot be compared"
    NULL = "nothing but NULL"

    __hash__ = object.__hash__  # that of `Enum` is Python, and checks look kinds up in sets


NUMBERS: Final = frozenset({Kind.INT, Kind.FLOAT})
"""The kinds of numbers in arithmetic; decimals are only compared and summed up, exactly."""
HASHED: Final = frozenset({Kind.STRING, Kind.DECIMAL})
"""Kinds whose values do not fit in 64 bits: their hashes are compared."""


_EXACT: Final = frozenset({Kind.INT, Kind.DECIMAL})


def fit(kinds: Iterable[Kind]) -> bool:
    """Whether values of these kinds can be compared with each other; NULL can be with all.

    Decimals can be with integers, not with floats: a float is hardly ever the decimal that was meant.

    >>> fit([Kind.INT, Kind.FLOAT, Kind.NULL]), fit([Kind.INT, Kind.STRING]), fit([Kind.OPAQUE])
    (True, False, False)
    """
    known = set(kinds) - {Kind.NULL}
    return Kind.OPAQUE not in known and (len(known) < 2 or known <= NUMBERS or known <= _EXACT)


Attributes = Mapping[str, Kind]


@dataclass(frozen=True, slots=True)
class Nested:
    """A column or a part of it: its kind, the fields of a struct, and what the elements of a list are."""

    kind: Kind
    fields: Mapping[str, Nested] | None = None
    element: Nested | None = None

    @property
    def described(self) -> str:
        """The kind in words."""
        return "a struct" if self.fields is not None else "a list" if self.element else self.kind.value

    def step(self, step: str | int) -> Nested | None:
        """The result of a step, None if there is none; everything inside of NULL is NULL.

        A field of a list is the list of what its elements have there, and of what these lists have.
        """
        if self.kind is Kind.NULL:
            return self
        if isinstance(step, int):
            return self.element
        if self.element is None:
            return (self.fields or {}).get(step)
        inner = self.element.step(step)
        return inner if inner is None or inner.element is not None else Nested(Kind.OPAQUE, element=inner)


def type_names(event_type: EventType, streams: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names that the type of an event may have for the atom to read it; `streams` are those of FROM.

    >>> type_names(EventType("R"), ("S",)), type_names(EventType("R", "S"))
    (('R', 'S>R'), ('S>R',))
    """
    if event_type.stream is None:
        return (event_type.name, *(f"{stream}>{event_type.name}" for stream in streams))
    qualified = f"{event_type.stream}>{event_type.name}"
    return (qualified, event_type.name) if streams == (event_type.stream,) else (qualified,)


@dataclass(frozen=True, slots=True)
class Schema:
    """Types of events and what they hold.

    `types` maps each type name that is known beforehand to its attributes. When all types share one
    table, `shared` holds its attributes, and a type that is not in `types` may still exist unless
    `closed` (then `types` is all there is). `untyped`: no column says the type, so that all events are of
    the one in `types`. `nested` says what is inside of columns that are structs or lists. `time` names the
    time attribute; `time_unit` is the length of one tick when it is an integer.
    """

    types: Mapping[str, Attributes] = field(default_factory=dict)
    shared: Attributes | None = None
    closed: bool = False
    time: str | None = None
    time_unit: TimeUnit | None = None
    untyped: bool = field(default=False, compare=False, repr=False)
    nested: Mapping[str, Nested] = field(default_factory=dict, compare=False, repr=False)
    _kinds: dict[str, Kind] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The kinds of columns, computed on first use, since rules ask for each field."""
    _ends: dict[str, Nested | None] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The ends of paths, as far as they have been requested."""
    names: dict[str, str | None] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The attributes of fields by their names in other languages (field_names.py), as far as known."""
    _exact: list[Mapping[str, str]] = field(default_factory=list, init=False, compare=False, repr=False)
    """The value of `exact`, computed on first use."""
    _columns: dict[object, tuple[str, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The values of `columns_read`, as far as they have been requested."""
    _insides: list[bool] = field(default_factory=list, init=False, compare=False, repr=False)
    """The value of `has_insides`, computed on first use."""

    @property
    def has_insides(self) -> bool:
        """Whether paths lead inside of some column: a struct, a list, or one with nothing but NULL."""
        if not self._insides:
            self._insides.append(bool(self.nested) or Kind.NULL in self.column_kinds.values())
        return self._insides[0]

    @property
    def column_kinds(self) -> Mapping[str, Kind]:
        """The kind of the column of each attribute; floats for integers and floats."""
        if self._kinds:
            return self._kinds
        kinds: dict[str, Kind] = {}
        for name, kind in (
            item for attributes in (*self.types.values(), self.shared or {}) for item in attributes.items()
        ):
            if kinds.get(name, Kind.NULL) is Kind.NULL or kind is Kind.FLOAT:
                kinds[name] = kind
        self._kinds.update(kinds)  # at once, since several threads may ask
        return kinds

    @property
    def exact(self) -> Mapping[str, str]:
        """The names inside of columns whose names differ in case only, by the names that users have."""
        if not self._exact:
            self._exact.append(exact_among(self.column_kinds))
        return self._exact[0]

    def inside(self, path: str) -> Nested | None:
        """The end of a path, None if there is none."""
        if path not in self._ends:
            self._ends[path] = self._end_of(path)
        return self._ends[path]

    def _end_of(self, path: str) -> Nested | None:
        column = column_of(path)
        nested = self.nested.get(column) or Nested(self.column_kinds.get(column, Kind.OPAQUE))
        for step in steps_of(path):
            inner = nested.step(step)
            if inner is None:
                return None
            nested = inner
        return nested

    def reading(self, paths: Iterable[str]) -> Schema:
        """The schema with the existing ones of these paths as attributes.

        Every type has them whose table has the column.
        """
        kinds = {path: inner.kind for path in paths if (inner := self.inside(path)) is not None}
        if not kinds:
            return self

        def read(attributes: Attributes) -> Attributes:
            return {**attributes, **{path: kinds[path] for path in kinds if column_of(path) in attributes}}

        types = {name: read(attributes) for name, attributes in self.types.items()}
        return replace(self, types=types, shared=None if self.shared is None else read(self.shared))

    def attributes_of(self, type_name: str) -> Attributes | None:
        """The attributes of a type, in the order of its table, or None if there is no such type."""
        if type_name in self.types:
            return self.types[type_name]
        return None if self.closed else self.shared

    def attributes_read(self, event_type: EventType, streams: tuple[str, ...]) -> Attributes | None:
        """The attributes of the events that an atom reads, or None if there is no such type.

        `streams` are those of FROM. Where the events can be of several types, each attribute once, in the
        order of the types' tables.
        """
        known = [self.types[name] for name in type_names(event_type, streams) if name in self.types]
        if not known:
            return self.attributes_of(event_type.name)
        if len(known) == 1:
            return known[0]
        attributes: dict[str, Kind] = {}
        for name, kind in (item for attributes in known for item in attributes.items()):
            attributes.setdefault(name, kind)
        return attributes

    def columns_read(self, event_type: EventType, streams: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The columns among `attributes_read`."""
        key = event_type, streams
        if key not in self._columns:
            read = self.attributes_read(event_type, streams) or ()
            self._columns[key] = tuple(name for name in read if not is_path(name))
        return self._columns[key]
