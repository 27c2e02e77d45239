"""Events and queries of `strategies` with attributes inside of structs and lists: answers are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from estero.events.sources import Source, open_source
from estero.language.tree.expressions import Attribute
from estero.language.tree.nodes import SyntaxNode, with_changed
from estero.language.tree.paths import element_of, field_of
from estero.language.tree.pattern import PartitionKey
from estero.language.tree.query import KeyBracket, QueryTree
from estero.language.tree.schema import EventLayout, Schema
from estero.plan.plan import Layout
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from strategies.patterns import SCHEMA, TYPES

_INNER = field_of("a struct", "In Side")
_FIELDS = {
    "n": field_of("a struct", "n"),
    "x": field_of(_INNER, "x"),
    "s": field_of(_INNER, "type"),
    "k": field_of("a struct", "K"),
}
_ELEMENTS = {"n": element_of("ns", 1), "x": element_of(field_of("a struct", "xs"), 3)}
TABLE = pa.schema(
    [
        ("type", pa.string()),
        ("time", pa.int64()),
        (
            "a struct",
            pa.struct(
                [
                    ("n", pa.int32()),
                    ("K", pa.int64()),
                    ("In Side", pa.struct([("x", pa.float64()), ("type", pa.string())])),
                    ("xs", pa.list_(pa.float64())),
                ]
            ),
        ),
        ("ns", pa.list_(pa.int64())),
    ]
)


def nested_tree(tree: QueryTree) -> QueryTree:
    """The same query of nested events; numbers that are no keys are elements of lists."""
    keys = set(_keys(tree.pattern)) | {name for each in tree.partition_by for name in each.alternatives}
    return renamed_tree(tree, _FIELDS | {name: path for name, path in _ELEMENTS.items() if name not in keys})


def renamed_tree(tree: QueryTree, names: Mapping[str, str]) -> QueryTree:
    """The same query of events whose attributes have other names."""

    def changed(node: Any) -> Any:
        match node:
            case Attribute(name, variable):
                return Attribute(names.get(name, name), variable)
            case PartitionKey(name, variable):
                return PartitionKey(names.get(name, name), variable)
            case KeyBracket(alternatives):
                return KeyBracket(tuple(names.get(name, name) for name in alternatives))
            case SyntaxNode():
                return with_changed(node, changed)
            case _:
                return node

    select = None if tree.select is None else tuple(map(changed, tree.select))
    keys_inside = tuple(map(changed, tree.partition_by))
    return replace(tree, pattern=changed(tree.pattern), select=select, partition_by=keys_inside)


def _keys(node: SyntaxNode) -> list[str]:
    own = [node.attribute] if isinstance(node, PartitionKey) else []
    return own + [name for each in node.below() for name in _keys(each)]


def nested_event(event: Event) -> Event:
    """An event with its attributes inside of others, which are NULL where all of them are."""
    n, x, s, k = (event.attributes[name] for name in "nxsk")
    inner = None if x is None and s is None else {"x": x, "type": s}
    xs = [0.5, None] if x is None else [None, 1.0, x]
    whole = {"n": n, "K": k, "In Side": inner, "xs": xs}
    struct = None if (n, x, s, k) == (None,) * 4 else whole
    ns = (None if event.time else []) if n is None else [n, 7]
    return Event(event.type, {"time": event.time, "a struct": struct, "ns": ns}, event.time)


def nested_table(events: Sequence[Event]) -> pa.Table:
    """Nested events as a table."""
    return pa.Table.from_pylist([{"type": each.type, **each.attributes} for each in events], schema=TABLE)


def nested_source(events: Sequence[Event]) -> Source:
    """Nested events as a source."""
    return open_source(nested_table(events), EventLayout.of(type="type", time="time", time_unit="s"))


def nested_layout() -> Layout:
    """How they are laid out."""
    layout = nested_source([]).layout
    shared = layout.schema.shared or {}
    schema = Schema(
        dict.fromkeys(TYPES, shared), shared, closed=True, time="time", time_unit=SCHEMA.time_unit
    )
    return replace(layout, schema=replace(schema, nested=layout.schema.nested))


def nested_run(tree: QueryTree, events: Sequence[Event]) -> InProcessRun:
    """The run by the plan that the planner picks."""
    return InProcessRun(plan_of(tree, nested_layout()), nested_source(events))
