"""What has to be there for residual conditions to be checked: columns of events, and users' predicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from estero.automata.residual import Agreement, Residual
from estero.language.tree.expressions import Aggregate, Attribute, Node, SetPredicate, VariableReference
from estero.language.tree.schema import Schema
from estero.language.tree.words import SET_PREDICATES

Choice = tuple[str, frozenset[str] | None]
"""An attribute, and the types of events whose key it is (None: all)."""


def columns_read(
    residuals: Iterable[Residual], schema: Schema, type_column: str | None = None
) -> tuple[str, ...]:
    """The columns of events that checking the residuals reads, each once.

    ``P(X)`` reads all attributes; alternatives of a key that differ from type to type read `type_column`.
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
    """The names of the predicates over sets of events that are not built in, each once."""
    names = (
        node.name
        for residual in residuals
        if isinstance(residual.condition, Node)
        for node in residual.condition.walk()
        if isinstance(node, SetPredicate) and node.name not in SET_PREDICATES
    )
    return tuple(dict.fromkeys(names))


def all_attributes(schema: Schema) -> tuple[str, ...]:
    """The attributes of all types of events, each once, in the order of the types' tables."""
    tables: Iterable[Iterable[str]] = [schema.shared or {}, *schema.types.values()]
    return tuple(dict.fromkeys(name for table in tables for name in table))


def key_choices(alternatives: Sequence[str], schema: Schema, type_column: str | None) -> list[Choice]:
    """Which of the alternatives of a key that is of which types: of each, the first that it has.

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
        name = next((each for each in present if each in attributes), None)
        if name is not None:
            first.setdefault(name, set()).add(type_name)
    found: list[Choice] = [(name, frozenset(types)) for name, types in first.items()]
    return [*found, (present[0], None)] if schema.shared else found


def _columns_of(
    condition: Node | Agreement, every: tuple[str, ...], schema: Schema, type_column: str | None
) -> Iterator[str]:
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
                yield from every
            case Attribute(name) | Aggregate(attribute=str(name)):
                yield name
            case _:
                pass
