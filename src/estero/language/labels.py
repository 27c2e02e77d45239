"""What the labels of a pattern can mark: type names, and the attributes of those types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estero.language.pattern import As, EventType, Pattern, Rename
from estero.language.schema import Attributes, Kind, Schema
from estero.language.selection import label_types


def type_names(event_type: EventType, streams: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names that the type of an event may have for the atom to read it; `streams` are those of FROM.

    >>> type_names(EventType("R"), ("S",)), type_names(EventType("R", "S"))
    (('R', 'S>R'), ('S>R',))
    """
    if event_type.stream is None:
        return (event_type.name, *(f"{stream}>{event_type.name}" for stream in streams))
    qualified = f"{event_type.stream}>{event_type.name}"
    return (qualified, event_type.name) if streams == (event_type.stream,) else (qualified,)


def labels_of(pattern: Pattern, streams: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """For each label of the pattern's complex events, the names of the types that it can mark.

    >>> labels_of(As(EventType("SELL"), "a"))
    {'SELL': {'SELL'}, 'a': {'SELL'}}
    """
    return {
        label: {name for each in types for name in type_names(each, streams)}
        for label, types in label_types(pattern).items()
    }


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
