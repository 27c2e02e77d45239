"""Events that an intake holds back: their columns, and their conversion when other rules are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of
from estero.classify.column_names import (
    BITS,
    HELD,
    HELD_ERA,
    HELD_RELEVANT,
    POSITION,
    VALUES,
    numbered,
    value_name,
)
from estero.events.streams.batch_classifier import Incoming
from estero.events.tables.shown_types import in_type, plain, plain_schema
from estero.plan.plan import Classification
from estero.recognize.excerpts import words_of_bits


def held_columns(events: pa.Schema) -> pa.Schema:
    """The columns of events that are held back: irrelevant ones, which only count, have NULLs."""
    nullable = [field.with_nullable(True) for field in plain_schema(events)]
    return pa.schema([*nullable, pa.field(HELD_RELEVANT, pa.bool_())])


def as_held(incoming: Incoming, rows: NDArray[np.int64]) -> pa.Table:
    """Some events of a batch, in the form in which they are held back."""
    places = np.full(incoming.events.num_rows, -1)
    places[incoming.classified.column(POSITION).to_numpy()] = np.arange(incoming.classified.num_rows)
    chosen = places[rows]
    relevant = chosen >= 0
    taken = incoming.classified.take(pa.array(chosen, mask=~relevant))
    columns = [*map(plain, taken.columns), pa.array(relevant)]
    return pa.Table.from_arrays(columns, names=[*incoming.classified.schema.names, HELD_RELEVANT])


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of events `held` back to the form for other plans.

    Bits that are needed `now` and were not `before` are 0, and values NULL. Events with neither only count.
    """

    held: pa.Table
    before: Classification | None = None
    now: Classification | None = None

    def to(self, schema: pa.Schema) -> pa.Table:
        """The events in these columns."""
        words = self._words(schema)
        return pa.Table.from_arrays([self._column(field, words) for field in schema], schema=schema)

    def _column(self, field: pa.Field, words: Mapping[str, pa.Array]) -> pa.ChunkedArray | pa.Array:
        name: str | None = field.name
        if self.now is None and field.name == HELD_RELEVANT:
            return pa.repeat(pa.scalar(False), self.held.num_rows)
        if field.name in words:
            return words[field.name]
        if field.name.startswith(VALUES):
            name = self._values().get(field.name)
        if name in self.held.column_names and (self.now is not None or field.name.startswith(HELD)):
            return in_type(self.held.column(name), field.type)
        return pa.nulls(self.held.num_rows, field.type)

    def _words(self, schema: pa.Schema) -> dict[str, pa.Array]:
        names = numbered(BITS, schema.names)
        if self.before is None or self.now is None:
            return {name: array_of(np.zeros(self.held.num_rows, np.int64)) for name in names}
        places = {predicate: place for place, predicate in enumerate(self.before.predicates)}
        before = [
            self.held.column(name).fill_null(0).to_numpy() for name in numbered(BITS, self.held.column_names)
        ]
        kept = [places.get(predicate) for predicate in self.now.predicates]
        return dict(zip(names, map(array_of, words_of_bits(before, kept, len(names))), strict=True))

    def _values(self) -> dict[str, str]:
        """The values that are compared now, by their previous names."""
        if self.before is None or self.now is None:
            return {}
        before = {value: value_name(place) for place, value in enumerate(self.before.values)}
        return {
            value_name(place): before[value] for place, value in enumerate(self.now.values) if value in before
        }


def in_era(classified: pa.RecordBatch, era: int, schema: pa.Schema) -> pa.RecordBatch:
    """Classified events with the era in which they came."""
    eras = array_of(np.full(classified.num_rows, era, np.int64))
    return classified.append_column(schema.field(HELD_ERA), eras)
