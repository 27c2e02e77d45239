"""The labels and attributes shown by the SELECT list of a checked query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from estero.language.tree.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Call,
    Node,
    SomeElement,
    substituted,
)
from estero.language.tree.nodes import SyntaxNode, walked
from estero.language.tree.paths import element_of, is_path
from estero.language.tree.pattern import (
    As,
    EventType,
    Iteration,
    Keep,
    PartitionKey,
    Pattern,
    Rename,
    Sequence,
    Unless,
    ending,
)
from estero.language.tree.query import EveryLabel, KeyBracket, QueryTree, SelectExpression, SelectItem
from estero.language.tree.schema import Schema

Item = TypeVar("Item")

START_TIME: Final = "start_time"
END_TIME: Final = "end_time"
DECIDED_TIME: Final = "decided_time"
"""The name of the time of decision, only in queries that end with ``NOT(…) FOR d``."""
FIXED: Final = ("start", "end", START_TIME, END_TIME, DECIDED_TIME, "suppressed", "complete", "steps")
"""The columns of answers in addition to those named by a query."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One label of the answer and the attributes that its events show, in the order they show them.

    A label that is a `stage` has one event, or none where that must be missing.
    """

    label: str
    attributes: tuple[str, ...]
    stage: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A column with a value of each complex event, by its name.

    Its expression refers to aggregates and to columns of the answer: attributes without a variable, where
    keys have the names given by `key_name`.
    """

    name: str
    expression: Node

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates over the events of labels."""
        return tuple(node for node in self.expression.walk() if isinstance(node, Aggregate))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of events that it reads, each once."""
        inside = (
            node for aggregate in self.aggregates if aggregate.operand for node in aggregate.operand.walk()
        )
        return _once(node.name for node in inside if isinstance(node, Attribute))


def measures_of(tree: QueryTree) -> tuple[Measure, ...]:
    """The columns that SELECT computes, in order; ``X.a`` is ``first(X.a)``: X marks one event at most."""
    keys = {
        name: key_name(place)
        for place, bracket in enumerate(tree.partition_by)
        for name in bracket.alternatives
    }
    times = times_of(tree)

    def change(node: Node) -> Node | None:
        match node:
            case Aggregate():
                return node
            case Attribute(name, str(variable)):
                return Aggregate("first", variable, Attribute(name))
            case Attribute(name) if name in keys and name not in times:
                return Attribute(keys[name])
            case Attribute("duration"):
                return Arithmetic("-", Attribute(END_TIME), Attribute(START_TIME))
            case _:
                return None

    return tuple(
        Measure(item.name, substituted(item.expression, change))
        for item in tree.select or ()
        if isinstance(item, SelectExpression)
    )


def times_of(tree: QueryTree) -> tuple[str, ...]:
    """The names of the times of a complex event in a query, which take precedence over others."""
    return (START_TIME, END_TIME, DECIDED_TIME) if ending(tree.pattern) else (START_TIME, END_TIME)


def key_name(place: int) -> str:
    """The name in measures for the key of a bracket of ``PARTITION BY``, different from those of times."""
    return f"the key {place}"


def shown_labels(tree: QueryTree, schema: Schema) -> tuple[Shown, ...]:
    """The labels that `tree` selects, in order; ``*`` is all labels in order of appearance.

    ``X`` without attributes shows those of every type that X may mark, each once, in the order of the
    types' tables. A label listed twice is shown once, with the attributes of both. Needs a checked
    query: a label that the pattern lacks shows no attributes.
    """
    types = label_types(tree.pattern)

    def attributes_of(label: str) -> tuple[str, ...]:
        read = [schema.columns_read(event_type, tree.streams) for event_type in types.get(label, ())]
        return read[0] if len(read) == 1 else _once(name for columns in read for name in columns)

    chosen: dict[str, tuple[str, ...]] = {}
    for item in (EveryLabel(),) if tree.select is None else tree.select:
        match item:
            case EveryLabel():
                labels = [(label, attributes_of(label)) for label in types]
            case SelectItem(label, attributes):
                labels = [(label, attributes_of(label) if attributes is None else _once(attributes))]
            case SelectExpression():
                labels = []
        for label, attributes in labels:
            chosen[label] = _once((*chosen[label], *attributes)) if label in chosen else attributes
    return tuple(Shown(label, attributes) for label, attributes in chosen.items())


