"""The complex events of many rules as one table, with the columns that all of them have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from itertools import groupby, pairwise
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_columns import AnswerColumns
from estero.answers.output_file import output_file
from estero.answers.report import positions_in
from estero.answers.shown_values import json_values
from estero.answers.writers import json_bytes
from estero.classify.arrays import array_of, texts_of
from estero.classify.remembered import Remembered
from estero.classify.vectors.taking import FEW_ROWS
from estero.events.tables.shown_types import in_type

_POSITIONS = pa.list_(pa.field("item", pa.int64(), nullable=False))


class RuleTable(NamedTuple):
    """Rows of one table that belong to some rules: the index in `names` of each row's rule, int64[rows]."""

    names: tuple[str, ...]
    rules: NDArray[np.int64]
    rows: pa.RecordBatch


def rule_schema(time: pa.DataType | None, events: pa.StructType | None = None) -> pa.Schema:
    """The columns of the common table; `time` is the type of times, None if there are none.

    Where `events` says what is shown of an event, this stands in the place of positions. It is remembered,
    by comparing types: their hash takes longer.
    """
    return _schemas.of((time, events), lambda: _schema(time, events))


_schemas: Final = Remembered[pa.Schema]()


def _schema(time: pa.DataType | None, events: pa.StructType | None) -> pa.Schema:
    """See `rule_schema`."""
    fields = [("rule", pa.string())]
    if events is None:
        fields += [("start", pa.int64()), ("end", pa.int64())]
    if time is not None:
        fields += [("start_time", time), ("end_time", time)]
    fields.append(("keys", pa.map_(pa.string(), pa.string())))
    if events is None:
        return pa.schema([*fields, ("positions", _MAP)])
    shown = pa.list_(pa.field("item", events, nullable=False))
    return pa.schema([*fields, (EVENTS, pa.map_(pa.string(), shown))])


EVENTS: Final = "events"
"""The column of the common table that shows events where there are no positions."""
MAPS: Final = frozenset({"keys", "positions"})
_MAP = pa.map_(pa.string(), _POSITIONS)


