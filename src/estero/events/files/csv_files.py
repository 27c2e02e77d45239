"""CSV files → their layout, with little guessing: a malformed row is an error, not another dialect.

DuckDB's own detection tries dialects until one fits all rows of its sample: if one row is too short, a file
with commas becomes a file with a single column. So the delimiter is taken from the first line, and quotes are
double quotes, unless the options say otherwise. Lines that begin with # are comments only above the header.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from estero.classify.column_names import check_names
from estero.classify.sql_texts import literal, quoted
from estero.errors import DataError
from estero.events.database import Connection, may_be_changed
from estero.events.files.paths import as_one_file
from estero.events.files.readers import rows_of
from estero.events.files.text_kinds import TextColumn
from estero.events.files.text_layout import Part, TextLayout, merged, settled
from estero.events.reading_errors import data_error, interruptible
from estero.language.tree.exact_names import exact_names

_DELIMITERS = (",", ";", "\t", "|")
_DELIMITER_OPTIONS = ("delim", "sep", "delimiter")
_TYPE_OPTIONS = ("types", "dtypes", "column_types")
_OF_DIALECT = ("header", "quote", "escape", "skip", "comment", "encoding", "compression", *_DELIMITER_OPTIONS)
_OF_TYPES = (
    *_TYPE_OPTIONS,
    *("columns", "names", "column_names", "timestampformat", "timestamp_format", "dateformat", "date_format"),
    *("decimal_separator", "thousands", "auto_detect", "auto_type_candidates", "all_varchar", "sample_size"),
    *("normalize_names", "union_by_name", "files_to_sniff"),
)
"""The options that are handled here; all others go to DuckDB's reader."""
_MOST_BYTES = 1 << 24
_CHUNK = 1 << 16


def csv_layout(connection: Connection, files: Sequence[str], options: Mapping[str, object]) -> TextLayout:
    """The layout of these files; `options` are those of DuckDB's ``read_csv``.

    Reads all rows. Raises `DataError` for a malformed row, for an invalid option, for files with other
    columns than the first, and for a value that does not fit the given type.
    """
    check_options(options)
    parts = merged(_part(connection, file, options) for file in files)
    _check_same(parts, by_name=options.get("union_by_name") is True)
    return settled(connection, "csv", _columns(parts, options), parts)


def malformed_row(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], options: Mapping[str, object]
) -> DataError | None:
    """The first row that does not fit the first line of its file, if there is one.

    It is for files in which DuckDB finds no dialect, because DuckDB does not say which row prevents that.
    """
    for file in files:
        dialect = {k: v for k, v in with_dialect(file, options).items() if k in _OF_DIALECT}
        delimiter = next((str(dialect[name]) for name in _DELIMITER_OPTIONS if name in dialect), ",")
        width = _width(delimiter, _beginning(file)[1])
        columns = {f"c{place}": "VARCHAR" for place in range(width)}
        strict = {"header": True, **dialect, "auto_detect": False, "columns": columns}
        try:
            rows = rows_of("read_csv", [file], _as_arguments(strict))
            with interruptible():
                connection.execute(f"SELECT count(COLUMNS(*)) FROM {rows}").fetchall()
        except duckdb.Error as error:
            if "CSV Error on Line" in str(error):
                return data_error(error, file)
    return None


def has_quoted_newlines(connection: Connection, layout: TextLayout) -> bool:
    """Whether some value of these files continues on the next line."""
    for part in layout.parts:
        quote = str(part.settings.get("quote", '"')).encode()
        if quote and any(quote in chunk for file in part.files for chunk in _chunks(file)):
            texts = (quoted(name) for name in part.names)
            held = " OR ".join(f"contains({text}, chr(10)) OR contains({text}, chr(13))" for text in texts)
            asked = f"SELECT 1 FROM {part.relation} WHERE {held} LIMIT 1"
            if connection.execute(asked).fetchall():
                return True
    return False


def inline_comment(files: Sequence[str], mark: str) -> tuple[str, int] | None:
    """The first file and line with `mark` after the line's beginning; None if there is none."""
    for file in files:
        for number, line in enumerate(_lines(file, whole=True), 1):
            if mark in line and not line.startswith(mark):
                return file, number
    return None


