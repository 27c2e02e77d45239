"""CSV files → DuckDB's reader, with less guessing: a malformed row is an error, not another dialect.

DuckDB's own detection tries dialects until one fits all rows of its sample. One row too short, and a file
with commas becomes a file with a single column. So the delimiter is taken from the first line, and
quotes are double quotes, unless the options say otherwise; kinds of columns are left to DuckDB.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
from sqlglot import exp

from estero.errors import DataError
from estero.pipeline.reading_errors import data_error, interruptible

_DELIMITERS = (",", ";", "\t", "|")
_DELIMITER_OPTIONS = ("delim", "sep", "delimiter")
_OF_DIALECT = ("header", "quote", "escape", "skip", "comment", "encoding", "compression", *_DELIMITER_OPTIONS)
_FIRST_BYTES = 1 << 16


def csv_query(files: Sequence[str], options: Mapping[str, object]) -> str:
    """The query that reads these files; `options` are those of DuckDB's ``read_csv``.

    Raises `DataError` for an option that cannot be one; DuckDB refuses unknown ones.
    """
    return _reader(files, with_dialect(files[0], options))


def malformed_row(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], options: Mapping[str, object]
) -> DataError | None:
    """The first row that does not fit the first line of its file, if there is one.

    For files in which DuckDB finds no dialect: it does not say which row keeps it from doing so.
    """
    for file in files:
        dialect = {k: v for k, v in with_dialect(file, options).items() if k in _OF_DIALECT}
        delimiter = next((str(dialect[name]) for name in _DELIMITER_OPTIONS if name in dialect), ",")
        width = _width(delimiter, _first_line(file))
        columns = {f"c{place}": "VARCHAR" for place in range(width)}
        strict = {"header": True, **dialect, "auto_detect": False, "columns": columns}
        try:
            with interruptible():
                connection.execute(f"SELECT count(COLUMNS(*)) FROM ({_reader([file], strict)})").fetchall()
        except duckdb.Error as error:
            if "CSV Error on Line" in str(error):
                return data_error(error, file)
    return None


def _reader(files: Sequence[str], options: Mapping[str, object]) -> str:
    given = "".join(f", {name} = {value}" for name, value in options_of(options))
    return f"SELECT * FROM read_csv({_option('files', list(files))}{given})"


def with_dialect(file: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options, with the delimiter and the quotes of the file where they do not say them."""
    found: dict[str, object] = {"quote": '"', "escape": '"', "skip": 0}
    if not any(name in options for name in _DELIMITER_OPTIONS):
        line = _first_line(file)
        found["delim"] = max(_DELIMITERS, key=lambda each: _width(each, line))
    return {**found, **options}


def _first_line(file: str) -> str:
    """The first line that is not blank or a comment; of a compressed file, too."""
    with pa.input_stream(file, compression="detect") as stream:
        start = stream.read(_FIRST_BYTES).decode("utf-8", errors="replace").removeprefix("\ufeff")
    lines = (line for line in start.splitlines() if line.strip() and not line.startswith("#"))
    return next(lines, "")


def _width(delimiter: str, line: str) -> int:
    """How many values a line has."""
    if len(delimiter) != 1:
        return line.count(delimiter) + 1
    return len(next(csv.reader([line], delimiter=delimiter), [""]))


def options_of(options: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Options of the CSV reader by name, their values as SQL."""
    for name, value in options.items():
        if not name.isidentifier():
            raise DataError(f"{name!r} is not an option for CSV files")
        yield name, _option(name, value)


def _option(name: str, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return exp.Literal.string(value).sql("duckdb")
        case list() | tuple():
            return "[" + ", ".join(_option(name, item) for item in value) + "]"
        case Mapping():
            parts = (f"{_option(name, str(key))}: {_option(name, item)}" for key, item in value.items())
            return "{" + ", ".join(parts) + "}"
        case _:
            raise DataError(f"the option {name} of CSV files cannot be {value!r}")
