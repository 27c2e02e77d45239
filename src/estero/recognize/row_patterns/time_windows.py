"""WITHIN: up to which row matches from each row may reach."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.errors import QueryError
from estero.language.row_patterns.expressions import EVALUATED, Names
from estero.language.row_patterns.scalars import ParsedScalar
from estero.recognize.row_patterns.keys import Key
from estero.recognize.row_patterns.statements import alias

_FARTHEST: Final = 2**62
"""What stands for a time that is NULL, which is before or after all others."""


def window_columns(names: Names, order: Sequence[Key], prefix: str, known: str) -> list[str]:
    """The time of each row and the latest of a match from there; with `known` also whether that is over."""
    within = names.clause.within
    if within is None:
        return []
    if not order:
        raise QueryError(
            "WITHIN needs ORDER BY a time",
            text=names.clause.text,
            span=within.span,
            found=within.text,
            hint="add ORDER BY with the column of the time",
        )
    time = order[0].value
    sign = "-" if order[0].descending else "+"
    length = within.text
    if names.dialect != EVALUATED:
        length = ParsedScalar(within, names.clause.text, names.dialect).tree.sql(EVALUATED)
    deadline = f"({time}) {sign} ({length})"
    return [
        alias(f"CASE WHEN TRUE THEN ({time}) ELSE {deadline} END", f"{prefix}time"),
        alias(deadline, f"{prefix}deadline"),
        *([alias(f"({deadline}) <= ({known})", f"{prefix}over")] if known else []),
    ]


def until_of(time: pa.Array, deadline: pa.Array, first: NDArray[np.int64], key: Key) -> NDArray[np.int64]:
    """Of each row the end of those that a match from there may have; partitions begin at rows `first`."""
    times, deadlines = (_ticks(values, deadline.type, key) for values in (time, deadline))
    until = np.empty(times.size, np.int64)
    for begin, end in pairwise(first.tolist()):
        until[begin:end] = begin + np.searchsorted(times[begin:end], deadlines[begin:end], "right")
    return until


def _ticks(values: pa.Array, kind: pa.DataType, key: Key) -> NDArray[Any]:
    """Times as numbers that rise in the order of the rows."""
    if pa.types.is_temporal(kind):
        values = pc.cast(pc.cast(values, kind), pa.int64())
    else:
        values = pc.cast(values, pa.float64())
    there = values.is_valid().to_numpy(zero_copy_only=False)
    ticks: NDArray[Any] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    rising = -ticks if key.descending else ticks
    return np.where(there, rising, -_FARTHEST if key.nulls_first else _FARTHEST)