def nulls_of(options: Mapping[str, object]) -> tuple[str, ...]:
    """The texts that mean NULL according to the options, besides the empty one."""
    given = options.get("nullstr", options.get("null", ()))
    texts = given if isinstance(given, list | tuple) else (given,)
    return tuple(str(text) for text in texts if text != "")


# ------------------------------------------------------------------------------------------ dialect


def with_dialect(file: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options, with the delimiter, quotes and comments of the file where they do not set them."""
    comments, line = _beginning(file) if "comment" not in options and "skip" not in options else (0, "")
    dialect: dict[str, object] = {"quote": '"', "escape": '"', "skip": comments, "comment": ""}
    if nulls := nulls_of(options):
        options = {name: value for name, value in options.items() if name != "null"}
        options["nullstr"] = [*nulls, ""]
    if not any(name in options for name in _DELIMITER_OPTIONS):
        line = line or _beginning(file)[1]
        dialect["delim"] = max(_DELIMITERS, key=lambda delimiter: _width(delimiter, line))
    return {**dialect, **options}


def _beginning(file: str) -> tuple[int, str]:
    """The number of lines above the first one that is neither blank nor a comment, and that line.

    Blank lines count only above a comment: readers skip the others by themselves.
    """
    comments = 0
    for number, line in enumerate(_lines(file), 1):
        if line.startswith("#"):
            comments = number
        elif line.strip():
            return comments, line
    return comments, ""


def _lines(file: str, *, whole: bool = False) -> Iterator[str]:
    """The first lines of a file, or all of them; it may be compressed."""
    rest, first = "", True
    for chunk in itertools.islice(_chunks(file), None if whole else _MOST_BYTES // _CHUNK):
        text = rest + chunk.decode("utf-8", errors="replace")
        *lines, rest = (text.removeprefix("\ufeff") if first else text).splitlines(keepends=True) or [""]
        first = False
        yield from lines
    yield rest


def _chunks(file: str) -> Iterator[bytes]:
    with pa.input_stream(file, compression="detect") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _width(delimiter: str, line: str) -> int:
    """The number of values in a line."""
    if len(delimiter) != 1:
        return line.count(delimiter) + 1
    return len(next(csv.reader([line], delimiter=delimiter), [""]))


def _part(connection: Connection, file: str, options: Mapping[str, object]) -> Part:
    """One file, with its dialect and the names of its columns."""
    names, dialect = _names_and_dialect(connection, file, options)
    as_text = {**dialect, "auto_detect": False, "columns": dict.fromkeys(names, "VARCHAR")}
    return Part((file,), names, "read_csv", _as_arguments(as_text), dialect)


def _names_and_dialect(
    connection: Connection, file: str, options: Mapping[str, object]
) -> tuple[tuple[str, ...], Mapping[str, object]]:
    dialect = with_dialect(file, options)
    if isinstance(columns := options.get("columns"), Mapping):
        return tuple(map(str, columns)), {"header": True, **_dialect_only(dialect)}
    asked = {name: value for name, value in dialect.items() if name not in _TYPE_OPTIONS}
    sniffed = _sniffed(connection, file, asked)
    words = all(column["type"] in {"VARCHAR", "BOOLEAN"} for column in sniffed["Columns"])  # one may be `t`
    if words and not sniffed["HasHeader"] and "header" not in options and _is_one_line(file):
        sniffed = _sniffed(connection, file, {**asked, "header": True})  # with no row below it
    names = tuple(column["name"] for column in sniffed["Columns"])
    of_file = {**_dialect_only(dialect), "header": bool(sniffed["HasHeader"]), "skip": sniffed["SkipRows"]}
    if of_file["header"] and may_be_changed(names):
        header = _header(connection, file, of_file, len(names))
        if len(header) == len(names) and len(set(header)) == len(names):
            exact = exact_names(header)
            names = tuple(exact.get(name, name) for name in header)
        else:
            check_names(header, file)
    return names, of_file


def _sniffed(connection: Connection, file: str, asked: Mapping[str, object]) -> dict[str, Any]:
    """What DuckDB finds a file to be."""
    relation = connection.execute(f"FROM sniff_csv({literal(as_one_file(file))}{_as_arguments(asked)})")
    described = [column[0] for column in relation.description or ()]
    return dict(zip(described, relation.fetchall()[0], strict=True))


def _is_one_line(file: str) -> bool:
    """Whether a file has one line beside blank ones and comments."""
    lines = (line for line in _lines(file) if line.strip() and not line.startswith("#"))
    return len(list(itertools.islice(lines, 2))) == 1


def _header(connection: Connection, file: str, dialect: Mapping[str, object], width: int) -> list[str]:
    """The names as the header writes them: DuckDB renames the second of two that it takes for one."""
    columns = {f"column{place}": "VARCHAR" for place in range(width)}
    as_row = _as_arguments({**dialect, "header": False, "auto_detect": False, "columns": columns})
    first = connection.execute(f"FROM {rows_of('read_csv', [file], as_row)} LIMIT 1").fetchone()
    return [name for name in first or () if name]


def _dialect_only(options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if name not in _OF_TYPES}


def _check_same(parts: Sequence[Part], *, by_name: bool) -> None:
    """Raises `DataError` for a file with other columns than the first one; their order may differ."""
    first = parts[0]
    for part in parts[1:]:
        if set(part.names) != set(first.names) and not by_name:
            raise DataError(
                f"the columns are {', '.join(part.names)}, and those of {first.files[0]} are "
                f"{', '.join(first.names)}",
                file=part.files[0],
                hint="csv_options={'union_by_name': True} reads missing columns as NULL",
            )


# ------------------------------------------------------------------------------------------- columns


def _columns(parts: Sequence[Part], options: Mapping[str, object]) -> list[TextColumn]:
    """The columns of all files, with the settings that the options have for them."""
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    given = _given_types(names, options)
    time = options.get("timestampformat", options.get("timestamp_format"))
    date = options.get("dateformat", options.get("date_format"))
    columns = []
    for name in names:
        asked = given.get(name, "VARCHAR" if options.get("all_varchar") is True else None)
        kind = None if asked is None else _plain_name(asked)
        form = date if kind == "DATE" else time if kind is None or kind.startswith("TIMESTAMP") else None
        columns.append(
            TextColumn(
                name,
                kind or '"NULL"',
                format=None if form is None else str(form),
                decimal=str(options.get("decimal_separator", ".")),
                thousands=str(options.get("thousands", "")),
                given=kind is not None,
            )
        )
    return columns


def _given_types(names: Sequence[str], options: Mapping[str, object]) -> dict[str, str]:
    """The types given in the options, by column."""
    given = options.get("columns", {})
    for option in _TYPE_OPTIONS:
        given = options.get(option, given)
    if isinstance(given, Mapping):
        types = {str(name): str(kind) for name, kind in given.items()}
    elif isinstance(given, list | tuple):
        types = dict(zip(names, map(str, given), strict=False))
    else:
        raise DataError(
            f"the types of the columns of CSV files cannot be {given!r}",
            hint="name them by column: {'price': 'DOUBLE'}",
        )
    if unknown := [name for name in types if name not in names]:
        raise DataError(
            f"there is no column {unknown[0]!r} to give a type to", hint=f"the columns are {', '.join(names)}"
        )
    return types


def _plain_name(asked: str) -> str:
    """The DuckDB name of a type; raises `DataError` for an unknown one."""
    try:
        return str(duckdb.sqltype(asked))
    except duckdb.Error as error:
        raise DataError(
            f"{asked!r} is not a type that DuckDB knows",
            hint="write one such as VARCHAR, BIGINT, DOUBLE, TIMESTAMPTZ",
        ) from error


# ------------------------------------------------------------------------------------------- options


def check_options(options: Mapping[str, object]) -> None:
    """Raises `DataError` for an invalid option."""
    for name, value in options.items():
        if not name.isidentifier():
            raise DataError(f"{name!r} is not an option for CSV files")
        _option(name, value)


def _as_arguments(options: Mapping[str, object]) -> str:
    """Options as further arguments of DuckDB's reader."""
    return "".join(f", {name} = {_option(name, value)}" for name, value in options.items())


def _option(name: str, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return literal(value)
        case list() | tuple():
            return "[" + ", ".join(_option(name, item) for item in value) + "]"
        case Mapping():
            parts = (f"{_option(name, str(key))}: {_option(name, item)}" for key, item in value.items())
            return "{" + ", ".join(parts) + "}"
        case _:
            raise DataError(f"the option {name} of CSV files cannot be {value!r}")
