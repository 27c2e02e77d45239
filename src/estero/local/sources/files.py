"""Files that appear in a directory, read one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from estero.addresses import Address
from estero.errors import DataError
from estero.local.raw import DeadLetter, Offsets, Raw
from estero.local.schemas import schema_of
from estero.local.sources.source import Source

_PAUSE: Final = 0.05
"""The seconds between two listings of the directory."""


class AppearingFiles(Source):
    """The files of a directory or glob, in order of their times and names, then new ones.

    A file must appear complete, by a rename; names that begin with ``.`` or ``_`` are ignored. A batch ends
    at an event of a file, or at the end of the file.
    """

    def __init__(self, address: Address) -> None:
        self._form = address.scheme
        self._place = Path(address.place)
        self._options = address.options
        self._done: set[str] = set()
        self._file: str | None = None
        self._name: str | None = None
        self._row = 0
        self._lines: Iterator[bytes] | None = None
        self._rows: Rows | None = None

    def seek(self, offsets: Offsets | None) -> None:
        """Moves to an event of a file."""
        said = offsets or {"done": [], "file": None, "row": 0}
        self._done = set(said["done"])
        self._go_to(said["file"], int(said["row"]))

    def place(self) -> Offsets:
        """The current event of a file, and the files that are done."""
        return {"done": sorted(self._done), "file": self._file, "row": self._row}

    def schema(self) -> pa.Schema | None:
        """The columns of the file that was read last; lines of JSON have none."""
        return None if self._form == "json" or self._name is None else schema_of(self._name)

    def poll(self, most: int, seconds: float) -> Raw | None:
        """The next events of one file."""
        if self._file is None:
            self._go_to(self._next_file(seconds))
        return None if self._file is None else self._from_here(most)

    def replay(self, after: Offsets) -> Raw:
        """The events of one file up to a place."""
        name, ended = after["file"], after["row"] is None
        if self._file != name:
            self._go_to(name)
        raw = self._from_here(None if ended else after["row"] - self._row) if Path(name).is_file() else None
        if raw is None or raw.after != after:
            raise DataError("this file has changed since it was read", file=name)
        return raw

    def _from_here(self, most: int | None) -> Raw:
        """The next `most` events of the file, or all; after its last event, the file is done."""
        name, before = str(self._file), self._row
        self._name = name
        texts: tuple[bytes, ...] = ()
        dead: tuple[DeadLetter, ...] = ()
        table, ended = None, True
        try:
            if self._form == "json":
                self._lines = self._lines or islice(_lines_of(name), before, None)
                texts = tuple(islice(self._lines, most))
            else:
                self._rows = self._rows or Rows.of(name, self._form, self._options, before)
                table = self._rows.take(most)
            rows = len(texts) if table is None else int(table.num_rows)
            ended = most is None or rows < most
        except (OSError, pa.ArrowException) as error:
            rows, dead = 0, (DeadLetter(name, f"this file cannot be read: {error}", b""),)
        self._row += rows
        if ended:
            self._done.add(name)
            self._go_to(None)
        after = {"file": name, "row": None if ended else before + rows}
        return Raw(after, texts, table, lambda row: f"{name}:{before + row + 1}", dead)

    def _go_to(self, name: str | None, row: int = 0) -> None:
        self._file, self._row, self._lines, self._rows = name, row, None, None

    def _next_file(self, seconds: float) -> str | None:
        from threading import Event

        name = next(iter(self._names()), None)
        if name is None and seconds > 0:
            Event().wait(min(seconds, _PAUSE))
            name = next(iter(self._names()), None)
        self.caught_up = name is None
        return name

    def _names(self) -> list[str]:
        """The files that are not done, in order."""
        if self._place.is_dir():
            paths = list(self._place.iterdir())
        else:
            paths = [Path(name) for name in iglob(str(self._place))]  # noqa: PTH207 (absolute patterns)
        self._done.intersection_update(map(str, paths))  # files that are gone need not be remembered
        waiting = [
            (path.stat().st_mtime_ns, str(path))
            for path in paths
            if path.name[0] not in "._" and str(path) not in self._done and path.is_file()
        ]
        return [name for _, name in sorted(waiting)]


def _lines_of(name: str) -> Iterator[bytes]:
    """The nonempty lines of a file, decompressed."""
    with pa.input_stream(name, compression="detect") as file:
        rest = b""
        while chunk := file.read(1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, map(bytes.strip, lines))
        if rest := rest.strip():
            yield rest


class Rows:
    """The rows of a Parquet or CSV file from a position on, in portions; those of CSV as texts."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], before: int) -> None:
        self._schema = schema
        self._batches = batches
        self._ahead = schema.empty_table()
        self.take(before)

    @classmethod
    def of(cls, name: str, form: str, options: dict[str, str], before: int) -> Rows:
        """The rows of a file after the first `before` ones."""
        if form == "parquet":
            file = pyarrow.parquet.ParquetFile(name)
            return cls(file.schema_arrow, file.iter_batches(), before)
        parsing = pyarrow.csv.ParseOptions(delimiter=options.get("sep", options.get("delimiter", ",")))
        with pyarrow.csv.open_csv(name, parse_options=parsing) as reader:
            names = reader.schema.names
        as_texts = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        texts = pyarrow.csv.open_csv(name, parse_options=parsing, convert_options=as_texts)
        return cls(texts.schema, iter(texts), before)

    def take(self, most: int | None) -> pa.Table:
        """The next `most` rows, or all; fewer at the end."""
        parts, rows = [self._ahead], int(self._ahead.num_rows)
        while most is None or rows < most:
            batch = next(self._batches, None)
            if batch is None:
                break
            parts.append(pa.Table.from_batches([batch], self._schema))
            rows += batch.num_rows
        table = pa.concat_tables(parts)
        taken = table.slice(0, most)
        self._ahead = table.slice(taken.num_rows)
        return taken
