"""Arrow files and streams in files: their columns and their batches, which are validated before use.

Files are read, not memory-mapped: if another process truncated a mapped file, a signal would end this
process, and reading 440 MB takes only 0.1 s more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from estero.errors import DataError
from estero.events.files.arrow_readers import batches_of, check_valid, opened_reader, reason_of
from estero.events.files.partitions import Partitions
from estero.events.reading_errors import reading


def arrow_schema(file: str) -> pa.Schema:
    """The columns of an Arrow file; raises `DataError` if it is damaged."""
    with _sound(file), pa.OSFile(file) as opened:
        return opened_reader(opened).schema


def arrow_batches(file: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file; raises `DataError` at the first one that is damaged.

    With `columns` only these are read and validated, in this order.
    """
    with _sound(file), pa.OSFile(file) as opened:
        reader = opened_reader(opened)
        if columns is not None:
            places = sorted(map(reader.schema.get_field_index, columns))
            opened.seek(0)
            reader = opened_reader(opened, places)
        for batch in batches_of(reader):
            chosen = batch if columns is None else batch.select(columns)
            check_valid(chosen)
            yield chosen


def arrow_stream(
    files: Sequence[str], schema: pa.Schema, partitions: Partitions | None, columns: Sequence[str] | None
) -> pa.RecordBatchReader:
    """The batches of several files with this schema; as `arrow_batches` with `columns`.

    The columns of `partitions` have one value for each file.
    """
    named = () if partitions is None else partitions.names
    asked = columns if columns is not None or not named else schema.names
    in_files = None if asked is None else [name for name in asked if name not in named]

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            values = {} if partitions is None else partitions.values(file)
            with reading(file):
                for batch in arrow_batches(file, in_files):
                    yield _with_values(batch, values, asked) if asked is not None and values else batch

    chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(chosen, batches())


def _with_values(
    batch: pa.RecordBatch, values: Mapping[str, pa.Scalar], names: Sequence[str]
) -> pa.RecordBatch:
    """The columns of these names, from the batch or with one value for all rows."""
    columns = [
        pa.repeat(values[name], batch.num_rows) if name in values else batch.column(name) for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


@contextmanager
def _sound(file: str) -> Iterator[None]:
    """Turns errors about the content of a file into one that calls it damaged; system errors are kept."""
    try:
        yield
    except (ValueError, KeyError, OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"the Arrow file is damaged: {reason_of(str(error))}", file=file) from error
