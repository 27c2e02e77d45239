"""WITHIN: the row up to which matches from each row may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.engine.row_patterns.windows import ends_of
from estero.errors import QueryError
from estero.language.row_patterns.expressions import EVALUATED, Names
from estero.language.row_patterns.scalars import ParsedScalar
from estero.recognize.row_patterns.keys import Key
from estero.recognize.row_patterns.ranks import float_ranks
from estero.recognize.row_patterns.statements import alias

_FARTHEST: Final = np.iinfo(np.int64).max
"""The value for a time that is NULL, which is before or after all others."""


def window_columns(names: Names, order: Sequence[Key], prefix: str, known: str) -> list[str]:
    """The time of each row and the latest of a match from there; with `known`, whether that is over, too."""
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
    deadline = f"({time}) {sign} ({length_of(names)})"
    return [
        alias(f"CASE WHEN TRUE THEN ({time}) ELSE {deadline} END", f"{prefix}time"),
        alias(deadline, f"{prefix}deadline"),
        *([alias(f"({deadline}) <= ({known})", f"{prefix}over")] if known else []),
    ]


def length_of(names: Names) -> str:
    """The SQL of the length of a window, which the clause has."""
    within = names.clause.within
    assert within is not None  # noqa: S101 - asked for where there is WITHIN
    if names.dialect == EVALUATED:
        return within.text
    return ParsedScalar(within, names.clause.text, names.dialect).tree.sql(EVALUATED)


def until_of(time: pa.Array, deadline: pa.Array, first: NDArray[np.int64], key: Key) -> NDArray[np.int64]:
    """The end of the rows that a match from each row may have; partitions begin at rows `first`."""
    times, deadlines = ticks_of(time, deadline, key)
    return ends_of(times, deadlines, first)


def ticks_of(time: pa.Array, deadline: pa.Array, key: Key) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times and deadlines as integers int64 in their order; NULL is after or before all."""
    time = time.cast(deadline.type)
    parts = [time, deadline]
    if not _has_integers(deadline.type):
        ranked = pc.rank(pa.concat_arrays(parts), tiebreaker="dense").cast(pa.int64())
        parts = [ranked.slice(0, len(time)), ranked.slice(len(time))]
    return _rising(parts[0], time.is_valid(), key), _rising(parts[1], deadline.is_valid(), key)


def _has_integers(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_floating(kind)
        or types.is_temporal(kind)
        or (types.is_integer(kind) and not types.is_uint64(kind))
    )


def _rising(values: pa.Array, valid: pa.Array, key: Key) -> NDArray[np.int64]:
    kind = values.type
    if pa.types.is_floating(kind):
        integers = float_ranks(pc.fill_null(values.cast(pa.float64()), 0.0))
    else:
        if pa.types.is_temporal(kind):
            values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        integers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    rising = -np.maximum(integers, -_FARTHEST) if key.descending else integers
    known = np.clip(rising, 1 - _FARTHEST, _FARTHEST - 1)  # what is infinite is not NULL
    return np.where(valid.to_numpy(zero_copy_only=False), known, -_FARTHEST if key.nulls_first else _FARTHEST)