def common_rows(table: RuleTable, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a table of some rules in the columns of the common one.

    If these have events, the labels of the table show the fields of these, and their positions.
    """
    layout, rows = _layout_of(table.rows.schema), table.rows
    columns = [names_of(table.names, table.rules)]
    if EVENTS not in schema.names:
        columns += [rows.column(0), rows.column(1)]
    if layout.has_time:
        columns += [rows.column(2), rows.column(3)]
    keys = {name: text_of(rows.column(place)) for name, place in layout.partition.items()}
    of_labels = schema.field(EVENTS if EVENTS in schema.names else "positions").type
    labels = {
        label: _listed(rows.column(place), of_labels.item_type) for label, place in layout.labels.items()
    }
    columns.append(mapped(keys, rows.num_rows, schema.field("keys").type))
    columns.append(mapped(labels, rows.num_rows, of_labels))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _layout_of(schema: pa.Schema) -> AnswerColumns:
    """Where the columns of an answer are, which is the same for most tables that follow one another."""
    return _layouts.of(schema, lambda: AnswerColumns.of(schema))


_layouts: Final = Remembered[AnswerColumns](same=lambda one, other: one.equals(other, check_metadata=True))


def names_of(names: Sequence[str], rules: NDArray[np.int64]) -> pa.Array:
    """The name of the rule of each row."""
    if len(rules) < len(names):
        return texts_of([names[rule] for rule in rules.tolist()], pa.string())
    return pa.array(names, pa.string()).take(array_of(rules))


def _listed(label: pa.ListArray, kind: pa.ListType) -> pa.Array:
    """The events of a label as lists of this kind: their positions, or the fields shown before these."""
    values = positions_in(label.values)
    if pa.types.is_struct(kind.value_type):
        shown = label.values.flatten()[: kind.value_type.num_fields]
        fields = list(kind.value_type)
        columns = [in_type(column, field.type) for column, field in zip(shown, fields, strict=True)]
        values = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(label.offsets, values, type=kind)


def by_rule(tables: Iterable[RuleTable]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of tables by rule, in their original order: a slice of one table for each set of names."""
    for names, own in groupby(tables, lambda table: table.names):
        same = list(own)
        rules = np.concatenate([table.rules for table in same])
        order = np.argsort(rules, kind="stable")
        rows = pa.Table.from_batches([table.rows for table in same]).take(array_of(order))
        bounds = np.searchsorted(rules, np.arange(len(names) + 1), sorter=order).tolist()
        for name, (start, end) in zip(names, pairwise(bounds), strict=True):
            if start < end:
                yield name, rows.slice(start, end - start)


def rows_of(table: RuleTable, rule: str) -> pa.RecordBatch:
    """The rows of one rule; none if the table does not have that rule."""
    places = [place for place, name in enumerate(table.names) if name == rule]
    wanted = np.isin(table.rules, places)
    return table.rows if wanted.all() else table.rows.filter(array_of(wanted))


def with_texts(schema: pa.Schema) -> pa.Schema:
    """The schema with maps as JSON texts, and with plain instead of dictionary-encoded texts."""
    return pa.schema(
        [
            field.with_type(pa.string())
            if pa.types.is_map(field.type) or pa.types.is_dictionary(field.type)
            else field
            for field in schema
        ]
    )


def with_json(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the common table in the columns of `with_texts`."""
    columns = [
        pa.array([json.dumps(dict(value), ensure_ascii=False) for value in column.to_pylist()], pa.string())
        if pa.types.is_map(column.type)
        else in_type(column, field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def write_lines(target: str | PathLike[str] | BinaryIO, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes rows whose maps are already JSON as JSON lines, and returns their number."""
    written = 0
    with nullcontext(target) if not isinstance(target, str | PathLike) else output_file(Path(target)) as file:
        for batch in batches:
            maps = [name in MAPS for name in batch.schema.names]
            for row in zip(*map(json_values, batch.columns), strict=True):
                named = zip(batch.schema.names, maps, row, strict=True)
                values = (
                    f"{json.dumps(name)}:{value if is_map else json_bytes(value).decode()}"
                    for name, is_map, value in named
                )
                file.write(f"{{{','.join(values)}}}\n".encode())
                written += 1
    return written


def mapped(columns: dict[str, pa.Array], rows: int, kind: pa.DataType) -> pa.Array:
    """A map in each row, from the names of some columns to their values in that row."""
    if not columns:
        return pa.MapArray.from_arrays(
            array_of(np.zeros(rows + 1, np.int32)), pa.array([], kind.key_type), pa.array([], kind.item_type)
        ).cast(kind)
    size = len(columns)
    offsets = array_of(np.arange(0, rows * size + 1, size, dtype=np.int32))
    names = _texts(*columns)
    items = kind.item_type
    parts = [column if column.type.equals(items) else column.cast(items) for column in columns.values()]
    values = parts[0] if size == 1 else pa.concat_arrays(parts)
    if rows != 1:
        names = names.take(array_of(np.tile(np.arange(size), rows)))
    if rows != 1 and size != 1:
        values = values.take(array_of(np.arange(size * rows).reshape(size, rows).T.ravel()))
    return pa.MapArray.from_arrays(offsets, names, values, type=kind)


@lru_cache(64)
def _texts(*texts: str) -> pa.Array:
    """Some texts as an array."""
    return pa.array(texts, pa.string())


def text_of(values: pa.Array) -> pa.Array:
    """The values of a key as texts; few integers by Python, as a cast takes longer."""
    if pa.types.is_integer(values.type) and len(values) <= FEW_ROWS and not values.null_count:
        return texts_of(list(map(str, values.to_pylist())), pa.string())
    return values if pa.types.is_string(values.type) else pc.cast(values, pa.string())
