"""Which events each of many conditions holds for, at the cost of those that it wants.

Most conditions of rules ask columns for constants or patterns, ``name = 'n17' AND path LIKE '%/etc/%'``. What
a batch says to all of these is worked out once; a condition then looks at the rows of its rarest part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import attribute_in, event_column
from estero.classify.columns import ColumnType
from estero.classify.vectors.compile import NotPlainError
from estero.classify.vectors.conditions import Condition, Constant
from estero.classify.vectors.text_patterns import PatternColumns
from estero.language.tree.expressions import Attribute
from estero.language.tree.paths import column_of, is_path, steps_of
from estero.language.tree.schema import Kind
from estero.recognize.rules.asked_columns import NO_ROWS, Rows
from estero.recognize.rules.bounded_columns import FEWEST_BOUNDS
from estero.recognize.rules.condition_forest import AskedBatch, ConditionForest, Part

_KINDS: Final = frozenset({Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL})
"""Kinds of columns of which every value means here what it means in SQL."""


FEWEST: Final = 8


def is_worth_it(rules: int) -> bool:
    """Whether conditions of so many rules with the same keys are dispatched."""
    return rules >= FEWEST


class Wanted(NamedTuple):
    """What a condition asks of events of some types; None for all of them."""

    types: int
    condition: Part | None


class HeldRows(Protocol):
    """The rows of a batch for which each condition holds, worked out when somebody asks for them.

    Threads may ask at the same time.
    """

    def of(self, place: int) -> Rows:
        """The rows, each once, for which the condition at a place holds."""

    @property
    def may_hold(self) -> NDArray[np.bool_]:
        """Of the condition at each place, whether it may hold for some row."""


class _Held:
    """What a dispatcher, which knows `all_types`, says of a batch whose events have these `types`."""

    def __init__(
        self,
        asked: AskedBatch,
        types: NDArray[np.int64],
        wanted: Mapping[int, Wanted],
        all_types: int,
        may_hold: NDArray[np.bool_],
    ) -> None:
        self.may_hold = may_hold
        self._asked = asked
        self._types = types
        self._wanted = wanted
        self._all_types = all_types
        self._held: dict[int, Rows] = {}
        self._of_types: dict[int, Rows] = {}

    def of(self, place: int) -> Rows:
        rows = self._held.get(place)
        if rows is None:
            rows = self._held[place] = self._rows(place)
        return rows

    def _rows(self, place: int) -> Rows:
        wanted = self._wanted.get(place)
        if wanted is None:
            return NO_ROWS
        types, condition = wanted
        if condition is None:
            if types not in self._of_types:
                self._of_types[types] = np.flatnonzero(self._types & types)
            return self._of_types[types]
        if not self._asked.most[condition.number]:
            return NO_ROWS
        rows = condition.rows(self._asked)
        return rows if types == self._all_types else rows[(self._types[rows] & types) != 0]


class Dispatcher:
    """Conditions on one event; `types` are the bits of types, which may become more.

    The rows of a column that at least `fewest_bounds` different comparisons read are put in order.
    """

    def __init__(
        self,
        conditions: Mapping[EventPredicate, Condition],
        types: Mapping[str, int],
        fewest_bounds: int = FEWEST_BOUNDS,
    ) -> None:
        self._types = types
        asked = [condition for condition in conditions.values() if not isinstance(condition, Constant)]
        self._forest = ConditionForest(asked, fewest_bounds)
        roots = iter(self._forest.roots)
        self._wanted = {
            place: Wanted(
                sum(types[name] for name in predicate.types),
                None if isinstance(condition, Constant) else next(roots),
            )
            for place, (predicate, condition) in enumerate(conditions.items())
            if condition != Constant(holds=False)
        }
        never, always = self._forest.size, self._forest.size + 1
        parts = [never] * len(conditions)
        for place, wanted in self._wanted.items():
            parts[place] = always if wanted.condition is None else wanted.condition.number
        self._parts = np.array(parts, np.int64)
        self._renamed: tuple[list[str], list[str]] = ([], [])

    def held(self, batch: pa.RecordBatch, types: NDArray[np.int64]) -> HeldRows:
        """The rows of a batch for which each condition holds; `types` are the bits of events."""
        asked = self._forest.asked(batch.rename_columns(self._attributes(batch.schema.names)))
        may_hold = asked.at_most[self._parts] > 0
        return _Held(asked, types, self._wanted, sum(self._types.values()), may_hold)

    def _attributes(self, columns: list[str]) -> list[str]:
        """The attributes that columns have, which are the same for all batches mostly."""
        known, attributes = self._renamed
        if columns != known:
            attributes = list(map(attribute_in, columns))
            self._renamed = columns, attributes
        return attributes


def plain_conditions(
    predicates: Iterable[EventPredicate], columns: Mapping[str, ColumnType], events: pa.Schema
) -> dict[EventPredicate, Condition]:
    """The conditions of predicates, but for those that only SQL can evaluate.

    `columns` says how expressions read attributes, `events` are the columns of classified batches.
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
    """The names of the types that conditions ask for."""
    return list(dict.fromkeys(name for predicate in predicates for name in predicate.types))


def condition_columns(predicates: Iterable[EventPredicate]) -> list[str]:
    """The attributes that conditions read."""
    nodes = (predicate.condition for predicate in predicates if predicate.condition is not None)
    read = (node.name for condition in nodes for node in condition.walk() if isinstance(node, Attribute))
    return list(dict.fromkeys(read))


def _with_paths(columns: Mapping[str, ColumnType], events: pa.Schema) -> dict[str, ColumnType]:
    """How attributes are read, with those inside of structs and lists that have columns of their own."""
    types: dict[str, ColumnType] = dict(columns)
    for name in filter(is_path, map(attribute_in, events.names)):
        inner = columns.get(column_of(name))
        for step in steps_of(name):
            inner = None if inner is None else inner.step(step)
        if inner is not None:
            types[name] = inner
    return types


def _attributes(columns: Mapping[str, ColumnType], events: pa.Schema) -> pa.Schema:
    """The attributes among the columns of classified events, but for those of kinds that are SQL's.

    Lists of strings are there for what is asked of their elements.
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
