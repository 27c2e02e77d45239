"""A few events as values of Python, from which Arrow's columns are made only if a condition may want one."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import numbers_as, texts_of
from estero.system.cached_property import cached_property

MOST: Final = 64
"""The largest number of events that Python looks at faster than vector code, whose calls dominate."""

Values: TypeAlias = Sequence[Any]
"""The values of a column: numbers and times without NULL in an array, times in ticks; NULL is None."""


@dataclass(frozen=True, eq=False)
class FewEvents:
    """Events whose values, by column, all have the types of `schema`."""

    schema: pa.Schema
    columns: Sequence[Values]
    size: int

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.schema.names)}

    def column(self, name: str) -> Values | None:
        """The values of a column; None if there is no such column."""
        place = self._places.get(name)
        return None if place is None else self.columns[place]

    @cached_property
    def table(self) -> pa.Table:
        """The events as a table."""
        arrays = list(map(_array, self.columns, self.schema.types))
        return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=self.schema)])

    def ticks(self, name: str) -> NDArray[np.int64] | None:
        """The integers, or the times in ticks, of a column; None if there are others, or NULL."""
        column = self.column(name)
        if isinstance(column, array) and column.typecode == "q":
            return np.frombuffer(column, np.int64)
        return None


def _array(column: Values, kind: pa.DataType) -> pa.Array:
    if isinstance(column, array):
        return numbers_as(column, kind)
    if pa.types.is_string(kind) and None not in column:
        return texts_of(column, kind)
    if pa.types.is_timestamp(kind):
        return pa.array(column, pa.int64()).view(kind)
    return pa.array(column, kind)
