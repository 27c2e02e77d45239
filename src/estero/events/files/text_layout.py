"""Text files → their layout: the columns with types that all rows fit, and the query that reads them.

Readers give every column as text. One pass over all rows decides the types (`text_kinds`), so that values
below the first rows are not forced into a type. Spark reads by the same layout. `odd_text` finds the row that
keeps a column from having the type that the rows above it suggest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from estero.classify.sql_texts import literal, quoted
from estero.errors import DataError
from estero.events.database import Connection
from estero.events.files.partitions import Partitions
from estero.events.files.readers import NAMING, NO_HIVE, rows_of
from estero.events.files.text_kinds import (
    NONE,
    Text,
    TextColumn,
    allowed_by,
    classes_of,
    classes_of_json,
    type_of,
)

SAMPLE = 2048
"""The rows that show which columns are strings, and which class to try first; types use all rows."""

_DATES = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d")
_CLOCKS = ("", " %H:%M:%S", " %H:%M", "T%H:%M:%S", " %H:%M:%S.%f", " %I:%M:%S %p")
_ORDERS = [date.format(mark) + clock for mark in "/-. " for date in _DATES for clock in _CLOCKS]
_LOCAL = Text.DATE | Text.TIME
_TIMES: Mapping[str, Text] = {
    "DATE": _LOCAL,
    "TIMESTAMP": _LOCAL,
    "DATETIME": _LOCAL,
    "TIMESTAMP_S": _LOCAL,
    "TIMESTAMP_MS": _LOCAL,
    "TIMESTAMP_NS": _LOCAL | Text.NANO,
    "TIMESTAMPTZ": _LOCAL | Text.ZONED,
    "TIMESTAMP WITH TIME ZONE": _LOCAL | Text.ZONED,
    "TIMESTAMPTZ_NS": _LOCAL | Text.ZONED | Text.NANO,
}
"""The classes of texts that a type of times holds without loss."""
_COARSE = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS")
"""The types of times without microseconds, for which no text may have any."""

_ALIKE = (
    Text.SMALL | Text.LARGE | Text.FLOAT | Text.NAMED,
    Text.BOOL | Text.SHORT,
    Text.DATE | Text.TIME | Text.NANO | Text.ZONED,
)
"""Classes that people take for one kind: a word among numbers is odder than a float among integers."""
_ALWAYS = Text.NULL | Text.SPACED

_WHOLE = re.compile("U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|INT|INT[1248]|LONG|SHORT")
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)\(\d+, ?(\d+)\)")


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read together, and the `names` of their columns.

    `reader` is the function of DuckDB that gives all columns as text, and `options` are its arguments, in
    SQL. `settings` has them for other readers.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    reader: str
    options: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def relation(self) -> str:
        """The rows of all files, in SQL."""
        return self.relation_of(*self.files)

    @property
    def named_relation(self) -> str:
        """The rows of all files, in SQL, with the path of the file of each in `FILE`."""
        return rows_of(self.reader, self.files, f"{self.options}{NAMING}")

    def relation_of(self, *files: str) -> str:
        """The rows of some of the files, in SQL."""
        return rows_of(self.reader, files, f"{self.options}{NO_HIVE}")


def merged(parts: Iterable[Part]) -> list[Part]:
    """The parts, with adjacent ones joined if they differ only in their files."""
    return [
        replace(alike, files=tuple(file for part in group for file in part.files))
        for alike, group in itertools.groupby(parts, lambda part: replace(part, files=()))
    ]


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The columns of text files, in order, the parts that are read in turn, and the number of rows."""

    form: Literal["csv", "json"]
    columns: tuple[TextColumn, ...]
    parts: tuple[Part, ...]
    rows: int
    partitions: Partitions | None = None

    @property
    def query(self) -> str:
        """The query that reads all rows, each column in its type; those of directories come last."""
        return _rows(self.columns, self.parts, converted, self.partitions)

    def partitioned(self, partitions: Partitions | None) -> TextLayout:
        """The same with the columns that directories name; `DataError` if files have one of them."""
        if partitions is None:
            return self
        taken = {column.name.lower() for column in self.columns}
        for name in partitions.names:
            if name.lower() in taken:
                raise DataError(
                    "the column is in the files and in the names of their directories",
                    file=self.parts[0].files[0],
                    column=name,
                    hint="leave it out of the files, or name the files themselves: ['…/a.csv', '…/b.csv']",
                )
        return replace(self, partitions=partitions)


