"""The format of files, and the layout of text files: found once for files that do not change."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from estero.errors import DataError
from estero.events.database import lent_cursor
from estero.events.reading_errors import reading

if TYPE_CHECKING:
    from estero.events.files.text_layout import TextLayout

_FORMATS: Mapping[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
}
_COMPRESSED = (".gz", ".zst", ".bz2")


def format_of(file: str, csv_options: Mapping[str, object] | None) -> str:
    """parquet, csv, json or arrow, by the name of the file, else by its first bytes."""
    suffixes = [suffix.lower() for suffix in Path(file).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in _FORMATS:
        return _FORMATS[suffixes[-1]]
    with Path(file).open("rb") as opened:
        start = opened.read(6)
    if start[:4] == b"PAR1":
        return "parquet"
    if start == b"ARROW1":
        return "arrow"
    if csv_options:
        return "csv"
    raise DataError(
        "the name does not say which format the file has",
        file=file,
        hint="name it .parquet, .csv, .jsonl or .arrow; csv_options make it a CSV file, "
        "and on the command line --events-format says it",
    )


def text_layout(form: str, files: Sequence[str], csv_options: Mapping[str, object]) -> TextLayout:
    """The layout of CSV or JSON files, which requires reading all rows."""
    return _layout(form, tuple(map(_stamp, files)), _Options(csv_options))


class _Options(dict[str, object]):
    """Options that are equal in a cache if they mean the same, so that files are read through once."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items(), key=lambda item: item[0])))


_Stamp = tuple[str, str, int, int, int, int]


def _stamp(file: str) -> _Stamp:
    """A path, the directory it is relative to, and the properties that change with the file."""
    status = Path(file).stat()
    return (file, str(Path.cwd()), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@functools.lru_cache(maxsize=64)
def _layout(form: str, stamps: tuple[_Stamp, ...], options: _Options) -> TextLayout:
    files = [stamp[0] for stamp in stamps]
    with lent_cursor() as connection:
        if form == "json":
            from estero.events.files.json_files import json_layout

            return json_layout(connection, files)
        from estero.events.files.csv_files import csv_layout, malformed_row

        try:
            with reading(files[0]):
                return csv_layout(connection, files, options)
        except DataError as error:
            malformed = None if error.line is not None else malformed_row(connection, files, options)
            raise malformed or error from error.__cause__
