"""The attributes that have the fields of Sigma rules: columns, structs of raw exports, or mapped names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Final

from estero.language.sigma.tree import Condition, LogSource
from estero.language.tree.expressions import Attribute
from estero.language.tree.field_names import attribute_of
from estero.language.tree.paths import field_of
from estero.language.tree.schema import Kind, Nested, Schema

CONTAINERS: Final = (
    "Event.EventData",
    "Event.UserData",
    "Event.UserData.*",
    "Event.System",
    "EventData",
    "UserData",
    "UserData.*",
    "System",
    "winlog.event_data",
    "winlog.user_data",
    "winlog",
)
"""The structs with the fields of Windows events; ``.*`` is any struct inside of one."""

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "EventID": ("winlog.event_id", "event_id", "event.code"),
    "Channel": ("winlog.channel", "channel"),
    "Computer": ("winlog.computer_name", "computer_name"),
    "event.dataset": ("data_stream.dataset",),
    "Provider_Name": (
        "Event.System.Provider.#attributes.Name",
        "Event.System.Provider.@Name",
        "Event.System.Provider.Name",
        "System.Provider.#attributes.Name",
        "System.Provider.@Name",
        "System.Provider.Name",
        "winlog.provider_name",
        "ProviderName",
        "SourceName",
    ),
}
"""Other names of the fields that all events of Windows or of Elastic Agent have."""


@dataclass(frozen=True)
class Mapped:
    """A mapping of fields: other names by name, and in `sources` the conditions that define log sources.

    The names of a mapping take precedence: if it has a field, no other name is tried. `further` names are
    tried last, in order.
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: tuple[tuple[LogSource, Condition], ...] = ()
    further: tuple[Mapping[str, tuple[str, ...]], ...] = ()

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.names.items())), self.sources, len(self.further)))

    @lru_cache(maxsize=256)  # noqa: B019 (there are few, and they are compared by identity first)
    def without_further(self) -> Mapped:
        """The mapping without the names that are tried last."""
        return replace(self, further=()) if self.further else self


@dataclass(frozen=True, slots=True)
class Attributed:
    """An attribute with values of a field, and their kind; `listed` if it is a list of them."""

    name: str
    kind: Kind | None
    listed: bool = False


class Fields:
    """The fields of events of a schema; without a schema, every field is an attribute of unknown kind.

    `texts` are all attributes with text, and `plain_texts` those that are not lists.
    """

    def __init__(self, schema: Schema | None, mapped: Mapped) -> None:
        self._schema = schema
        self._blanks: dict[str, str] = {}
        self._containers: tuple[str, ...] = ()
        self.texts: tuple[Attributed, ...] = (Attributed("*", Kind.STRING),)
        if schema is not None:
            self._containers = tuple(_containers(schema))
            leaves = [(name, nested) for top, inner in _tops(schema) for name, nested in _leaves(top, inner)]
            known = (_attributed(name, nested) for name, nested in leaves)
            self.texts = tuple(one for one in known if one.kind is Kind.STRING)
            for name, _ in leaves:
                last = name.rpartition("\0.")[2]
                if " " in last:
                    self._blanks.setdefault(last.replace(" ", ""), last)
        self.plain_texts = tuple(Attribute(one.name) for one in self.texts if not one.listed)
        self._begin(mapped)

    def under(self, mapped: Mapped) -> Fields:
        """The fields of the same schema under another mapping."""
        fields = copy(self)
        fields._begin(mapped)  # noqa: SLF001 (of this class)
        return fields

    def _begin(self, mapped: Mapped) -> None:
        """Takes a mapping, for which no field was looked up yet."""
        self._mapped = mapped
        self._known: dict[str, tuple[Attributed, ...]] = {}
        self._plain: dict[str, Attribute | None] = {}

    def of(self, name: str) -> tuple[Attributed, ...]:
        """The attributes that have a field; none if no event has it.

        A column of that name is the only one, or else a column with a name from the mapping. Otherwise there
        is one attribute for each container that has the field, because each event uses one container.
        """
        if name not in self._known:
            self._known[name] = ()  # names may refer to one another
            self._known[name] = self._looked_up(name)
        return self._known[name]

    def plain(self, name: str) -> Attribute | None:
        """The attribute of a field that is one column of strings; None for any other field."""
        if name not in self._plain:
            known = self.of(name)
            is_plain = len(known) == 1 and known[0].kind is Kind.STRING and not known[0].listed
            self._plain[name] = Attribute(known[0].name) if is_plain else None
        return self._plain[name]

    def _looked_up(self, name: str) -> tuple[Attributed, ...]:
        schema = self._schema
        if schema is None:
            given = self._mapped.names.get(name, (name,))
            return tuple(Attributed(reduce(field_of, other.split(".")), None) for other in given)
        attributes = self._of_names(self._mapped.names[name]) if name in self._mapped.names else ()
        attributes = attributes or self._of_names((name,))[:1]
        if not attributes:
            contained = [f"{container}.{name}" for container in self._containers]
            attributes = self._of_names((*contained, *NAMES.get(name, ())))
        if not attributes and name in self._blanks:
            attributes = self.of(self._blanks[name])
        for further in self._mapped.further:
            for other in further.get(name, ()):
                attributes = attributes or self.of(other)
        return attributes

    def _of_names(self, names: tuple[str, ...]) -> tuple[Attributed, ...]:
        schema = self._schema
        if schema is None:
            return ()
        paths = dict.fromkeys(path for name in names if (path := attribute_of(name, schema)) is not None)
        return tuple(_attributed(path, schema.inside(path) or Nested(Kind.NULL)) for path in paths)


def _attributed(path: str, nested: Nested) -> Attributed:
    """An attribute of a nested type."""
    if nested.element is not None:
        return Attributed(path, nested.element.kind, listed=True)
    return Attributed(path, nested.kind)


def _tops(schema: Schema) -> Iterator[tuple[str, Nested]]:
    for name, kind in schema.column_kinds.items():
        if name != schema.time:
            yield name, schema.nested.get(name) or Nested(kind)


def _leaves(name: str, nested: Nested) -> Iterator[tuple[str, Nested]]:
    """The attributes inside a column that are neither structs nor lists of structs."""
    fields = nested.fields if nested.element is None else nested.element.fields
    if fields is None:
        yield name, nested
        return
    for step in fields:
        inner = nested.step(step)
        if inner is not None:
            yield from _leaves(field_of(name, step), inner)


def _flattened(name: str, schema: Schema, *, deeper: bool) -> Iterator[str]:
    """The names of a struct flattened into columns (``Event.EventData.Image``), or of structs in it."""
    inside = [
        column.removeprefix(f"{name}.") for column in schema.column_kinds if column.startswith(f"{name}.")
    ]
    if deeper:
        steps = (column.partition(".") for column in inside)
        yield from dict.fromkeys(f"{name}.{step}" for step, _, further in steps if further)
    elif inside:
        yield name


def _containers(schema: Schema) -> Iterator[str]:
    """The names of the containers in a schema."""
    for container in CONTAINERS:
        name, star, _ = container.partition(".*")
        path = attribute_of(name, schema)
        if path is None:
            yield from _flattened(name, schema, deeper=bool(star))
            continue
        if not star:
            yield name
            continue
        nested = schema.inside(path)
        for step, inner in (nested.fields or {}).items() if nested is not None else ():
            if inner.fields is not None:
                yield f"{name}.{step}"
