"""The known types of events of a query, and their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from estero.language.check.problems import Problems
from estero.language.tree.names import some, suggestion
from estero.language.tree.paths import is_path
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Attributes, Kind, Schema, type_names

_USUAL: Final = frozenset({"type", "kind", "event", "event_type", "eventtype", "event_kind", "event_name"})
"""Common names of a column with the type of events."""


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """The attributes of the types in a query, as far as the schema knows them (None: not at all)."""

    schema: Schema | None
    streams: tuple[str, ...] = ()

    def attributes(self, event_type: EventType) -> Attributes | None:
        """The attributes of events that an atom reads, or None if they are unknown."""
        return None if self.schema is None else self.schema.attributes_read(event_type, self.streams)

    def exists(self, event_type: EventType) -> bool:
        """Whether events of a type may exist."""
        if self.schema is None or not self.schema.closed:
            return True
        return any(name in self.schema.types for name in type_names(event_type, self.streams))

    def having_two(
        self, types: Iterable[EventType], alternatives: Sequence[str]
    ) -> tuple[str, str, str] | None:
        """A type with two of the alternatives of a key, and these two; None if there is none."""
        for kind in types:
            attributes = self.attributes(kind) or ()
            both = [name for name in dict.fromkeys(alternatives) if name in attributes]
            if len(both) > 1:
                return kind.name, both[0], both[1]
        return None

    def note_missing(self, event_type: EventType, problems: Problems) -> None:
        """Notes a type without events, and how to declare the types of events."""
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
        """The attributes of the types with their kinds; None if one type is unknown."""
        kinds: dict[str, set[Kind]] = {}
        for event_type in types:
            attributes = self.attributes(event_type)
            if attributes is None:
                return None
            for name, kind in attributes.items():
                kinds.setdefault(name, set()).add(kind)
        return kinds


def naming_the_time(schema: Schema) -> str:
    """The hint on declaring the time column, which is named if it can be guessed."""
    times = [name for name, kind in schema.column_kinds.items() if kind is Kind.TIMESTAMP]
    column = times[0] if len(times) == 1 else "…"
    return f'name the column where the events are given: time="{column}" (--time {column})'


def _naming_the_column(attributes: Attributes) -> str:
    """The hint on declaring the type column, which is named if it can be guessed."""
    strings = [name for name, kind in attributes.items() if kind is Kind.STRING and not is_path(name)]
    usual = [name for name in strings if name.casefold() in _USUAL]
    column = (usual or strings)[0] if usual or len(strings) == 1 else "…"
    return f'name the column with the type where the events are given: type="{column}" (--type {column})'
