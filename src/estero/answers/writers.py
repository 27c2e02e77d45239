"""Answers as files: Parquet, Arrow, CSV and JSON lines, batch by batch in constant memory."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import date, datetime, time
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from estero.answers.answer_schema import MATCH_KEY, label_of, measure_of, partial_of, positions_schema
from estero.answers.output_file import forward_only, output_file
from estero.answers.report import with_positions
from estero.answers.shown_values import json_values, shown_values
from estero.arguments import shown
from estero.errors import DataError

ROWS_PER_GROUP = 131_072
BYTES_PER_GROUP = 64 << 20

Write = Callable[[BinaryIO, pa.Schema, Iterable[pa.RecordBatch]], None]


def format_in_name(path: Path, *, or_give: str = "format=") -> str:
    """The format given by the suffix of `path`; ValueError, with what to pass instead, if it gives none."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in SUFFIXES:
        known = ", ".join(f".{ending}" for ending in SUFFIXES)
        raise ValueError(f"{path.name} does not say its format: use one of {known}, or give {or_give}")
    return SUFFIXES[suffix]


def writer_of(name: str) -> Write:
    """The function that writes the format called `name`; ValueError if there is none."""
    if name not in FORMATS:
        raise ValueError(f"there is no format {name!r}: use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def write_answer(
    target: str | PathLike[str] | BinaryIO,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    format: str | None,
    positions: bool = False,
) -> int:
    """Writes the batches of an answer to a path (`output_file`) or an open binary file; returns its rows.

    The suffix of a path gives the format unless `format` does; `positions` writes the positions of events in
    place of their attributes. Raises ValueError for an unknown format, before anything is read.
    """
    opened: AbstractContextManager[BinaryIO]
    if isinstance(target, str | PathLike):
        write = writer_of(format_in_name(Path(target)) if format is None else format)
        opened = output_file(target)
    elif not hasattr(target, "write"):
        raise TypeError(f"an answer is written to a path or to a file open for bytes, not to {shown(target)}")
    elif format is None:
        raise ValueError("an open file does not say its format: give format=")
    else:
        write, opened = writer_of(format), nullcontext(forward_only(target))
    if positions:
        schema = positions_schema(schema)
        batches = (with_positions(batch, schema) for batch in batches)
    written = _Counted(batches)
    with opened as file:
        write(file, schema, written)
    return written.rows


class _Counted:
    """Batches, with the number of rows that have been read so far."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def write_parquet(file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """One Parquet file; small batches are gathered into row groups."""
    from pyarrow.parquet import ParquetWriter  # takes 20 ms, which other formats are spared

    try:
        writer = ParquetWriter(file, schema)
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"Parquet does not have the types of all columns: {error}",
            hint="name the attributes to show in SELECT, or write another format",
        ) from error
    with writer:
        for table in _gathered(schema, batches):
            writer.write_table(table)


def write_arrow(file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """One Arrow IPC file."""
    with pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_csv(file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """CSV with a header; the lists of events are JSON text, and durations, intervals and bytes as in JSON."""
    nested = [i for i, field in enumerate(schema) if pa.types.is_nested(field.type)]
    others = [i for i, field in enumerate(schema) if _is_text_in_json(field.type)]
    for i in (*nested, *others):
        schema = schema.set(i, pa.field(schema.field(i).name, pa.string()))
    with pa.csv.CSVWriter(file, schema) as writer:
        for batch in batches:
            columns = batch.columns
            for i in nested:
                columns[i] = _texts(json_bytes(value) for value in shown_values(columns[i]))
            for i in others:
                values = shown_values(columns[i])
                columns[i] = pa.array([None if v is None else _as_json(v) for v in values], pa.string())
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _is_text_in_json(kind: pa.DataType) -> bool:
    """Whether values of a type have a text of their own in JSON, and Arrow has none, or another, in CSV."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    is_bytes = is_bytes or pa.types.is_fixed_size_binary(kind)
    return bool(is_bytes or pa.types.is_duration(kind) or pa.types.is_interval(kind))


def write_jsonl(file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """One JSON object per line: ``start``, ``end``, times, partition columns, ``labels``.

    If the labels hold positions only, a line is ``{"start": …, "end": …, "labels": {"a": […]}}``. Rows of
    events have no labels, and neither have their lines.
    """
    labels = {i: label for i, label in enumerate(map(label_of, schema)) if label is not None}
    placed = bool(labels) and not any(pa.types.is_struct(schema.field(i).type.value_type) for i in labels)
    others = [i for i in range(len(schema)) if i not in labels]
    written = [i for i in others if i < 2 or not placed or _is_written_of_positions(schema.field(i))]
    flat = any(MATCH_KEY in (field.metadata or {}) for field in schema)
    for batch in batches:
        for values in zip(*map(json_values, batch.columns), strict=True):
            line = {schema.names[i]: values[i] for i in written}
            if not flat:
                line["labels"] = {label: values[i] for i, label in labels.items()}
            file.write(json_bytes(line) + b"\n")


def _is_written_of_positions(field: pa.Field) -> bool:
    """Whether lines with positions alone include a column: values of SELECT, and steps completed."""
    return measure_of(field) is not None or partial_of(field) is not None


FORMATS: dict[str, Write] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "arrow": write_arrow,
}
SUFFIXES = {
    "parquet": "parquet",
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "arrow": "arrow",
    "feather": "arrow",
}


def _gathered(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    rows, size, waiting = 0, 0, []
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
            yield pa.Table.from_batches(waiting, schema)
            rows, size, waiting = 0, 0, []
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _texts(encoded: Iterable[bytes]) -> pa.Array:
    """A column of strings; bytes that are not UTF-8 are kept as they are."""
    return pa.array(encoded, pa.binary()).cast(pa.string(), safe=False)


def json_bytes(value: Any) -> bytes:
    """JSON text; NaN and infinities, which JSON lacks, become null, and bytes that are not UTF-8 are kept."""
    try:
        text = _encoded(value)
    except ValueError:
        text = _encoded(_finite(value))
    return text.encode(errors="surrogateescape")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _as_json(value: Any) -> str:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


_encoded = json.JSONEncoder(default=_as_json, allow_nan=False, ensure_ascii=False).encode