def settled(
    connection: Connection,
    form: Literal["csv", "json"],
    columns: Sequence[TextColumn],
    parts: Sequence[Part],
) -> TextLayout:
    """The layout in which every column has its type; reads all rows once.

    Columns whose type is given keep it. Raises `DataError` for the first row that does not fit such a type.
    """
    texts = _rows(columns, parts, lambda column: quoted(column.name))
    first, _ = _classes(connection, f"SELECT * FROM ({texts}) LIMIT {SAMPLE}", columns, {})
    held, rows = _classes(connection, texts, columns, first)
    typed = [_typed(column, *held[column.name]) for column in columns]
    for column in typed:
        if column.given and held[column.name][1]:
            raise _misfit(connection, column, parts)
    ordered = [
        _in_other_order(connection, column, texts) if column.classes & ~Text.NULL == Text.SLASHED else column
        for column in typed
    ]
    return TextLayout(form, tuple(ordered), tuple(parts), rows)


def _rows(
    columns: Sequence[TextColumn],
    parts: Sequence[Part],
    value: Callable[[TextColumn], str],
    partitions: Partitions | None = None,
) -> str:
    """The query that reads all rows, with the `value` of each column in SQL."""
    queries = []
    named = () if partitions is None else partitions.columns
    for part in parts:
        here = [column for column in columns if column.name in part.names]
        selected = [f"{value(column)} AS {quoted(column.name)}" for column in here]
        selected += [column.sql for column in named]
        queries.append(f"SELECT {', '.join(selected)} FROM {part.named_relation if named else part.relation}")
    return " UNION ALL BY NAME ".join(queries)


_Held = dict[str, tuple[Text, bool]]
"""The classes of each column, and whether a text does not fit its given type or format."""


def _classes(
    connection: Connection, texts: str, columns: Sequence[TextColumn], first: _Held
) -> tuple[_Held, int]:
    """The classes of the columns of `texts`, and the number of rows.

    A column of strings in `first` stays one, and is only counted.
    """
    asked = [_question(column, first.get(column.name)) for column in columns]
    row = connection.execute(f"SELECT {', '.join(asked)}, count(*) FROM ({texts})").fetchall()[0]
    held = {}
    for place, column in enumerate(columns):
        classes, misfits = row[2 * place], row[2 * place + 1]
        before = first.get(column.name, (NONE, False))[0]
        held[column.name] = (Text(classes or 0) | before, bool(misfits))
    return held, row[-1]


def _question(column: TextColumn, known: tuple[Text, bool] | None) -> str:
    """Two aggregates: the classes of a column, and whether a text does not fit the given type."""
    text = quoted(column.name)
    wrong = f"bool_or({misfits(column)})" if column.given or column.format is not None else "false"
    if known is not None and type_of(known[0]) == "VARCHAR" and known[0] & ~Text.NULL != Text.SLASHED:
        return f"CASE WHEN count({text}) = count(*) THEN 0 ELSE {Text.NULL:d} END, {wrong}"
    first = NONE if known is None else known[0]
    return f"bit_or({classes_of(number_text(column), first)}), {wrong}"


def _typed(column: TextColumn, classes: Text, wrong: bool) -> TextColumn:
    if column.given:
        return replace(column, classes=classes)
    if column.format is not None and not wrong and classes & ~Text.NULL:
        date = not re.search("%[HIMSfp]", column.format)
        return replace(column, classes=classes, type="DATE" if date else "TIMESTAMP")
    return replace(column, classes=classes, type=type_of(classes) or '"NULL"', format=None)


def _in_other_order(connection: Connection, column: TextColumn, texts: str) -> TextColumn:
    """The column as one of times, if its texts are dates in exactly one order of day, month and year."""
    text = quoted(column.name)
    tried = [f"count({text}) = count({_parsed(text, order)})" for order in _ORDERS]
    fits = connection.execute(f"SELECT {', '.join(tried)} FROM ({texts})").fetchall()[0]
    formats = [order for order, fit in zip(_ORDERS, fits, strict=True) if fit]
    if len(formats) != 1:
        return column
    return replace(column, format=formats[0], type="TIMESTAMP" if "%H" in formats[0] else "DATE")


def _parsed(text: str, form: str) -> str:
    return f"try_strptime({text}, {literal(form)})"


def number_text(column: TextColumn) -> str:
    """SQL: the text of a column with a decimal point in its numbers and no thousands separator."""
    text = quoted(column.name)
    if column.thousands:
        text = f"replace({text}, {literal(column.thousands)}, '')"
    if column.decimal != ".":
        text = f"translate({text}, {literal(column.decimal + '.')}, {literal('.' + column.decimal)})"
    return text


def converted(column: TextColumn) -> str:
    """SQL: the texts of a column in its type."""
    if column.type in ("VARCHAR", "JSON"):
        return quoted(column.name)
    if column.format is not None:
        return f"CAST(strptime({quoted(column.name)}, {literal(column.format)}) AS {column.type})"
    text = number_text(column)
    spaced = column.given or column.classes & Text.SPACED
    return f"CAST({f'trim({text})' if spaced else text} AS {column.type})"


