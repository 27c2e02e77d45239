"""The type of a column of a text file, from the texts of all its rows: one rule for both engines.

Each text belongs to one class, computed in SQL; the classes in a column, as bits, decide its type. A type is
chosen only if no text loses anything in it, so ``007`` is a string, not 7, and so is an integer beyond 64
bits; a column whose texts have no common class holds strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

from estero.classify.sql_texts import literal


class Text(IntFlag):
    """The class of a text; the last ones are combined with another."""

    SMALL = 1  # an integer that a DOUBLE holds exactly
    LARGE = 2  # any other integer of 64 bits
    FLOAT = 4
    BOOL = 8
    DATE = 16
    TIME = 32  # date and time, to the microsecond
    NANO = 64  # date and time, with nanoseconds
    ZONED = 128  # date and time, with an offset
    SLASHED = 256  # looks like a date in another order
    OTHER = 512
    NULL = 1024
    SHORT = 2048  # a truth value in one letter or as yes and no
    NAMED = 4096  # a float in words: inf, nan
    SPACED = 8192  # with blanks around it
    NESTED = 16384  # a list or an object of JSON
    STRING = 32768  # a string of JSON


NONE = Text(0)
"""The classes of an empty column."""

_DIGITS = r"(0|[1-9]\d*)"
_EXPONENT = r"([eE][+-]?\d+)"
FLOAT_TEXT = rf"[+-]?({_DIGITS}\.\d*|\.\d+){_EXPONENT}?|-?{_DIGITS}{_EXPONENT}|-0"
"""Floats; without a decimal point, a leading plus sign marks a telephone number."""
_NAMED_FLOATS = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan")
_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_CLOCK = r"([01]?\d|2[0-3]):\d{2}"
_OFFSET = r"( ?(Z|[+-]\d{2}(:?\d{2})?)| UTC)"
_TIME_TEXT = rf"{_DATE}[ T]{_CLOCK}(:\d{{2}}(\.\d{{1,6}}0*)?)?"
_NANO_TEXT = rf"{_DATE}[ T]{_CLOCK}:\d{{2}}\.\d{{7,9}}0*"
_SLASHED_TEXT = r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d{1,4}([ T]\d.*)?"

_PLAIN = Text.NULL | Text.SPACED
_TYPES: Sequence[tuple[Text, str]] = (
    (Text.SMALL | Text.LARGE, "BIGINT"),
    (Text.SMALL | Text.FLOAT | Text.NAMED, "DOUBLE"),
    (Text.BOOL | Text.SHORT, "BOOLEAN"),
    (Text.DATE, "DATE"),
    (Text.DATE | Text.TIME, "TIMESTAMP"),
    (Text.DATE | Text.TIME | Text.NANO, "TIMESTAMP_NS"),
    (Text.DATE | Text.TIME | Text.ZONED, "TIMESTAMP WITH TIME ZONE"),
    (Text.DATE | Text.TIME | Text.NANO | Text.ZONED, "TIMESTAMPTZ_NS"),
)


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a text file: its DuckDB `type`, and the form of its texts.

    `format` is that of strptime if times are not written as in ISO 8601. `decimal` and `thousands` are the
    separators in numbers. `classes` are those that occur; `given` says that the user gave the type.
    """

    name: str
    type: str
    classes: Text = NONE
    format: str | None = None
    decimal: str = "."
    thousands: str = ""
    given: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether any reader of this type understands the texts unchanged."""
        odd = Text.SPACED | Text.SHORT | Text.NAMED
        times = self.type.startswith(("DATE", "TIME"))
        return not (times or self.given or self.classes & odd or self.decimal != "." or self.thousands)


def type_of(classes: Text) -> str | None:
    """The DuckDB type that holds texts of these classes without loss; None if there is no text.

    >>> type_of(Text.SMALL | Text.FLOAT)
    'DOUBLE'
    >>> type_of(Text.LARGE | Text.FLOAT)
    'VARCHAR'
    """
    held = classes & ~_PLAIN
    if not held:
        return None
    return next((name for allowed, name in _TYPES if not held & ~allowed), "VARCHAR")


def allowed_by(type_name: str) -> Text:
    """The classes whose texts a type holds without loss.

    >>> allowed_by("BIGINT") == Text.SMALL | Text.LARGE
    True
    """
    return next(allowed for allowed, name in _TYPES if name == type_name)


def classes_of(text: str, first: Text = NONE, *, spaced: bool = True) -> str:
    """SQL: the class of a text, itself given in SQL. The classes in `first` are tried first, for speed."""
    tests = sorted(_tests(text), key=lambda test: not test[0] & first)
    whens = "".join(f" WHEN {condition} THEN {value}" for _, condition, value in tests)
    rest = f"CASE WHEN {_full_match(text, _SLASHED_TEXT)} THEN {Text.SLASHED:d} ELSE {Text.OTHER:d} END"
    if spaced:
        inner = classes_of(f"trim({text})", first, spaced=False)
        blank = f"starts_with({text}, ' ') OR ends_with({text}, ' ')"
        rest = f"CASE WHEN {blank} THEN {Text.SPACED:d} | {inner} ELSE {rest} END"
    return f"CASE WHEN {text} IS NULL THEN {Text.NULL:d}{whens} ELSE {rest} END"


def time_classes_of(text: str) -> str:
    """SQL: the class of a text that is a time or only a text."""
    times = Text.DATE | Text.TIME | Text.NANO | Text.ZONED
    whens = "".join(
        f" WHEN {condition} THEN {value}" for kind, condition, value in _tests(text) if kind & times
    )
    # The patterns are slow, and most strings do not begin with a year.
    return f"CASE WHEN ascii({text}) NOT BETWEEN 48 AND 57 THEN {Text.OTHER:d}{whens} ELSE {Text.OTHER:d} END"


def classes_of_json(value: str, inner: str, first: Text = NONE) -> str:
    """SQL: the class of a JSON value, of which `inner` is the string.

    Numbers that no type can hold are SLASHED, strings STRING.
    """
    text = f"CAST({value} AS VARCHAR)"
    string = f"{Text.STRING:d} | ({time_classes_of(inner)})"
    if type_of(first & ~Text.STRING) == "VARCHAR":
        string = f"{Text.STRING | Text.OTHER:d}"
    number = f"CASE WHEN {{0}} = {Text.OTHER:d} THEN {Text.SLASHED:d} ELSE {{0}} END"
    return (
        f"CASE WHEN {value} IS NULL OR {text} = 'null' THEN {Text.NULL:d}"
        f" WHEN starts_with({text}, '\"') THEN {string}"
        f" WHEN starts_with({text}, '{{') OR starts_with({text}, '[') THEN {Text.NESTED:d}"
        f" ELSE {number.format(classes_of(text, first, spaced=False))} END"
    )


def _tests(text: str) -> list[tuple[Text, str, str]]:
    """The classes with the condition of each; no text meets two of them."""
    lower = f"lower({text})"
    integer = f"CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) = {text}"
    small = f"CASE WHEN length({text}) < 16 OR {_exact(text)} THEN {Text.SMALL:d} ELSE {Text.LARGE:d} END"
    finite = f"{_full_match(text, FLOAT_TEXT)} AND isfinite(TRY_CAST({text} AS DOUBLE))"
    short, words = ("('t', 'f', 'y', 'n', 'yes', 'no')", "('true', 'false')")
    named = ", ".join(f"'{name}'" for name in _NAMED_FLOATS)
    return [
        (Text.SMALL | Text.LARGE, integer, small),
        # Most times are written as DuckDB writes them: a comparison, which is faster than a pattern.
        (Text.TIME, f"{_canonical_time(text)} OR {_is_time(text, _TIME_TEXT)}", f"{Text.TIME:d}"),
        (Text.FLOAT, finite, f"{Text.FLOAT:d}"),
        (Text.BOOL, f"{lower} IN {words}", f"{Text.BOOL:d}"),
        (Text.SHORT, f"{lower} IN {short}", f"{Text.BOOL | Text.SHORT:d}"),
        (Text.NAMED, f"{lower} IN ({named})", f"{Text.FLOAT | Text.NAMED:d}"),
        (Text.DATE, f"{_full_match(text, _DATE)} AND TRY_CAST({text} AS DATE) IS NOT NULL", f"{Text.DATE:d}"),
        (Text.ZONED, _is_time(text, _TIME_TEXT + _OFFSET), f"{Text.ZONED:d}"),
        (Text.NANO, _is_time(text, _NANO_TEXT, "TIMESTAMP_NS"), f"{Text.NANO:d}"),
        (
            Text.NANO | Text.ZONED,
            _is_time(text, _NANO_TEXT + _OFFSET, "TIMESTAMPTZ_NS"),
            f"{Text.NANO | Text.ZONED:d}",
        ),
    ]


def _exact(text: str) -> str:
    return f"CAST(CAST({text} AS DOUBLE) AS HUGEINT) = CAST({text} AS HUGEINT)"


def _canonical_time(text: str) -> str:
    shape = f"length({text}) BETWEEN 19 AND 26 AND {text}[5] = '-' AND ascii({text}) BETWEEN 48 AND 57"
    return f"({shape} AND CAST(TRY_CAST({text} AS TIMESTAMP) AS VARCHAR) = {text})"


def _is_time(text: str, pattern: str, kind: str = "TIMESTAMPTZ") -> str:
    return f"({_full_match(text, pattern)} AND TRY_CAST({text} AS {kind}) IS NOT NULL)"


def _full_match(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern)})"
