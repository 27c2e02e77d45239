"""Arrow files and streams in files: their columns and their batches, each of which is sound when it is used.

Arrow checks the metadata of a file; lengths, offsets and indices inside of columns it believes, and reading
past a buffer ends the process. So columns that are used are validated in full: ten million rows with a type
and a price take 0.12 s more. Files are read, not mapped: where another process cuts one short that is mapped,
a signal ends this one, and reading 440 MB takes 0.1 s more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa
import pyarrow.ipc

from estero.errors import DataError
from estero.events.files.partitions import Partitions
from estero.events.reading_errors import reading

_MAGIC = b"ARROW1"
"""How a file begins that has a footer; a stream does not."""
_CONTINUATION = -1
_IN_COLUMN = re.compile(r"In column (\d+): (.*)", re.DOTALL)

_Reader: TypeAlias = pa.RecordBatchFileReader | pa.RecordBatchStreamReader


def sound_batch(stream: pa.Buffer) -> pa.RecordBatch:
    """The one batch of a stream in memory; it is read as carefully as a file.

    Raises ValueError, or one of Arrow's errors, where it is damaged or there is none.
    """
    batch = next(_batches(_opened(pa.BufferReader(stream), threads=False)), None)
    if batch is None:
        raise ValueError("there is no batch")
    _check_valid(batch)
    return batch


def arrow_schema(file: str) -> pa.Schema:
    """The columns of an Arrow file; raises `DataError` where it is damaged."""
    with _sound(file), pa.OSFile(file) as opened:
        return _opened(opened).schema


def arrow_batches(file: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file; raises `DataError` at the first one that is damaged.

    With `columns` only these are read and validated, and they come in this order.
    """
    with _sound(file), pa.OSFile(file) as opened:
        reader = _opened(opened)
        if columns is not None:
            places = sorted(map(reader.schema.get_field_index, columns))
            opened.seek(0)
            reader = _opened(opened, places)
        for batch in _batches(reader):
            chosen = batch if columns is None else batch.select(columns)
            _check_valid(chosen)
            yield chosen


def arrow_stream(
    files: Sequence[str], schema: pa.Schema, partitions: Partitions | None, columns: Sequence[str] | None
) -> pa.RecordBatchReader:
    """The batches of several files with this schema; as `arrow_batches` with `columns`.

    The columns of `partitions` have one value for each file.
    """
    named = () if partitions is None else partitions.names
    asked = columns if columns is not None or not named else schema.names
    there = None if asked is None else [name for name in asked if name not in named]

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            values = {} if partitions is None else partitions.values(file)
            with reading(file):
                for batch in arrow_batches(file, there):
                    yield _with_values(batch, values, asked) if asked is not None and values else batch

    chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(chosen, batches())


def _with_values(
    batch: pa.RecordBatch, values: Mapping[str, pa.Scalar], names: Sequence[str]
) -> pa.RecordBatch:
    """The columns of these names, from the batch or with one value in all rows."""
    columns = [
        pa.repeat(values[name], batch.num_rows) if name in values else batch.column(name) for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _opened(file: pa.NativeFile, columns: list[int] | None = None, *, threads: bool = True) -> _Reader:
    """A reader of the columns with these numbers, or of all.

    With `threads` each column is uncompressed by one: a small batch is read before they are awake.
    """
    first = file.read(8)
    file.seek(0)
    footed = first.startswith(_MAGIC)
    if not footed and not _begins_a_stream(first, file.size()):
        raise ValueError("it is neither an Arrow file nor an Arrow stream")
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=threads)
    reader = (pa.ipc.open_file if footed else pa.ipc.open_stream)(file, options=options)
    try:
        _read_names(reader.schema)
    except UnicodeDecodeError as error:
        raise ValueError("the name of a column is not UTF-8") from error
    return reader


def _begins_a_stream(first: bytes, size: int) -> bool:
    """Whether the first bytes can be those of a stream: a length, or what stands before it."""
    if len(first) < 8:
        return False
    length = int.from_bytes(first[:4], "little", signed=True)
    return length == _CONTINUATION or 0 < length < size


def _read_names(of: pa.Schema | pa.DataType) -> None:
    for place in range(len(of.names) if isinstance(of, pa.Schema) else of.num_fields):
        field = of.field(place)
        _ = field.name  # which Arrow decodes here
        _read_names(field.type)


def _batches(reader: _Reader) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)


def _check_valid(batch: pa.RecordBatch) -> None:
    """Raises ValueError, or one of Arrow's errors, for a batch that is not sound."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        inside = _IN_COLUMN.match(str(error))
        if inside is None:
            raise
        name = batch.schema.names[int(inside[1])]
        raise ValueError(f"column {name!r}: {_reason_of(inside[2])}") from error


@contextmanager
def _sound(file: str) -> Iterator[None]:
    """Turns errors about the content of a file into one that calls it damaged; errors of the system stay."""
    try:
        yield
    except (ValueError, KeyError, OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"the Arrow file is damaged: {_reason_of(str(error))}", file=file) from error


def _reason_of(text: str) -> str:
    """Arrow's message, without its words for the kind of error."""
    return text.strip().partition("\n")[0].replace("Invalid: ", "").removeprefix("Invalid ")
