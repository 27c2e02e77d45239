"""Paths: a file, the files of a directory or glob, or a pipe, which can only be read once."""

from __future__ import annotations

import difflib
import errno
import glob
import re
import stat
from pathlib import Path

from estero.errors import DataError
from estero.events.files.temporary_files import linked, spooled
from estero.events.reading_errors import reading

_OF_GLOBS = re.compile(r"[*?\[]")
_OF_STORES = re.compile(r"(?:(?:parquet|csv|jsonl?):)?[A-Za-z][\w.+-]+://|delta:(?=.)", re.IGNORECASE)


def in_store(path: str) -> bool:
    """Whether a path names a place that Spark reads and this process does not: a store, or a Delta table.

    >>> in_store("s3a://bucket/events.parquet"), in_store("delta:/data/events"), in_store("events.parquet")
    (True, True, False)
    """
    return _OF_STORES.match(path) is not None and not Path(path.partition("\0")[0]).exists()


def files_of(path: str) -> list[str]:
    """The files that a path, directory or glob names, in order.

    A path that exists stands for itself, even if it contains characters of globs. Raises `DataError` if there
    is no file.
    """
    if not path:
        raise DataError("the path of the events is empty", hint="name a file, a directory or a glob")
    if "\0" in path:
        raise DataError(f"{path!r} is not a path: it contains a NUL character")
    if in_store(path):
        raise DataError(
            "only Spark reads this place",
            file=path,
            hint="leave out --engine duckdb; in Python, estero.spark.read_events(…) gives a DataFrame",
        )
    with reading(path):
        mode = _mode(path)
        if mode is not None:
            return _in_directory(path) if stat.S_ISDIR(mode) else [path]
        if not glob.has_magic(path):
            raise DataError("there is no such file", file=path, hint=_what_is_there(path))
        matching = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207  a pattern may be absolute
    if not matching:
        raise DataError("no file matches this pattern", file=path, hint=_what_is_there(path))
    return matching


def _what_is_there(path: str) -> str:
    """A hint about a path that does not exist: the first missing directory, or a similar name."""
    folder = Path()
    for part in Path(path).parts[:-1]:
        if glob.has_magic(part):
            return ""
        folder /= part
        if not folder.is_dir():
            return f"there is no directory {folder}"
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:  # it may allow entering and not listing
        return ""
    near = difflib.get_close_matches(Path(path).name, names, 1)
    if near:
        return f"did you mean {folder / near[0]}?"
    return (
        "" if Path(path).is_absolute() else f"a relative path begins in the current directory, {Path.cwd()}"
    )


def names_file(text: str) -> bool:
    """Whether a text is the path of a file."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for the name of a file
        return False


def as_file(path: str) -> str:
    """The path itself or, for a pipe, that of a copy of its content.

    Raises `DataError` for a device or a socket.
    """
    with reading(path):
        mode = _mode(path) if path and "\0" not in path else None
        if mode is None or stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return path
        if stat.S_ISFIFO(mode):
            return spooled(path)
    raise DataError(
        "this is a device or a socket, not a file of events", file=path, hint="write the events to a file"
    )


def as_one_file(path: str) -> str:
    """A path escaped so that DuckDB's readers, which expand globs, name exactly that file.

    >>> as_one_file("data/p[1].csv")
    'data/p[[]1].csv'
    """
    if "\\" in path and _OF_GLOBS.search(path):  # DuckDB cannot escape backslashes in globs
        suffixes = "".join(Path(path).suffixes)
        return linked(str(Path(path).absolute()), f"events{_OF_GLOBS.sub('', suffixes).replace(chr(92), '')}")
    place = str(Path(path).absolute()) if re.match(r"~|\w+:", path) else path
    return _OF_GLOBS.sub(r"[\g<0>]", place)


def _mode(path: str) -> int | None:
    """The kind of file at a path, from `stat`; None if there is nothing."""
    try:
        return Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise DataError(
            f"the path is too long: it has {len(path):,} characters", file=f"{path[:60]}…"
        ) from error


def _in_directory(path: str) -> list[str]:
    files = [file for file in sorted(Path(path).rglob("*")) if file.is_file()]
    shown = [str(file) for file in files if not any(map(_is_hidden, file.relative_to(path).parts))]
    if not shown:
        raise DataError("the directory holds no files", file=path)
    return shown


def _is_hidden(name: str) -> bool:
    """Whether a file or directory is not for readers, as in Spark: ``_SUCCESS``, but not ``_day=3``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
