"""The key of PARTITION BY for the texts of a dictionary, as DuckDB has it for a column of texts."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import numbers_in
from estero.classify.remembered import Remembered
from estero.language.tree.schema import Kind

Halves = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_MOST_REMEMBERED: Final = 1 << 16
"""Texts of a dictionary whose keys are remembered; those of longer ones are worked out for each batch."""


def key_hashes(texts: pa.Array) -> Halves:
    """Both halves of the key of each text, in order: the keys that the classifying statement gives to them.

    Only DuckDB knows its hashes, so it is asked, for 1 ms; those of the last dictionaries are known.
    """
    if len(texts) > _MOST_REMEMBERED:
        return _asked(texts)
    return _known.of(texts, lambda: _asked(texts))


def _asked(texts: pa.Array) -> Halves:
    from estero.classify.columns import ColumnType, reference
    from estero.classify.duckdb_dialect import DUCKDB
    from estero.events.database import EVENTS
    from estero.events.prepared_statements import executed_over

    text = reference("text", ColumnType(Kind.STRING, "VARCHAR"))
    first, second = (half.sql("duckdb") for half in DUCKDB.hashes([(text, Kind.STRING)]))
    statement = f"SELECT {first} AS first, {second} AS second FROM {EVENTS}"
    halves = executed_over(pa.table({"text": texts}), statement)
    return numbers_in(halves.column("first")), numbers_in(halves.column("second"))


_known = Remembered[Halves]()
