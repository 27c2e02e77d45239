"""The layout of text files → Spark's readers: the values that they read, and those converted from text.

Spark's readers and DuckDB agree on integers, floats, truth values and strings in their usual forms. Times,
and values with blanks around them or written in words, are read as text, and converted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from estero.classify.sql_texts import quoted
from estero.errors import DataError
from estero.events.database import lent_cursor
from estero.events.files.csv_files import has_quoted_newlines, inline_comment, nulls_of
from estero.events.files.text_kinds import Text, TextColumn
from estero.events.files.text_layout import Part, TextLayout

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import DataType, StructType

_CODES = {"Y": "y", "m": "M", "d": "d", "H": "H", "I": "h", "M": "m", "S": "s", "f": "SSSSSS", "p": "a"}
_WIDTHS = {"y": 4}
_ZONED = "TIMESTAMP WITH TIME ZONE"


@dataclass(frozen=True, slots=True)
class TextReading:
    """How Spark reads the `files` of one part: format, options, schema, then the types of all `columns`.

    `beside` are columns that Spark finds in the names of directories.
    """

    files: tuple[str, ...]
    form: str
    options: Mapping[str, Any]
    columns: tuple[TextColumn, ...]
    nulls: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @staticmethod
    def of(layout: TextLayout, options: Mapping[str, object]) -> list[TextReading]:
        """The readings of all parts. Raises `DataError` for what Spark cannot read as DuckDB does."""
        for column in layout.columns:
            _check_known(column, layout.parts[0].files[0])
        if layout.form == "json":
            return [_of_json(part, layout) for part in layout.parts]
        with lent_cursor() as connection:
            multiline = has_quoted_newlines(connection, layout)
        return [_of_csv(part, layout, options, multiline=multiline) for part in layout.parts]

    @property
    def schema(self) -> StructType:
        """The columns as Spark reads them, before they are converted."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(column.name, self._read_as(column)) for column in self.columns])

    def load(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        """The rows of the files at these paths, each column in its type."""
        asked = reader.format(self.form).schema(self.schema).options(**{"mode": "FAILFAST", **self.options})
        return self.converted(asked.load(list(paths)))

    def follow(self, reader: DataStreamReader, path: str, given: Mapping[str, Any]) -> DataFrame:
        """The same for a stream; if `given` has ``mode=PERMISSIVE``, values that do not fit are NULL."""
        options = {"mode": "FAILFAST", **self.options, **given}
        asked = reader.format(self.form).schema(self.schema).options(**options)
        return self.converted(asked.load(path), strict=str(options["mode"]).upper() != "PERMISSIVE")

    def converted(self, frame: DataFrame, *, strict: bool = True) -> DataFrame:
        """The frame with each column in its type; with `strict` a text that does not fit is an error."""
        if all(self._is_read(column) for column in self.columns):
            return frame
        beside = (quoted(name, mark="`") for name in self.beside)
        return frame.select(*(self._column(column, strict=strict) for column in self.columns), *beside)

    def _is_read(self, column: TextColumn) -> bool:
        """Whether Spark's reader converts the values of a column itself."""
        if column.type in ("JSON", '"NULL"'):
            return False
        if self.form == "json":
            return not column.type.startswith(("DATE", "TIMESTAMP"))
        return column.is_plain and not self.nulls

    def _read_as(self, column: TextColumn) -> DataType:
        from pyspark.sql.types import StringType, VariantType

        if column.type == "JSON":
            return VariantType()
        return _spark_type(column.type) if self._is_read(column) else StringType()

    def _column(self, column: TextColumn, *, strict: bool) -> Column:
        from pyspark.sql import functions as F  # noqa: N812

        read = F.col(quoted(column.name, mark="`"))
        if self._is_read(column):
            return read
        if column.type == "JSON":
            return F.to_json(read).alias(column.name)
        if column.type == '"NULL"':
            return F.lit(None).alias(column.name)
        text = F.when(read.isin(*self.nulls), None).otherwise(read) if self.nulls else read
        value = _converted(text, column)
        if strict and column.type != "VARCHAR":
            said = f"estero: a text in column {column.name!r} cannot be read as {column.type}"
            failure = F.raise_error(F.lit(said))
            value = F.when(text.isNotNull() & value.isNull(), failure).otherwise(value)
        return value.alias(column.name)


# ---------------------------------------------------------------------------------------- reading


def _of_json(part: Part, layout: TextLayout) -> TextReading:
    if part.settings["shape"] == "unstructured":
        raise DataError(
            "an event spans several lines, which Spark cannot read",
            file=part.files[0],
            hint="write each event on one line, or all of them as one array",
        )
    options = {"multiLine": part.settings["shape"] == "array"}
    return TextReading(part.files, "json", options, _columns_of(part, layout))


def _of_csv(part: Part, layout: TextLayout, options: Mapping[str, object], *, multiline: bool) -> TextReading:
    settings = part.settings
    columns = _columns_of(part, layout)
    if "skip" in options and settings["skip"]:
        raise DataError(
            f"the header is below {settings['skip']} other lines, which Spark cannot skip",
            file=part.files[0],
            hint="remove them",
        )
    if len(columns) == 1 and columns[0].classes & Text.NULL:
        raise DataError(
            "a line is blank, and Spark would skip it", file=part.files[0], hint="remove such lines"
        )
    dialect = {
        "sep": next(settings[name] for name in ("delim", "sep", "delimiter") if name in settings),
        "quote": settings["quote"],
        "escape": settings["escape"],
        "header": bool(settings["header"]),
        "nullValue": "",
        "multiLine": multiline,
        # A row with too few values is an error even if the query needs only those that it has.
        "columnPruning": False,
    }
    if mark := _comment(part, options):
        dialect["comment"] = mark
    if "encoding" in settings:
        dialect["encoding"] = settings["encoding"]
    return TextReading(part.files, "csv", dialect, columns, nulls_of(options))


def _columns_of(part: Part, layout: TextLayout) -> tuple[TextColumn, ...]:
    """The columns of a part in the order of its files."""
    columns = {column.name: column for column in layout.columns}
    return tuple(columns[name] for name in part.names)


def _comment(part: Part, options: Mapping[str, object]) -> str:
    """The mark of a comment for Spark, which drops such lines anywhere; empty if there is none."""
    if mark := str(options.get("comment", "")):
        if place := inline_comment(part.files, mark):
            raise DataError(
                "a comment begins inside a line, and Spark knows only whole lines of comments",
                file=place[0],
                line=place[1],
            )
        return mark
    if not part.settings["skip"]:
        return ""
    with lent_cursor() as connection:
        first = quoted(part.names[0])
        asked = f"SELECT {first} FROM {part.relation} WHERE starts_with({first}, '#') LIMIT 1"
        for (text,) in connection.execute(asked).fetchall():
            raise DataError(
                f"comments stand above the header, and an event begins with #, too: {text!r}; "
                "Spark would take it for a comment",
                file=part.files[0],
                hint="remove the comments, or quote that value and the comments' #",
            )
    return "#"


def _check_known(column: TextColumn, file: str) -> None:
    if column.type in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        raise DataError(
            "the timestamps have nanoseconds, and those of Spark microseconds",
            file=file,
            column=column.name,
            hint="round them, or run the query in this process (--engine duckdb)",
        )


# ------------------------------------------------------------------------------------------ values


def _spark_type(name: str) -> DataType:
    """Spark's type for one of DuckDB's; values without one are read as text."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StringType

    with lent_cursor() as connection:
        arrow = connection.sql(f"SELECT CAST(NULL AS {name}) AS value").to_arrow_table().schema.field(0).type
    try:
        return from_arrow_type(arrow, prefer_timestamp_ntz=True)
    except PySparkException:
        return StringType()


def _converted(text: Column, column: TextColumn) -> Column:
    """The values of a column of texts, NULL where one does not fit."""
    from pyspark.sql import functions as F  # noqa: N812

    if column.type == "VARCHAR":
        return text
    if column.format is not None:
        written = F.lit(java_format(column.format))
        return F.to_timestamp_ntz(text, written).try_cast(_spark_type(column.type))
    trimmed = F.trim(text)
    if column.type.startswith("TIMESTAMP"):
        whole = F.regexp_replace(trimmed, r"^([^ T]+[ T]\d+:\d\d)(?!:)", "$1:00")  # with its seconds
        return (_with_offset(whole) if column.type == _ZONED else whole).try_cast(_spark_type(column.type))
    if column.thousands:
        trimmed = F.replace(trimmed, F.lit(column.thousands), F.lit(""))
    if column.decimal != ".":
        trimmed = F.translate(trimmed, column.decimal + ".", "." + column.decimal)
    return trimmed.try_cast(_spark_type(column.type))


def _with_offset(text: Column) -> Column:
    """A time with an offset in hours and minutes; one without any is in UTC."""
    from pyspark.sql import functions as F  # noqa: N812

    day = text.rlike(r"^\d+-\d+-\d+$")
    utc = F.regexp_replace(text, r"( ?Z| UTC)$", "+00:00")
    hours = F.regexp_replace(utc, r"(:\d\d(?:\.\d+)?) ?([+-]\d\d)$", r"$1$2:00")
    minutes = F.regexp_replace(hours, r" ?([+-]\d\d):?(\d\d)$", "$1:$2")
    naive = ~minutes.rlike(r"[+-]\d\d:\d\d$")
    return (
        F.when(day, F.concat(text, F.lit(" 00:00:00+00:00")))
        .when(naive, F.concat(text, F.lit("+00:00")))
        .otherwise(minutes)
    )


def java_format(strptime: str) -> str:
    """A format such as ``%Y%m%d%H%M`` in Java's letters; numbers next to others have all their digits.

    >>> java_format("%d/%m/%YT%H:%M")
    "d/M/y'T'H:m"
    >>> java_format("%Y%m%d%H%M")
    'yyyyMMddHHmm'
    """
    unknown = [code for code in re.findall(r"%(.)", strptime) if code not in {*_CODES, "%"}]
    if unknown:
        raise DataError(f"Spark reads no timestamps with %{unknown[0]}: the format is {strptime}")
    packed = re.search(r"%[^p%]%[^p%]", strptime) is not None
    parts = []
    for code, words in re.findall(r"%(.)|((?:[^%])+)", strptime):
        letter = _CODES.get(code, code)
        wide = letter * _WIDTHS.get(letter, 2) if packed and letter in "yMdHhms" else letter
        parts.append(wide if code else re.sub(r"[A-Za-z]+", r"'\g<0>'", words))
    return "".join(parts)
