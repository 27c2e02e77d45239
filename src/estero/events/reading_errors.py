"""Errors of DuckDB, Arrow and the file system during reading → one `DataError` a user can act on."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pyarrow as pa

from estero.errors import DataError
from estero.language.tree.schema import Kind

_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_FILE = re.compile(r"^\s*file = (.*)$", re.MULTILINE)
_CSV_COLUMN = re.compile(r'Error when converting column "(.*?)"\. (.*)')
_CSV_COUNT = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_JSON = re.compile(r'(?:Malformed JSON|JSON transform error) in file "(.*?)",.*? in line (\d+): (.*)')
NOT_IN_NANOSECONDS = "Could not convert Timestamp"
"""DuckDB's message for a microsecond timestamp that exceeds 64 bits in nanoseconds."""
_OWN = re.compile(r"estero: (.*)", re.DOTALL)
"""The messages of Estero's own expressions, in words for users; a hint is on its own line."""
_PREFIX = re.compile(r"^(?:\w+ )*Error: ")

_CSV_HINT = (
    "fix the line, or say how to read the file: csv_options={'types': …, 'delim': …, 'nullstr': …}, "
    "or --delimiter on the command line"
)
_HOW_IT_IS_WRITTEN = (
    "say how it is written: csv_options={'delim': …, 'quote': …, 'encoding': …}; 'strict_mode': False reads "
    "lines that end in different ways"
)
_OF_JSON = {
    "byte order mark": "save the file as UTF-8 without a byte order mark",
    "invalid UTF-8": "save the file as UTF-8",
    "unexpected content after document": "write one object in each line, and nothing between them",
}


class TooLargeError(DataError):
    """A number that does not fit into 64 bits."""


@contextmanager
def reading(what: str | None = None) -> Iterator[None]:
    """Turns errors of reading inside the block into `DataError`; `what` names the file if it is known.

    A Ctrl-C inside it is raised as KeyboardInterrupt.
    """
    try:
        with interruptible():
            yield
    except (*_of_duckdb("Error"), RuntimeError, OSError, pa.ArrowException, UnicodeError) as error:
        raise data_error(error, what) from error


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C inside a query of DuckDB raise KeyboardInterrupt, as it does elsewhere.

    A query that waits in the main thread turns it into a RuntimeError with just these words.
    """
    try:
        yield
    except _of_duckdb("InterruptException") as error:
        raise KeyboardInterrupt from error
    except RuntimeError as error:
        if type(error) is RuntimeError and error.args == ("Query interrupted",):
            raise KeyboardInterrupt from error
        raise


def _of_duckdb(name: str) -> tuple[type[Exception], ...]:
    """An exception class of DuckDB by its name; empty if DuckDB is not loaded."""
    duckdb = sys.modules.get("duckdb")
    return () if duckdb is None else (getattr(duckdb, name),)


def data_error(error: BaseException, what: str | None) -> DataError:
    """The `DataError` that explains `error` in terms of the events."""
    text = str(error)
    if "CSV Error on Line" in text:
        return _of_csv(text, what)
    if "Error when sniffing file" in text:
        return DataError("the rows do not have the form of one CSV file", file=what, hint=_HOW_IT_IS_WRITTEN)
    if match := _JSON.search(text):
        reason = match[3].splitlines()[0].partition(" Try ")[0].strip()
        return DataError(
            f"the line is not JSON, or does not fit the others: {reason}",
            file=match[1],
            line=_line_of_json(match[1], int(match[2])),
            hint=next((hint for words, hint in _OF_JSON.items() if words in reason), ""),
        )
    if match := _OWN.search(text):
        message, _, hint = match[1].partition("\n")
        return DataError(message.strip(), file=what, hint=hint.strip())
    if isinstance(error, _of_duckdb("OutOfRangeException")) or "out of range" in text.lower():
        return TooLargeError(f"a number does not fit into 64 bits: {_first_sentence(text)}", file=what)
    if NOT_IN_NANOSECONDS in text:
        beyond = "a timestamp before 1677 or after 2262 cannot be combined with times in nanoseconds"
        return TooLargeError(beyond, file=what, hint="convert one of them")
    if isinstance(error, PermissionError):
        return DataError("the file cannot be read: permission denied", file=what)
    if "No files found" in text:
        return DataError("no file matches this name", file=what)
    return DataError(f"cannot read the events: {_first_sentence(text)}", file=what)


def _line_of_json(file: str, line: int) -> int:
    """The line that is not JSON: the one named or, as DuckDB may count one too many, the one before."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            before = next(islice(opened, max(line - 2, 0), None), "")
            json.dumps(json.loads(before or "null"), ensure_ascii=False).encode()  # no lone surrogates
    except ValueError:
        return line - 1
    except OSError:
        return line
    return line


def _of_csv(text: str, what: str | None) -> DataError:
    line = _CSV_LINE.search(text)
    file = _CSV_FILE.search(text)
    column, hint = None, _CSV_HINT
    message = _first_sentence("\n".join(text.splitlines()[2:]))
    if match := _CSV_COLUMN.search(text):
        column, message = match[1], match[2].strip()
    elif match := _CSV_COUNT.search(text):
        message = f"the row has {match[2]} columns, not {match[1]}"
    elif "unterminated quote" in text:
        message = "a quoted value is not closed"
    elif "not utf-8 encoded" in text:
        message, hint = (
            "the file is not written in UTF-8",
            "save it as UTF-8, or say csv_options={'encoding': 'latin-1'}",
        )
    return DataError(
        message,
        file=file[1].strip() if file else what,
        line=int(line[1]) if line else None,
        column=column,
        hint=hint,
    )


def _first_sentence(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return _PREFIX.sub("", lines[0]) if lines else "no reason is given"


def how_to_have_timestamps(file: str | None, column: str, kind: Kind, *, nested: bool) -> str:
    """The hint for a time column without times, for events in a `file` or in a frame.

    `nested`: the name is that of a field inside a column.
    """
    if file is None and kind is Kind.FLOAT:
        return f'convert it to timestamps, pandas.to_datetime(df["{column}"], unit="s"), or integers'
    if file is None:
        return (
            f'convert it to timestamps: pandas.to_datetime(df["{column}"]), in Polars '
            f'pl.col("{column}").str.to_datetime(), in Spark to_timestamp("{column}")'
        )
    if kind is Kind.FLOAT:
        return "write the column as timestamps, or as integers with their time_unit"
    if any(suffix in Path(file).name.lower() for suffix in (".csv", ".tsv", ".txt")):
        return "csv_options={'timestampformat': …} (--timestamp-format) says how times are written"
    if any(suffix in Path(file).name.lower() for suffix in (".json", ".ndjson")):
        if nested:
            return (
                "in JSON, strings inside of objects stay strings; the relation duckdb.read_json(…) has "
                "timestamps there, and an integer with its time_unit is read anywhere"
            )
        return "in JSON a timestamp is written '2024-01-31 12:00:00', or as an integer with its time_unit"
    return "write the column as timestamps, or as integers with their time_unit"
