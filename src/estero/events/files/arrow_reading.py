"""Messages of Arrow → batches, each of which is sound when it is used; see `arrow_files`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

from estero.events.files.arrow_messages import (
    DICTIONARY,
    MAGIC,
    RECORDS,
    DamagedError,
    Message,
    Pieces,
    blocks,
    dictionary_types,
)

_IN_COLUMN = re.compile(r"In column (\d+): (.*)", re.DOTALL)


def sound_batch(stream: pa.Buffer) -> pa.RecordBatch:
    """The one batch of a stream in memory; it is read as carefully as a file.

    Raises ValueError, or one of Arrow's errors, where it is damaged or there is none.
    """
    pieces = Pieces(pa.BufferReader(stream))
    reader = open_arrow(pa.BufferReader(stream), pieces, threads=False)
    batch = next(batches_of_stream(reader, pieces, reader.schema), None)
    if batch is None:
        raise DamagedError("there is no batch")
    check_valid(batch)
    return batch


def open_arrow(
    opened: pa.NativeFile, pieces: Pieces, included: list[int] | None = None, *, threads: bool = True
) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """A reader of the columns with these numbers, or of all.

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


def batches_of_file(
    reader: pa.RecordBatchFileReader, pieces: Pieces, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The batches of a file; `schema` has all columns of it."""
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


def batches_of_stream(
    reader: pa.RecordBatchStreamReader, pieces: Pieces, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The batches of a stream; those messages are checked first that the reader needs for the next one."""
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


def check_valid(batch: pa.RecordBatch) -> None:
    """Raises `DamagedError`, or one of Arrow's errors, for a batch that is not sound."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _IN_COLUMN.match(str(error))
        if found is None:
            raise
        name = batch.schema.names[int(found[1])]
        raise DamagedError(f"column {name!r}: {reason_of(found[2])}") from error


def reason_of(text: str) -> str:
    """What Arrow says, without its words for the kind of error."""
    return text.strip().partition("\n")[0].replace("Invalid: ", "").removeprefix("Invalid ")