def paths_read(tree: QueryTree) -> tuple[str, ...]:
    """The distinct fields and elements in a query."""
    return paths_in((tree.pattern, *(tree.select or ()), *tree.partition_by))


def paths_in(parts: Iterable[SyntaxNode]) -> tuple[str, ...]:
    """The distinct fields and elements in parts of queries."""
    nodes = (node for part in parts for node in walked(part, SyntaxNode.below))
    return _once(name for node in nodes for name in _names_in(node) if is_path(name))


def _names_in(node: SyntaxNode) -> tuple[str, ...]:
    """The attributes that a node itself names."""
    match node:
        case Attribute(name) | PartitionKey(name):
            return (name,)
        case SelectItem(attributes=names) | KeyBracket(alternatives=names):
            return names or ()
        case Call("contains", (Attribute(name), *_)):
            return (element_of(name, 1),)  # its kind is that of all elements
        case SomeElement(Attribute(name)):
            return (element_of(name, 1),)
        case _:
            return ()


def label_types(pattern: Pattern) -> dict[str, tuple[EventType, ...]]:
    """The labels that complex events of `pattern` can have, in order of appearance, and the types they mark.

    >>> from estero.language.tree.pattern import As, EventType
    >>> list(label_types(As(EventType("SELL"), "a")))
    ['SELL', 'a']
    """
    match pattern:
        case EventType(name=name):
            return {name: (pattern,)}
        case Keep(pattern=inner, labels=labels):
            return {label: group for label, group in label_types(inner).items() if label in labels}
        case As(pattern=inner, variable=variable):
            types = label_types(inner)
            return _merged((*types.items(), *((variable, group) for group in types.values())))
        case Rename(pattern=inner, old=old, new=new):
            renamed = label_types(inner).items()
            return _merged((new if label == old else label, group) for label, group in renamed)
        case _:
            return _merged(item for child in marking(pattern) for item in label_types(child).items())


def labels_together(pattern: Pattern) -> list[list[str]]:
    """For each type of events that `pattern` marks, where it stands: the labels that it gives them.

    >>> from estero.language.tree.pattern import As, Disjunction, EventType
    >>> labels_together(As(Disjunction((As(EventType("A"), "x"), EventType("B"))), "all"))
    [['A', 'x', 'all'], ['B', 'all']]
    """
    match pattern:
        case EventType(name=name):
            return [[name]]
        case Keep(pattern=inner, labels=labels):
            return [[label for label in group if label in labels] for group in labels_together(inner)]
        case As(pattern=inner, variable=variable):
            return [[*group, variable] for group in labels_together(inner)]
        case Rename(pattern=inner, old=old, new=new):
            return [[new if label == old else label for label in group] for group in labels_together(inner)]
        case _:
            return [group for child in marking(pattern) for group in labels_together(child)]


def _merged(groups: Iterable[tuple[str, tuple[EventType, ...]]]) -> dict[str, tuple[EventType, ...]]:
    types: dict[str, tuple[EventType, ...]] = {}
    for label, group in groups:
        types[label] = _once((*types.get(label, ()), *group))
    return types


def bound_names(pattern: Pattern) -> tuple[str, ...]:
    """All labels that are given anywhere in the pattern, also where they are dropped again."""
    names: dict[str, None] = {}
    for node in pattern.walk():
        match node:
            case EventType(name) | As(variable=name) | Rename(new=name):
                names[name] = None
            case _:
                pass
    return tuple(names)


def marking(pattern: Pattern) -> Iterable[Pattern]:
    """The parts whose events end up in the complex event: not those that must be absent."""
    match pattern:
        case Sequence(parts=parts):
            return parts
        case Unless(pattern=inner) | Iteration(pattern=inner):
            return (inner,)
        case _:
            return pattern.children()


def _once(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))
