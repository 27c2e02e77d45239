"""Standard output: one line of JSON per row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from estero.local.rows import json_lines
from estero.local.sinks.sink import Sink


class Console(Sink):
    """Writes lines to an open file; after a failure, the lines of the last batch may appear twice."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Does nothing."""

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Writes the rows."""
        written = 0
        for batch in rows:
            for line in json_lines(batch, labels=True):
                self._file.write(line + b"\n")
                written += 1
        if written:
            self._file.flush()
        self.delivered = number
        return written
