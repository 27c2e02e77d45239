"""Files in a directory; a file appears complete, with the number of its last batch in its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from estero.addresses import Address
from estero.errors import DataError
from estero.local.rows import json_lines
from estero.local.sinks.sink import Sink
from estero.system.private_folders import make_folder

_MOST_ROWS: Final = 100_000
"""The largest number of rows that wait for the end of their batch."""
_SUFFIXES: Final = {"json": ".jsonl", "parquet": ".parquet"}


class Files(Sink):
    """Collects rows, and writes a file when it is flushed or has many.

    ``part-STREAM-NUMBER.jsonl`` has the rows of the batches after the previous file up to that number, so the
    names alone say which batches the directory has.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._form = address.scheme
        self._directory = Path(address.place)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Creates the directory, and finds the batches of the stream in it."""
        make_folder(self._directory.absolute())
        self._stream, self._schema = stream, schema
        own = re.compile(rf"part-{re.escape(stream)}-(\d+){re.escape(_SUFFIXES[self._form])}")
        numbers = [int(match[1]) for path in self._directory.iterdir() if (match := own.fullmatch(path.name))]
        self.delivered = max(numbers, default=-1)

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Collects the rows of a batch."""
        before = self._rows
        for batch in rows:
            self._waiting.append(batch)
            self._rows += batch.num_rows
        added = self._rows - before
        if self._rows >= _MOST_ROWS:
            self.flush(number)
        return added

    def flush(self, number: int) -> None:
        """Writes the collected rows, if there are any."""
        if self._waiting:
            name = f"part-{self._stream}-{number:012}{_SUFFIXES[self._form]}"
            new = self._directory / f".{name}.new"
            try:
                self._fill(new)
                self.reached("file written")
                new.replace(self._directory / name)
            except OSError as error:
                raise DataError(
                    f"this file cannot be written: {error.strerror or error}",
                    file=str(self._directory / name),
                ) from error
            self.reached("file named")
            self._waiting, self._rows = [], 0
        self.delivered = max(self.delivered, number)

    def _fill(self, path: Path) -> None:
        with path.open("wb") as file:
            if self._form == "parquet":
                import pyarrow.parquet

                with pyarrow.parquet.ParquetWriter(file, self._schema) as writer:
                    for batch in self._waiting:
                        writer.write_batch(batch)
            else:
                for batch in self._waiting:
                    file.writelines(line + b"\n" for line in json_lines(batch))
            file.flush()
            os.fsync(file.fileno())
