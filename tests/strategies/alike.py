"""Events and queries of `strategies` with names that differ in case only: answers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estero.events.sources import Source, open_source
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.queries.pattern_statement import PatternStatement
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from strategies.nested import renamed_tree
from strategies.patterns import SCHEMA, TYPES, to_table

_NAMES = {"n": "value", "k": "Value", "x": "VALUE", "s": "TYPE", "type": "type"}


def alike_tree(tree: QueryTree) -> QueryTree:
    """The same query of such events."""
    return renamed_tree(tree, _NAMES)


def alike_event(event: Event) -> Event:
    """The same event; its time has its own name."""
    attributes = {_NAMES.get(name, name): value for name, value in event.attributes.items()}
    return Event(event.type, attributes, event.time)


def alike_source(events: Sequence[Event]) -> Source:
    """Such events as a source."""
    given = {other: name for name, other in _NAMES.items()}
    plain = [
        Event(event.type, {given.get(name, name): value for name, value in event.attributes.items()})
        for event in events
    ]
    table = to_table(plain)
    table = table.rename_columns([_NAMES.get(name, name) for name in table.column_names])
    return open_source(table, EventLayout.of(type="type", time="time", time_unit="s"))


def alike_run(tree: QueryTree, events: Sequence[Event]) -> InProcessRun:
    """The run by the plan that the planner picks."""
    source = alike_source(events)
    shared = source.schema.shared or {}
    schema = replace(
        source.schema, types=dict.fromkeys(TYPES, shared), closed=True, time_unit=SCHEMA.time_unit
    )
    return InProcessRun(PatternStatement(tree).plan(replace(source.layout, schema=schema)), source)
