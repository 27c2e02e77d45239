"""What the labels of a pattern can mark: type names, and the attributes of those types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from estero.language.check.problems import Problems
from estero.language.tree.names import some, suggestion
from estero.language.tree.pattern import As, EventType, Pattern, Rename
from estero.language.tree.schema import Attributes, Kind, Schema

_USUAL: Final = frozenset({"type", "kind", "event", "event_type", "eventtype", "event_kind", "event_name"})
"""What a column with the type of events is often called."""


def type_names(event_type: EventType, streams: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names that the type of an event may have for the atom to read it; `streams` are those of FROM.

    >>> type_names(EventType("R"), ("S",)), type_names(EventType("R", "S"))
    (('R', 'S>R'), ('S>R',))
    """
    if event_type.stream is None:
        return (event_type.name, *(f"{stream}>{event_type.name}" for stream in streams))
    qualified = f"{event_type.stream}>{event_type.name}"
    return (qualified, event_type.name) if streams == (event_type.stream,) else (qualified,)


def bound_names(pattern: Pattern) -> tuple[str, ...]:
    """All labels that are given anywhere in the pattern, also where they are dropped again."""
    names: dict[str, None] = {}
    for node in pattern.walk():
        match node:
            case EventType(name):
                names[name] = None
            case As(_, variable):
                names[variable] = None
            case Rename(_, _, new):
                names[new] = None
            case _:
                pass
    return tuple(names)


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """The attributes of the types in a query, as far as the schema knows them (None: not at all)."""

    schema: Schema | None
    streams: tuple[str, ...] = ()

    def attributes(self, event_type: EventType) -> Attributes | None:
        """The attributes of events that an atom reads, or None where they are not known."""
        if self.schema is None:
            return None
        candidates = type_names(event_type, self.streams)
        known = [self.schema.types[name] for name in candidates if name in self.schema.types]
        if not known:
            return self.schema.attributes_of(event_type.name)
        return {name: kind for each in reversed(known) for name, kind in each.items()}

    def exists(self, event_type: EventType) -> bool:
        """Whether there may be such events."""
        if self.schema is None or not self.schema.closed:
            return True
        return any(name in self.schema.types for name in type_names(event_type, self.streams))

    def having_two(
        self, types: Iterable[EventType], alternatives: Sequence[str]
    ) -> tuple[str, str, str] | None:
        """A type that has two of the alternatives of a key, and these two; None where none has."""
        for each in types:
            attributes = self.attributes(each) or ()
            found = [name for name in dict.fromkeys(alternatives) if name in attributes]
            if len(found) > 1:
                return each.name, found[0], found[1]
        return None

    def note_missing(self, event_type: EventType, problems: Problems) -> None:
        """Note that there can be no events of a type, and how the types of events are said."""
        types = tuple(self.schema.types) if self.schema else ()
        message = f"there are no events of type {event_type.name}"
        expected = some(types) or "no type at all: there are no events"
        hint = "give it a table of its own; an empty one will do"
        if self.schema is not None and self.schema.untyped:
            message += ": no column says the type of an event"
            expected = f"{some(types)}, the type of all events"
            hint = _naming_the_column(self.schema.types[types[0]])
        elif self.schema is not None and self.schema.shared is not None:
            hint = "types=[…] lists the types: add it there if there may be such events"
        near = suggestion(event_type.name, types)
        problems.add(message, event_type.span, expected=expected, hint=near or hint)

    def together(self, types: Iterable[EventType]) -> Mapping[str, set[Kind]] | None:
        """The attributes that some of the types have, with their kinds; None where one type is not known."""
        kinds: dict[str, set[Kind]] = {}
        for each in types:
            attributes = self.attributes(each)
            if attributes is None:
                return None
            for name, kind in attributes.items():
                kinds.setdefault(name, set()).add(kind)
        return kinds


def _naming_the_column(attributes: Attributes) -> str:
    """How to say which column holds the type; it is named where it can be told."""
    strings = [name for name, kind in attributes.items() if kind is Kind.STRING]
    usual = [name for name in strings if name.casefold() in _USUAL]
    column = (usual or strings)[0] if usual or len(strings) == 1 else "…"
    return f'name the column with the type where the events are given: type="{column}" (--type {column})'
