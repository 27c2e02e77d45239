"""Arrow files and streams in files: their columns and their batches, each of which is sound when it is used.

Arrow believes the lengths, offsets and indices in a file, and reading past a buffer ends the process. So
messages are checked before Arrow reads them (`arrow_messages`), and columns that are used are validated in
full: ten million rows with a type and a price take 0.12 s more. Files are read, not mapped: if another
process cuts one short while it is mapped, a signal ends this one, and reading 440 MB takes 0.1 s more.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from estero.errors import DataError
from estero.events.files.arrow_messages import (
    DICTIONARY,
    MAGIC,
    NOT_THERE,
    RECORDS,
    DamagedError,
    Message,
    Pieces,
    blocks,
    dictionary_types,
)
from estero.events.files.partitions import Partitions
from estero.events.reading_errors import reading

_IN_COLUMN = re.compile(r"In column (\d+): (.*)", re.DOTALL)


def arrow_schema(file: str) -> pa.Schema:
    """The columns of an Arrow file; raises `DataError` where it is damaged."""
    with _sound(file), pa.OSFile(file) as opened, Path(file).open("rb") as beside:
        return _open(opened, Pieces(beside)).schema


def arrow_batches(file: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file; raises `DataError` at the first one that is damaged.

    With `columns` only these are read and validated, and they come in this order.
    """
    with _sound(file), pa.OSFile(file) as opened, Path(file).open("rb") as beside:
        pieces = Pieces(beside)
        reader = _open(opened, pieces)
        schema = reader.schema
        if columns is not None:
            opened.seek(0)
            reader = _open(opened, pieces, sorted(map(schema.get_field_index, columns)))
        footed = isinstance(reader, pa.ipc.RecordBatchFileReader)
        for batch in (_of_file if footed else _of_stream)(reader, pieces, schema):
            chosen = batch if columns is None else batch.select(columns)
            _validate(chosen)
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


def sound_batch(stream: pa.Buffer) -> pa.RecordBatch:
    """The one batch of a stream in memory; it is read as carefully as a file.

    Raises ValueError, or one of Arrow's errors, where it is damaged or there is none.
    """
    pieces = Pieces(pa.BufferReader(stream))
    reader = _open(pa.BufferReader(stream), pieces, threads=False)
    batch = next(_of_stream(reader, pieces, reader.schema), None)
    if batch is None:
        raise DamagedError("there is no batch")
    _validate(batch)
    return batch


def _open(
    opened: pa.NativeFile, pieces: Pieces, included: list[int] | None = None, *, threads: bool = True
) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """What reads the columns with these numbers, or all.

    With `threads` each column is uncompressed by one: a small batch is read before they are awake.
    """
    footed = pieces.size >= len(MAGIC) and pieces.read(0, len(MAGIC)) == MAGIC
    if not footed:
        if not pieces.begins_a_stream():
            raise DamagedError("it begins neither like a file nor like a stream of Arrow")
        pieces.message(0)  # Arrow asks for as much memory as it says
    options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=threads)
    reader = (pa.ipc.open_file if footed else pa.ipc.open_stream)(opened, options=options)
    try:
        _read_names(reader.schema)
    except UnicodeDecodeError as error:
        raise DamagedError("the name of a column is not UTF-8") from error
    return reader


def _read_names(of: pa.Schema | pa.DataType) -> None:
    for place in range(len(of.names) if isinstance(of, pa.Schema) else of.num_fields):
        field = of.field(place)
        _ = field.name  # which Arrow decodes here
        _read_names(field.type)


def _of_file(reader: pa.RecordBatchFileReader, pieces: Pieces, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches; `schema` has all columns of the file."""
    footer = pieces.footer()
    columns = footer.table(1)
    if columns is None:
        raise DamagedError("its footer names no columns")
    types = dictionary_types(columns, schema)
    for offset in blocks(footer, DICTIONARY):
        pieces.check_dictionary(_there(pieces, offset, DICTIONARY), types)
    for number, offset in enumerate(blocks(footer, RECORDS)):
        message = _there(pieces, offset, RECORDS)
        pieces.check_records(message.header, message)
        yield reader.get_batch(number)


def _there(pieces: Pieces, offset: int, kind: int) -> Message:
    message = pieces.message(offset)
    if message is None or message.kind != kind:
        raise DamagedError("its footer names a message that is not there")
    return message


def _of_stream(
    reader: pa.RecordBatchStreamReader, pieces: Pieces, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """As `_of_file`; those messages are checked first that the reader needs for the next one."""
    message = pieces.message(0)
    if message is None:
        return
    types = dictionary_types(message.header, schema)
    while message := pieces.message(message.end):
        if message.kind == DICTIONARY:
            pieces.check_dictionary(message, types)
        elif message.kind == RECORDS:
            pieces.check_records(message.header, message)
            yield reader.read_next_batch()
        else:
            raise DamagedError("a message is neither a batch nor a dictionary")


def _validate(batch: pa.RecordBatch) -> None:
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _IN_COLUMN.match(str(error))
        if found is None:
            raise
        name = batch.schema.names[int(found[1])]
        raise DamagedError(f"column {name!r}: {_reason(found[2])}") from error


@contextmanager
def _sound(file: str) -> Iterator[None]:
    """Says that a file is damaged where its content cannot be right; errors of the system stay."""
    try:
        yield
    except (ValueError, KeyError, OSError, struct.error) as error:  # Arrow's are among these
        if isinstance(error, OSError) and error.errno is not None:
            raise
        outside = isinstance(error, struct.error)
        reason = NOT_THERE if outside else _reason(str(error))
        raise DataError(f"the Arrow file is damaged: {reason}", file=file) from error


def _reason(text: str) -> str:
    """What Arrow says, without its words for the kind of error."""
    return text.strip().partition("\n")[0].replace("Invalid: ", "").removeprefix("Invalid ")
