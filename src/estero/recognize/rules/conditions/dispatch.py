"""The events for which each of many conditions holds, at a cost that depends on the conditions that hold.

Most conditions of rules compare columns with constants or patterns, ``name = 'n17' AND path LIKE '%/etc/%'``.
These are evaluated once for all conditions; a condition is then evaluated on the rows of its rarest part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD, attribute_in, bits_name, event_column
from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import Condition, Constant
from estero.engine.held_conditions import NO_CODES, HeldConditions, held_conditions
from estero.events.streams.few_events import FewEvents
from estero.recognize.batch_columns import numbers_of
from estero.recognize.rules.conditions.asked_conditions import NO_ROWS, AskedValues, Rows
from estero.recognize.rules.conditions.condition_forest import Asked, AskedBatch, ConditionForest, Part
from estero.recognize.rules.conditions.plain_conditions import type_names
from estero.recognize.rules.conditions.required_values import Required, required_by_some

FEWEST: Final = 8
SPARE: Final = 64
"""The number of conditions of removed rules that may exceed that of all others."""


def is_worth_it(rules: int) -> bool:
    """Whether the conditions of this number of rules with the same keys are dispatched."""
    return rules >= FEWEST


class HeldRows(Protocol):
    """The rows of a batch for which each condition holds, computed on demand.

    It may be used by several threads.
    """

    def of(self, place: int) -> Rows:
        """The rows, without duplicates, for which the condition at a place holds."""

    @property
    def may_hold(self) -> Mask:
        """Whether the condition at each place may hold for some row."""

    def by_row(self, places: tuple[int, ...]) -> HeldConditions:
        """The conditions at some places by row, numbered in the order of places; computed once."""


class Dispatcher:
    """Conditions by their predicates; each predicate keeps its place, and each type its bit.

    Conditions that are added together are a layer, and small layers are merged, so that adding a condition
    costs the logarithm of their number on average.
    """

    def __init__(self, types: Iterable[str] = ()) -> None:
        self.places: dict[EventPredicate, int] = {}
        self.types: dict[str, int] = {name: 1 << place for place, name in enumerate(types)}
        """The bits of the types of events, ``1 << place``."""
        self._layers: list[_Layer] = []
        self._renamed: dict[tuple[str, ...], list[str]] = {}

    def has_bits_for(self, predicates: Iterable[EventPredicate]) -> bool:
        """Whether a word has bits for the types of further predicates."""
        return len(dict.fromkeys((*self.types, *type_names(predicates)))) <= WORD

    def add(self, conditions: Mapping[EventPredicate, Condition]) -> None:
        """Adds conditions; those of known predicates stay as they are."""
        new = {one: condition for one, condition in conditions.items() if one not in self.places}
        if not new:
            return
        for name in type_names(new):
            self.types.setdefault(name, 1 << len(self.types))
        begin = len(self.places)
        self.places.update({one: begin + place for place, one in enumerate(new)})
        while self._layers and len(self._layers[-1].conditions) <= 2 * len(new):
            last = self._layers.pop()
            begin, new = last.begin, {**last.conditions, **new}
        self._layers.append(_Layer.of(begin, new, self.types))

    def has_many_beside(self, number: int) -> bool:
        """Whether there are many more conditions than this number."""
        return len(self.places) > 2 * number + SPARE

    def keep(self, asked: Collection[EventPredicate]) -> None:
        """Drops the conditions of all predicates but these, whose places change."""
        conditions = {
            one: condition
            for layer in self._layers
            for one, condition in layer.conditions.items()
            if one in asked
        }
        self.places.clear()
        self._layers = []
        self.add(conditions)

    def asked(self, events: pa.RecordBatch) -> AskedLayers:
        """The results of all layers on events, whatever their types."""
        columns = BatchColumns(events.rename_columns(self._attributes(events.schema.names)))
        return [(layer, layer.forest.asked(columns)) for layer in self._layers]

    def asked_if_wanted(self, events: pa.RecordBatch) -> AskedLayers | None:
        """The results of all layers; None if no condition holds for any event."""
        asked = self.asked(events)
        return asked if any(layer.may_hold(batch).any() for layer, batch in asked) else None

    def may_want(self, events: FewEvents) -> bool:
        """Whether a condition may hold for one of a few events, by the values that conditions require."""
        return any(layer.may_want(events) for layer in self._layers)

    def held(self, events: pa.RecordBatch, asked: AskedLayers | None = None) -> HeldRows | None:
        """The rows of events, classified by type, for which each condition holds; None without conditions.

        `asked` are the results of `Dispatcher.asked` if they are known.
        """
        if not self._layers or not events.num_rows:
            return None
        if asked is None:
            asked = self.asked(events)
        return _Held(asked, numbers_of(events, bits_name(0)), sum(self.types.values()))

    def _attributes(self, columns: list[str]) -> list[str]:
        """The attributes of columns, which are usually the same for all batches."""
        attributes = self._renamed.get(tuple(columns))
        if attributes is None:
            attributes = list(map(attribute_in, columns))
            self._renamed = {tuple(columns): attributes, **dict(list(self._renamed.items())[:1])}
        return attributes


class _Asking(NamedTuple):
    """A condition: its place among those on a column, its number, and the types of its events."""

    place: int
    number: int
    types: int


class _Wanted(NamedTuple):
    """The condition on events of some types; None for all of them."""

    types: int
    condition: Part | None


@dataclass(frozen=True, slots=True)
class _Layer:
    """Conditions that were built together, the first of which has the place `begin`."""

    begin: int
    conditions: Mapping[EventPredicate, Condition]
    forest: ConditionForest
    wanted: Sequence[_Wanted]
    parts: NDArray[np.int64]
    """The number of the part of each condition; after all parts come one without rows, and one with all."""
    required: Required | None
    """The values that some condition requires, by columns of events; None if one requires none."""

    @classmethod
    def of(
        cls, begin: int, conditions: Mapping[EventPredicate, Condition], types: Mapping[str, int]
    ) -> _Layer:
        """The layer of conditions on events whose `types` have these bits."""
        asked = [condition for condition in conditions.values() if not isinstance(condition, Constant)]
        forest = ConditionForest(asked)
        roots = iter(forest.roots)
        wanted, parts = [], []
        for predicate, condition in conditions.items():
            own = sum(types[name] for name in predicate.types)
            if isinstance(condition, Constant):
                wanted.append(_Wanted(own if condition.holds else 0, None))
                parts.append(forest.size + condition.holds)
            else:
                root = next(roots)
                wanted.append(_Wanted(own, root))
                parts.append(root.number)
        required = required_by_some(conditions.values())
        if required is not None:
            required = {event_column(name): values for name, values in required.items()}
        return cls(begin, conditions, forest, wanted, np.array(parts, np.int64), required)

    def may_want(self, events: FewEvents) -> bool:
        """See `Dispatcher.may_want`."""
        if self.required is None:
            return True
        for name, values in self.required.items():
            column = events.column(name)
            if column is None or not values.isdisjoint(column):
                return True
        return False

    def may_hold(self, asked: AskedBatch) -> Mask:
        """Whether each condition may hold for some row."""
        may_hold: Mask = asked.at_most[self.parts] > 0
        return may_hold


AskedLayers: TypeAlias = Sequence[tuple[_Layer, AskedBatch]]
"""What a batch says to the conditions of each layer."""


class _Held(HeldRows):
    """The results of layers on a batch whose events have these `types`, of all the types `all_types`."""

    def __init__(self, asked: AskedLayers, types: NDArray[np.int64], all_types: int) -> None:
        self._asked = asked
        self._begins = [layer.begin for layer, _ in asked]
        self._types = types
        self._all_types = all_types
        self._may_hold = np.concatenate([layer.may_hold(batch) for layer, batch in asked])
        self._held: dict[int, Rows] = {}
        self._of_types: dict[int, Rows] = {}
        self._by_row: dict[tuple[int, ...], HeldConditions] = {}

    @property
    def may_hold(self) -> Mask:
        return self._may_hold

    def of(self, place: int) -> Rows:
        rows = self._held.get(place)
        if rows is None:
            rows = self._held[place] = self._rows(place)
        return rows

    def by_row(self, places: tuple[int, ...]) -> HeldConditions:
        by_row = self._by_row.get(places)
        if by_row is None:
            by_row = self._by_row[places] = self._computed(places)
        return by_row

    def _computed(self, places: tuple[int, ...]) -> HeldConditions:
        """See `by_row`; conditions that only compare one column with constants need no rows of their own."""
        asking: dict[tuple[int, int], list[_Asking]] = {}
        numbers = np.flatnonzero(self._may_hold[list(places)]).tolist()
        for number in numbers:
            layer = bisect_right(self._begins, places[number]) - 1
            types, condition = self._asked[layer][0].wanted[places[number] - self._begins[layer]]
            if isinstance(condition, Asked):
                asking.setdefault((layer, condition.column), []).append(
                    _Asking(condition.place, number, types)
                )
        codes, coded = NO_CODES, set[int]()
        for layer, column in sorted(asking, key=lambda key: -len(asking[key])):
            values, own = self._asked[layer][1].values[column], asking[layer, column]
            if isinstance(values, AskedValues) and (of_column := values.asked_codes(*zip(*own, strict=True))):
                codes, coded = of_column, {one.number for one in own}
                break
        others = [number for number in numbers if number not in coded]
        return held_conditions(self._types, codes, [self.of(places[number]) for number in others], others)

    def _rows(self, place: int) -> Rows:
        layer, batch = self._asked[bisect_right(self._begins, place) - 1]
        types, condition = layer.wanted[place - layer.begin]
        if condition is None:
            if types not in self._of_types:
                self._of_types[types] = np.flatnonzero(self._types & types)
            return self._of_types[types]
        if not batch.most[condition.number]:
            return NO_ROWS
        rows = condition.rows(batch)
        return rows if types == self._all_types else rows[(self._types[rows] & types) != 0]
