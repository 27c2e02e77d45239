"""Conditions of rules that come while events are read, dispatched as if they had always been there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD
from estero.classify.vectors.conditions import Condition
from estero.recognize.rules.asked_columns import Rows
from estero.recognize.rules.dispatch import Dispatcher, HeldRows, type_names

SPARE: Final = 64
"""Conditions of rules that are gone may be so many more than the others."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """Conditions that were built together, the first of which has the place `begin`."""

    begin: int
    conditions: Mapping[EventPredicate, Condition]
    dispatcher: Dispatcher


class GrowingDispatch:
    """Conditions by their predicates; each predicate keeps its place, and each type its bit.

    New ones are a layer of their own, and small layers are built together, so that one more condition costs
    the logarithm of their number on average, and not all of them.
    """

    def __init__(self, types: Sequence[str] = ()) -> None:
        self.places: dict[EventPredicate, int] = {}
        self.types: dict[str, int] = {name: 1 << place for place, name in enumerate(types)}
        """The bits of the types of events, ``1 << place``."""
        self._layers: list[_Layer] = []

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
        self._layers.append(_Layer(begin, new, Dispatcher(new, self.types)))

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

    def held(self, batch: pa.RecordBatch, types: NDArray[np.int64]) -> HeldRows:
        """As `Dispatcher.held`."""
        layers = [layer.dispatcher.held(batch, types) for layer in self._layers]
        if len(layers) == 1:
            return layers[0]
        return _HeldOfLayers([layer.begin for layer in self._layers], layers)


@dataclass(frozen=True, slots=True)
class _HeldOfLayers:
    """What several dispatchers say of a batch, whose conditions begin at ascending places."""

    begins: Sequence[int]
    layers: Sequence[HeldRows]

    def of(self, place: int) -> Rows:
        layer = bisect_right(self.begins, place) - 1
        return self.layers[layer].of(place - self.begins[layer])

    @property
    def may_hold(self) -> NDArray[np.bool_]:
        return np.concatenate([layer.may_hold for layer in self.layers])
