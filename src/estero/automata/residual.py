"""Residual filters: conditions on the marks of a run that predicates of one event cannot express.

A filter inside a repetition holds for each round by itself, and a variable bound around the repetition stands
for the events of the surrounding round (docs/semantics.md, "The pattern"). Runs therefore carry *hidden*
labels, which mark where an instance of a place of the pattern begins, and the events of a variable there.
Answers do not show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from estero.language.tree.distances import Distance
from estero.language.tree.expressions import Attribute, Node, SetPredicate, VariableReference
from estero.language.tree.paths import is_path
from estero.language.tree.pattern import PartitionKey
from estero.language.tree.schema import Schema

ALL_MARKED = "*"
"""The name that replaces a variable of all events that a pattern marks; no variable has this name."""


BEFORE = "before"
"""The name that replaces a variable of the events that end before a step."""


@dataclass(frozen=True, slots=True, order=True)
class Hidden:
    """A label of the events of `variable` at place number `place` of the pattern.

    With an empty `variable` it marks the first event of each instance of the place; an instance ends before
    the first event of the next one.
    """

    place: int
    variable: str = ""

    def __str__(self) -> str:
        return f"#{self.place}.{self.variable}" if self.variable else f"#{self.place}"


HiddenSet = frozenset[Hidden]
NO_HIDDEN: HiddenSet = frozenset()
Key = str | Hidden
"""The label by which an event belongs to a variable: one of the answer, or a hidden one."""


def carries(labels: frozenset[str], hidden: HiddenSet, key: Key) -> bool:
    """Whether an event with these labels belongs to `key`; to `ALL_MARKED` if it has any label at all."""
    if isinstance(key, Hidden):
        return key in hidden
    return bool(labels) if key == ALL_MARKED else key in labels


@dataclass(frozen=True, slots=True)
class Agreement:
    """``PARTITION BY [X.a, …]`` in a pattern: all values are equal and none is NULL."""

    keys: tuple[PartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Apartness:
    """``[<= 5 MINUTES, …]`` of a step: the distance from the part before it to the part after it."""

    distances: tuple[Distance, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.distances))}]"


@dataclass(frozen=True, slots=True)
class Nearby:
    """An event that the absence `said` forbids near the start of a complex event, or near its end.

    It comes before the start, or after the end (`ahead`), within the deadline, and belongs to `variables`.
    """

    said: str
    ahead: bool
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Residual:
    """A condition on the marks of a run.

    `bindings` gives the label behind each variable of `condition` (`ALL_MARKED` for the keys of an
    `Agreement` without variable). Without `place` the condition holds for the complex event as a whole, and
    all bindings are labels of the answer or hidden ones of the whole. With `place` it must be true of each
    instance of that place; a binding to another place means that place's instance around it. If it is
    `refuted`, it must not be true (``NOT(…)`` in a sequence); with `soon` this holds only for instances whose
    distance from the part before does not satisfy `soon`. With `nearby` it must not be true with any event
    nearby.

    The place of an `Apartness` is a step: its instances begin with the part after it, and the only binding is
    the label at the end of the part before it, whose last event counts.
    """

    condition: Node | Agreement | Apartness
    bindings: tuple[tuple[str, Key], ...]
    place: int | None = None
    refuted: bool = False
    soon: Apartness | None = None
    nearby: Nearby | None = None


# ------------------------------------------------------------------- what checking them requires


def needed_hidden(residuals: Iterable[Residual]) -> set[Hidden]:
    """The hidden labels of the residuals' variables, and those where their places begin."""
    needed: set[Hidden] = set()
    for residual in residuals:
        if residual.place is not None:
            needed.add(Hidden(residual.place))
        for _, key in residual.bindings:
            if isinstance(key, Hidden):
                needed |= {key, Hidden(key.place)}
    return needed


Choice = tuple[str, frozenset[str] | None]
"""An attribute, and the types of the events that it is the key of (None: all)."""


def columns_read(
    residuals: Iterable[Residual], schema: Schema, type_column: str | None = None
) -> tuple[str, ...]:
    """The columns of events that checking the residuals reads, without duplicates.

    ``P(X)`` reads all attributes; a key with different attributes for different types also reads
    `type_column`.
    """
    every = all_attributes(schema)
    names = dict.fromkeys(
        name
        for residual in residuals
        for name in _columns_of(residual.condition, every, schema, type_column)
        if name in every or name == type_column
    )
    return tuple(names)


def predicates_called(residuals: Iterable[Residual]) -> tuple[str, ...]:
    """The names of the user-defined predicates over sets of events, without duplicates."""
    names = (
        node.name
        for residual in residuals
        if isinstance(residual.condition, Node)
        for node in residual.condition.walk()
        if isinstance(node, SetPredicate)
    )
    return tuple(dict.fromkeys(names))


def given_tables(residuals: Iterable[Residual]) -> tuple[str, ...]:
    """The texts of the calls of predicates that take events as tables, with their positions."""
    calls = (
        str(node)
        for residual in residuals
        if isinstance(residual.condition, Node)
        for node in residual.condition.walk()
        if isinstance(node, SetPredicate)
        and any(isinstance(argument, VariableReference) for argument in node.arguments)
    )
    return tuple(dict.fromkeys(calls))


def all_attributes(schema: Schema) -> tuple[str, ...]:
    """The attributes of all types of events, without duplicates, in the order of the types' tables.

    They include the paths that a query reads inside columns.
    """
    tables: Iterable[Iterable[str]] = [schema.shared or {}, *schema.types.values()]
    return tuple(dict.fromkeys(name for table in tables for name in table))


def key_choices(alternatives: Sequence[str], schema: Schema, type_column: str | None) -> list[Choice]:
    """The alternatives of a key, each with the types whose first present alternative it is.

    >>> from estero.language.tree.schema import Kind
    >>> a, b = {"id": Kind.INT}, {"number": Kind.INT}
    >>> key_choices(["id", "number"], Schema({"A": a, "B": b}, closed=True), "kind")
    [('id', frozenset({'A'})), ('number', frozenset({'B'}))]
    """
    known = all_attributes(schema)
    present = [name for name in alternatives if name in known]
    if len(present) <= 1 or type_column is None or not schema.types:
        return [(name, None) for name in present[:1]]
    first: dict[str, set[str]] = {}
    for type_name, attributes in schema.types.items():
        name = next((attribute for attribute in present if attribute in attributes), None)
        if name is not None:
            first.setdefault(name, set()).add(type_name)
    choices: list[Choice] = [(name, frozenset(types)) for name, types in first.items()]
    return [*choices, (present[0], None)] if schema.shared else choices


def _columns_of(
    condition: Node | Agreement | Apartness, every: tuple[str, ...], schema: Schema, type_column: str | None
) -> Iterator[str]:
    if isinstance(condition, Apartness):
        return
    if isinstance(condition, Agreement):
        yield from (key.attribute for key in condition.keys if key.variable is not None)
        alternatives = [key.attribute for key in condition.keys if key.variable is None]
        for name, types in key_choices(alternatives, schema, type_column):
            yield name
            if types is not None and type_column is not None:
                yield type_column
        return
    for node in condition.walk():
        match node:
            case VariableReference():
                yield from (name for name in every if not is_path(name))
            case Attribute(name):
                yield name
            case _:
                pass
