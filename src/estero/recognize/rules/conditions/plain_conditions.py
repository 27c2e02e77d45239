"""Conditions on one event that are evaluated on batches without SQL, and the attributes that they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import pyarrow as pa

from estero.automata.cea import EventPredicate
from estero.classify.column_names import attribute_in, event_column
from estero.classify.columns import ColumnType
from estero.classify.vectors.compile import NotPlainError
from estero.classify.vectors.conditions import Condition, Constant
from estero.classify.vectors.text_patterns import PatternColumns
from estero.language.tree.expressions import Attribute
from estero.language.tree.paths import column_of, is_path, steps_of
from estero.language.tree.schema import Kind

_KINDS: Final = frozenset({Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL})
"""The kinds of columns whose values mean here the same as in SQL."""


def plain_conditions(
    predicates: Iterable[EventPredicate], columns: Mapping[str, ColumnType], events: pa.Schema
) -> dict[EventPredicate, Condition]:
    """The conditions of predicates, except for those that only SQL can evaluate.

    `columns` has the forms in which expressions read attributes, and `events` are the columns of classified
    batches.
    """
    read = _with_paths(columns, events)
    plain = PatternColumns(read, _attributes(read, events))
    conditions: dict[EventPredicate, Condition] = {}
    for predicate in predicates:
        if predicate.condition is None:
            conditions[predicate] = Constant(holds=True)
            continue
        with suppress(NotPlainError):
            conditions[predicate] = plain.condition(predicate.condition)
    return conditions


def type_names(predicates: Iterable[EventPredicate]) -> list[str]:
    """The names of the types in conditions."""
    return list(dict.fromkeys(name for predicate in predicates for name in predicate.types))


def condition_columns(predicates: Iterable[EventPredicate]) -> list[str]:
    """The attributes that conditions read."""
    nodes = (predicate.condition for predicate in predicates if predicate.condition is not None)
    read = (node.name for condition in nodes for node in condition.walk() if isinstance(node, Attribute))
    return list(dict.fromkeys(read))


def _with_paths(columns: Mapping[str, ColumnType], events: pa.Schema) -> dict[str, ColumnType]:
    """The forms of attributes, including those inside of structs and lists that have columns of their own."""
    types: dict[str, ColumnType] = dict(columns)
    for name in filter(is_path, map(attribute_in, events.names)):
        inner = columns.get(column_of(name))
        for step in steps_of(name):
            inner = None if inner is None else inner.step(step)
        if inner is not None:
            types[name] = inner
    return types


def _attributes(columns: Mapping[str, ColumnType], events: pa.Schema) -> pa.Schema:
    """The attributes among the columns of classified events, except for kinds that only SQL reads.

    They include lists of strings, for conditions on their elements.
    """
    fields = []
    for name, column in columns.items():
        place = events.get_field_index(event_column(name))
        if place < 0:
            continue
        field = events.field(place).with_name(name)
        is_list = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
        of_texts = is_list and (
            pa.types.is_string(field.type.value_type) or pa.types.is_large_string(field.type.value_type)
        )
        if of_texts or (column.kind in _KINDS and not pa.types.is_uint64(field.type)):
            fields.append(field)
    return pa.schema(fields)