def misfits(column: TextColumn) -> str:
    """SQL: whether a text does not fit the given type or format, or would lose something in it."""
    text = quoted(column.name)
    if column.format is not None:
        return f"({text} IS NOT NULL AND {_parsed(text, column.format)} IS NULL)"
    trimmed = f"trim({number_text(column)})"
    lost = f"TRY_CAST({trimmed} AS {column.type}) IS NULL"
    if lossless := _lossless(column.type.upper(), trimmed):
        lost = f"{lost} OR NOT {lossless}"
    return f"({text} IS NOT NULL AND ({lost}))"


def _lossless(asked: str, text: str) -> str | None:
    """SQL: whether a text that can be cast to a type has no more than that type can hold."""
    if _WHOLE.fullmatch(asked):
        return f"regexp_full_match({text}, '[+-]?[0-9]+')"
    if decimal := _DECIMAL.fullmatch(asked):
        return f"regexp_full_match({text}, {literal(f'[+-]?[0-9]*([.][0-9]{{0,{decimal[1]}}}0*)?')})"
    if asked in ("DOUBLE", "FLOAT", "REAL"):
        return f"(isfinite(TRY_CAST({text} AS DOUBLE)) OR NOT regexp_matches({text}, '[0-9]'))"
    if asked not in _TIMES:
        return None
    only = f"({classes_of(text, spaced=False)}) & {~_TIMES[asked] & 0xFFFF:d} = 0"
    if asked not in _COARSE:
        return only
    return f"({only} AND CAST(TRY_CAST({text} AS {asked}) AS TIMESTAMP) = TRY_CAST({text} AS TIMESTAMP))"


def _misfit(connection: Connection, column: TextColumn, parts: Sequence[Part]) -> DataError:
    """The error that names the first text that does not fit the given type."""
    asked = column.type if column.format is None else f"{column.type} written as {column.format}"
    odd = _first_text(connection, misfits(column), column, parts)
    if odd is None:
        raise ValueError(f"all texts of {column.name} fit {asked}")
    return DataError(
        f"{odd.text!r} cannot be read as {asked} without loss",
        file=odd.file,
        row=odd.row,
        column=column.name,
        hint="csv_options={'types': …} says what a column holds",
    )


# ---------------------------------------------------------------------------------------- odd texts


@dataclass(frozen=True, slots=True)
class OddText:
    """A text of another kind than the first one of its column, and its position; `row` counts from 1."""

    file: str
    row: int
    text: str


def odd_text(connection: Connection, layout: TextLayout, name: str) -> OddText | None:
    """The text that makes a column one of strings or JSON; None if its first does, or its type is given."""
    column = next((described for described in layout.columns if described.name == name), None)
    if column is None or column.given or column.type not in ("VARCHAR", "JSON"):
        return None
    text = quoted(name)
    is_json = layout.form == "json"
    classes = classes_of_json(text, f"{text} ->> '$'") if is_json else classes_of(number_text(column))
    parts = [_as_json(part, name) for part in layout.parts] if is_json else layout.parts
    first = _first_class(connection, classes, column, parts)
    promised = type_of(first)
    if promised in (None, "VARCHAR"):
        return None
    for allowed in (*(kind for kind in _ALIKE if first & kind), allowed_by(str(promised))):
        odd = f"({classes}) & {~(allowed | _ALWAYS) & 0xFFFF:d} <> 0"
        example = _first_text(connection, odd, column, parts)
        if example is not None:
            return example
    return None


def _as_json(part: Part, name: str) -> Part:
    """The part with a column of strings in JSON form, in which they have quotes and numbers have none."""
    read = f"{literal(name)}: "
    options = part.options.replace(read + literal("VARCHAR"), read + literal("JSON"))
    return replace(part, options=options)


def _with(column: TextColumn, parts: Sequence[Part]) -> list[Part]:
    """The parts that have a column."""
    return [part for part in parts if column.name in part.names]


def _first_class(connection: Connection, classes: str, column: TextColumn, parts: Sequence[Part]) -> Text:
    """The class of the first text of a column."""
    for part in _with(column, parts):
        asked = f"SELECT {classes} FROM {part.relation} WHERE {quoted(column.name)} IS NOT NULL LIMIT 1"
        if (first := connection.execute(asked).fetchone()) is not None:
            return Text(first[0])
    return NONE


def _first_text(
    connection: Connection, condition: str, column: TextColumn, parts: Sequence[Part]
) -> OddText | None:
    """The first text for which a condition in SQL is true."""
    text = quoted(column.name)
    for part in _with(column, parts):
        for file in part.files:
            numbered = f"SELECT {text}, row_number() OVER () AS __row FROM {part.relation_of(file)}"
            asked = f"SELECT CAST({text} AS VARCHAR), __row FROM ({numbered}) WHERE {condition} LIMIT 1"
            if (first := connection.execute(asked).fetchone()) is not None:
                return OddText(file, first[1], first[0])
    return None
