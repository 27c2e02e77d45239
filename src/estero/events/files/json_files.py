"""JSON files → their layout: one event per line, or one array of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from estero.classify.column_names import check_names
from estero.classify.sql_texts import literal, quoted
from estero.errors import DataError
from estero.events.database import Connection
from estero.events.files.text_kinds import NONE, Text, TextColumn, classes_of_json, type_of
from estero.events.files.text_layout import SAMPLE, Part, TextLayout, merged

_LARGEST = 1_000_000_000
"""The largest size of an event in bytes: DuckDB needs a bound, and allocates only what it uses."""
_LEAVES = ("BOOLEAN", "DOUBLE")
_WHOLE = ("BIGINT", "UBIGINT", "HUGEINT")
_INEXACT = ("DOUBLE", "UBIGINT", "HUGEINT")
_LONG_INTEGER = r"[\[:,]\s*-?[0-9]{16,}\s*[,\]}]"
"""An integer in a list or an object, too long for a float to hold it exactly in all cases."""


def json_layout(connection: Connection, files: Sequence[str]) -> TextLayout:
    """The layout of these files: the columns are all keys of all events.

    Reads all events. A column whose values have no common kind is one of JSON, which is shown and not
    compared. Raises `DataError` for text that is not JSON, and for an event that is not an object.
    """
    shapes, keys = zip(*(_shape_and_keys(connection, file) for file in files), strict=True)
    names = dict.fromkeys(name for key in keys for name in key)
    parts = merged(
        Part((file,), (), "read_json", "", {"shape": shape})
        for file, shape in zip(files, shapes, strict=True)
    )
    if not names:
        raise DataError("the events have no keys, so there is no column", file=files[0])
    check_names(tuple(names), files[0])
    if "" in names:  # DuckDB names the columns of other files that have no name, but not these
        raise DataError("an event has an empty key", file=files[0], hint="rename the key")
    as_json = dict.fromkeys(names, "JSON")
    texts = _rows([_reading(part, as_json) for part in parts])
    first, _ = _classes(connection, f"SELECT * FROM ({texts}) LIMIT {SAMPLE}", dict.fromkeys(names, NONE))
    classes, rows = _classes(connection, texts, first)
    columns = _columns(connection, parts, texts, classes)
    read = {column.name: "VARCHAR" if _is_time(column) else column.type for column in columns}
    return TextLayout("json", tuple(columns), tuple(_reading(part, read) for part in parts), rows)


def _reading(part: Part, types: dict[str, str]) -> Part:
    """The part read in these types."""
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
    shape = part.settings["shape"]
    options = f"{_options(shape)}, records = true, auto_detect = false, columns = {{{columns}}}"
    return Part(part.files, tuple(types), part.reader, options, part.settings)


def _options(shape: str) -> str:
    return f", format = '{shape}', maximum_object_size = {_LARGEST}"


def _rows(parts: Sequence[Part]) -> str:
    return " UNION ALL BY NAME ".join(f"SELECT * FROM {part.relation}" for part in parts)


def _is_time(column: TextColumn) -> bool:
    return column.type.startswith(("DATE", "TIME"))


# -------------------------------------------------------------------------------------------- shape


def _shape_and_keys(connection: Connection, file: str) -> tuple[str, list[str]]:
    """The shape of a file, and the keys of its events: those of the first events, then the others."""
    if _extension(file) == ".json":
        if _first_letter(file) == "[":
            return "array", _keys(connection, file, "array")
        try:
            return "newline_delimited", _keys(connection, file, "newline_delimited")
        except duckdb.InvalidInputException:
            try:
                return "unstructured", _keys(connection, file, "unstructured")
            except duckdb.InvalidInputException:
                pass  # the error of reading it as lines says more
    return "newline_delimited", _keys(connection, file, "newline_delimited")


def _extension(file: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(file).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix in (".json", ".jsonl", ".ndjson")), "")


def _first_letter(file: str) -> str:
    with pa.input_stream(file, compression="detect") as stream:
        return str(stream.read(4096).decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")[:1])


def _keys(connection: Connection, file: str, shape: str) -> list[str]:
    part = Part((file,), (), "read_json_objects", _options(shape))
    kinds_and_keys = connection.execute(
        f"SELECT DISTINCT json_type(json), json_keys(json) FROM {part.relation}"
    ).fetchall()
    if any(kind != "OBJECT" for kind, _ in kinds_and_keys):
        raise _no_object(connection, part)
    sample = connection.execute(f"SELECT json_keys(json) FROM {part.relation} LIMIT {SAMPLE}").fetchall()
    ordered = dict.fromkeys(key for (keys,) in sample for key in keys)
    return [*ordered, *sorted({key for _, keys in kinds_and_keys for key in keys} - set(ordered))]


def _no_object(connection: Connection, part: Part) -> DataError:
    numbered = f"SELECT json, row_number() OVER () AS row FROM {part.relation}"
    asked = f"SELECT json::VARCHAR, row FROM ({numbered}) WHERE json_type(json) <> 'OBJECT' LIMIT 1"
    text, row = connection.execute(asked).fetchall()[0]
    return DataError(
        f"this is not a JSON object: {text[:40]}",
        file=part.files[0],
        row=row,
        hint='an event is written as {"kind": "A", …}',
    )


# ------------------------------------------------------------------------------------------- columns


def _classes(connection: Connection, texts: str, first: dict[str, Text]) -> tuple[dict[str, Text], int]:
    """The classes of all columns, and the number of rows.

    Strings are unquoted once, below the tests on them.
    """
    values = (f"{quoted(name)} AS v{place}" for place, name in enumerate(first))
    strings = (f"{quoted(name)} ->> '$' AS s{place}" for place, name in enumerate(first))
    asked = (
        f"bit_or({classes_of_json(f'v{place}', f's{place}', known)})"
        for place, known in enumerate(first.values())
    )
    row = connection.execute(
        f"SELECT {', '.join(asked)}, count(*) FROM (SELECT {', '.join((*values, *strings))} FROM ({texts}))"
    ).fetchall()[0]
    return {name: Text(classes or 0) for name, classes in zip(first, row[:-1], strict=True)}, row[-1]


def _columns(
    connection: Connection, parts: Sequence[Part], texts: str, types: dict[str, Text]
) -> list[TextColumn]:
    nested = [name for name, classes in types.items() if classes & ~Text.NULL == Text.NESTED]
    structures = _structures(connection, parts, texts, nested)
    return [
        TextColumn(name, structures.get(name) or _type_of(classes), classes)
        for name, classes in types.items()
    ]


def _type_of(classes: Text) -> str:
    held = classes & ~Text.NULL
    if held & Text.STRING:
        strings = Text.STRING | Text.DATE | Text.TIME | Text.ZONED | Text.NANO | Text.OTHER
        if held & ~strings:
            return "JSON" if held & Text.NESTED else "VARCHAR"  # like leaves of objects
        return type_of(held & ~Text.STRING) or "VARCHAR"
    kind = type_of(held) or '"NULL"'
    return "JSON" if kind == "VARCHAR" else kind


def _structures(
    connection: Connection, parts: Sequence[Part], texts: str, names: Sequence[str]
) -> dict[str, str]:
    """The types of columns with lists and objects only, whose leaves are of few kinds.

    If files are written in several shapes there are none: such columns are of JSON. Numbers are strings
    inside a column that has an integer which a float may not hold.
    """
    shapes = {part.settings["shape"] for part in parts}
    if not names or len(shapes) > 1:
        return {}
    files = tuple(file for part in parts for file in part.files)
    options = f"{_options(shapes.pop())}, sample_size = -1, maximum_sample_files = {len(files)}"
    relation = connection.sql(f"SELECT * FROM {Part(files, (), 'read_json', options).relation}")
    types = dict(zip(relation.columns, relation.types, strict=True))
    long = ", ".join(
        f"bool_or(regexp_matches(CAST({quoted(name)} AS VARCHAR), {literal(_LONG_INTEGER)}))"
        for name in names
    )
    has_long = connection.execute(f"SELECT {long} FROM ({texts})").fetchall()[0]
    return {
        name: _structure(types[name], exact=not inexact)
        for name, inexact in zip(names, has_long, strict=True)
    }


def _structure(kind: DuckDBPyType, *, exact: bool) -> str:
    """A nested type whose leaves are truth values, 64-bit integers, floats or strings.

    Floats and wider integers are strings if they would not be `exact`, and so are values of several kinds: a
    string unchanged, anything else as its JSON. Spark does the same, but keeps blanks and zeros at the end.
    """
    if kind.id in ("struct", "list", "map"):
        within = {
            name: _structure(child, exact=exact)
            for name, child in kind.children
            if isinstance(child, DuckDBPyType)
        }
        if kind.id == "struct":
            return f"STRUCT({', '.join(f'{quoted(name)} {child}' for name, child in within.items())})"
        *_, values = within.values()
        return f"{values}[]" if kind.id == "list" else f"MAP(VARCHAR, {values})"
    name = str(kind)
    if not exact and name in _INEXACT:
        return "VARCHAR"
    return "BIGINT" if name in _WHOLE else name if name in _LEAVES else "VARCHAR"
