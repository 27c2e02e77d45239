"""Which events each of many conditions holds for, at the cost of those that it wants.

Most conditions of rules ask columns for constants or patterns, ``name = 'n17' AND path LIKE '%/etc/%'``. What
a batch says to all of these is worked out once; a condition then looks at the rows of its rarest part.
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
from estero.classify.column_names import WORD, attribute_in, bits_name
from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import Condition, Constant
from estero.recognize.batch_columns import numbers_of
from estero.recognize.rules.conditions.asked_conditions import NO_ROWS, Rows
from estero.recognize.rules.conditions.condition_forest import AskedBatch, ConditionForest, Part
from estero.recognize.rules.conditions.plain_conditions import type_names

FEWEST: Final = 8
SPARE: Final = 64
"""Conditions of rules that are gone may be so many more than the others."""


def is_worth_it(rules: int) -> bool:
    """Whether conditions of so many rules with the same keys are dispatched."""
    return rules >= FEWEST


class HeldRows(Protocol):
    """The rows of a batch for which each condition holds, worked out when somebody asks for them.

    Threads may ask at the same time.
    """

    def of(self, place: int) -> Rows:
        """The rows, each once, for which the condition at a place holds."""

    @property
    def may_hold(self) -> Mask:
        """Of the condition at each place, whether it may hold for some row."""


class Dispatcher:
    """Conditions by their predicates; each predicate keeps its place, and each type its bit.

    Conditions that are added together are a layer, and small layers are built together, so that one more
    condition costs the logarithm of their number on average, and not all of them.
    """

    def __init__(self, types: Iterable[str] = ()) -> None:
        self.places: dict[EventPredicate, int] = {}
        self.types: dict[str, int] = {name: 1 << place for place, name in enumerate(types)}
        """The bits of the types of events, ``1 << place``."""
        self._layers: list[_Layer] = []
        self._renamed: dict[tuple[str, ...], list[str]] = {}

    def has_bits_for(self, predicates: Iterable[EventPredicate]) -> bool:
        """Whether a word has bits for the types of predicates as well."""
        return len(dict.fromkeys((*self.types, *type_names(predicates)))) <= WORD

    def add(self, conditions: Mapping[EventPredicate, Condition]) -> None:
        """Adds conditions; those whose predicates are there stay as they are."""
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
        """Whether conditions are many more than this number."""
        return len(self.places) > 2 * number + SPARE

    def keep(self, asked: Collection[EventPredicate]) -> None:
        """Forgets the conditions of all other predicates; the places of these are others afterwards."""
        conditions = {
            one: condition
            for layer in self._layers
            for one, condition in layer.conditions.items()
            if one in asked
        }
        self.places.clear()
        self._layers = []
        self.add(conditions)

    def asked(self, events: pa.RecordBatch) -> Asked:
        """What events say to all conditions, whatever their types."""
        columns = BatchColumns(events.rename_columns(self._attributes(events.schema.names)))
        return [(layer, layer.forest.asked(columns)) for layer in self._layers]

    def asked_if_wanted(self, events: pa.RecordBatch) -> Asked | None:
        """The same; None where no condition holds for any event."""
        asked = self.asked(events)
        return asked if any(layer.may_hold(batch).any() for layer, batch in asked) else None

    def held(self, events: pa.RecordBatch, asked: Asked | None = None) -> HeldRows | None:
        """The rows of events, classified by types, for which each condition holds; None without any.

        They may have been `asked` before.
        """
        if not self._layers or not events.num_rows:
            return None
        if asked is None:
            asked = self.asked(events)
        return _Held(asked, numbers_of(events, bits_name(0)), sum(self.types.values()))

    def _attributes(self, columns: list[str]) -> list[str]:
        """The attributes that columns have, which are the same for all batches mostly."""
        attributes = self._renamed.get(tuple(columns))
        if attributes is None:
            attributes = list(map(attribute_in, columns))
            self._renamed = {tuple(columns): attributes, **dict(list(self._renamed.items())[:1])}
        return attributes


class _Wanted(NamedTuple):
    """What a condition asks of events of some types; None for all of them."""

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
    """For each condition the number of its part; behind all parts come none of the rows, and all."""

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
        return cls(begin, conditions, forest, wanted, np.array(parts, np.int64))

    def may_hold(self, asked: AskedBatch) -> Mask:
        """Of each condition, whether it may hold for some row."""
        may_hold: Mask = asked.at_most[self.parts] > 0
        return may_hold


Asked: TypeAlias = Sequence[tuple[_Layer, AskedBatch]]
"""What a batch says to the conditions of each layer."""


class _Held(HeldRows):
    """What layers say of a batch whose events have these `types`, of `all_types` that there are."""

    def __init__(self, asked: Asked, types: NDArray[np.int64], all_types: int) -> None:
        self._asked = asked
        self._begins = [layer.begin for layer, _ in asked]
        self._types = types
        self._all_types = all_types
        self._may_hold = np.concatenate([layer.may_hold(batch) for layer, batch in asked])
        self._held: dict[int, Rows] = {}
        self._of_types: dict[int, Rows] = {}

    @property
    def may_hold(self) -> Mask:
        return self._may_hold

    def of(self, place: int) -> Rows:
        rows = self._held.get(place)
        if rows is None:
            rows = self._held[place] = self._rows(place)
        return rows

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
