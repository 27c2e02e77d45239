"""Directories whose names are values of columns, as Hive writes them: ``events/year=2024/part.parquet``."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from estero.classify.sql_texts import literal, quoted

FILE = "__file"
"""The column in which DuckDB's readers give the file of a row."""

_MISSING = "__HIVE_DEFAULT_PARTITION__"
"""The directory of rows whose value is NULL."""

_NAMED = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_MAGIC = re.compile(r"[*?\[]")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_ARROW = {"BIGINT": pa.int64(), "DATE": pa.date32(), "VARCHAR": pa.string()}


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column whose value is in the names of directories: `written` is its name there, encoded.

    `type` is DuckDB's: integers if all values are such, else dates, else strings.
    """

    name: str
    written: str
    type: str

    @property
    def sql(self) -> str:
        """SQL of its value, where `FILE` is the path of a file."""
        place = literal(f"(?:^|.*/){re.escape(self.written)}=([^/]*)/")
        text = f"nullif(url_decode(regexp_extract({FILE}, {place}, 1)), {literal(_MISSING)})"
        return f"CAST({text} AS {self.type}) AS {quoted(self.name)}"

    @property
    def field(self) -> pa.Field:
        """The column as Arrow has it."""
        return pa.field(self.name, _ARROW[self.type])


@dataclass(frozen=True, slots=True)
class Partitions:
    """The columns that directories below `root` name; each file lies in a directory of each."""

    root: str
    columns: tuple[PartitionColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def values(self, file: str) -> dict[str, pa.Scalar]:
        """The values of these columns for the rows of a file."""
        written = dict(_named_in(self.root, file))
        return {
            column.name: pa.scalar(_decoded(written[column.written])).cast(_ARROW[column.type])
            for column in self.columns
        }


def partitions_of(path: str, files: Sequence[str]) -> Partitions | None:
    """The columns that the directories between `path`, a directory or glob, and all `files` name.

    None if there are none, or if files lie in directories of different columns.
    """
    root = _root_of(path)
    written = [_named_in(root, file) for file in files]
    names = [name for name, _ in written[0]]
    if not names or len(set(names)) < len(names):
        return None
    if any([name for name, _ in levels] != names for levels in written):
        return None
    columns = [
        PartitionColumn(unquote(name), name, _type_of(_decoded(levels[place][1]) for levels in written))
        for place, name in enumerate(names)
    ]
    return Partitions(root, tuple(columns))


def _root_of(path: str) -> str:
    """The directory below which `path` names files: the path itself, or the part before a pattern."""
    if Path(path).is_file():
        return str(Path(path).parent)
    if Path(path).exists() or not glob.has_magic(path):
        return path
    parts = Path(path).parts
    first = next(place for place, part in enumerate(parts) if _MAGIC.search(part))
    return str(Path(*parts[:first])) if first else "."


def _named_in(root: str, file: str) -> list[tuple[str, str]]:
    """Names and values in the directories between `root` and a file, in order."""
    below = Path(file).parent.relative_to(root).parts
    matches = map(_NAMED.fullmatch, below)
    return [(match[1], match[2]) for match in matches if match is not None]


def _decoded(value: str) -> str | None:
    return None if value == _MISSING else unquote(value)


def _type_of(values: Iterable[str | None]) -> str:
    known = {value for value in values if value is not None}
    if known and all(map(_WHOLE.fullmatch, known)):
        return "BIGINT"
    return "DATE" if known and all(map(_is_day, known)) else "VARCHAR"


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False
