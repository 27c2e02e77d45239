"""What is known of the events before a query runs: types, attributes and their kinds, the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from estero.language.tree.query import TimeUnit


class Kind(Enum):
    """What values of an attribute are.

    OPAQUE ones (lists, bytes, …) can be shown, not compared. An attribute that is NULL in every event, or
    of a file without any, may be read as every kind.
    """

    BOOL = "a truth value"
    INT = "an integer"
    FLOAT = "a float"
    STRING = "a string"
    TIMESTAMP = "a timestamp"
    OPAQUE = "a value that cannot be compared"
    NULL = "nothing but NULL"


Attributes = Mapping[str, Kind]


@dataclass(frozen=True, slots=True)
class Schema:
    """Types of events and what they hold.

    `types` maps each type name that is known beforehand to its attributes. When all types share one
    table, `shared` holds its attributes, and a type that is not in `types` may still exist unless
    `closed` (then `types` is all there is). `untyped`: no column says the type, so that all events are of
    the one in `types`. `time` names the time attribute; `time_unit` is the length of one tick when it is an
    integer.
    """

    types: Mapping[str, Attributes] = field(default_factory=dict)
    shared: Attributes | None = None
    closed: bool = False
    time: str | None = None
    time_unit: TimeUnit | None = None
    untyped: bool = field(default=False, compare=False, repr=False)

    def attributes_of(self, type_name: str) -> Attributes | None:
        """The attributes of a type, in the order of its table, or None where there is no such type."""
        if type_name in self.types:
            return self.types[type_name]
        return None if self.closed else self.shared
