"""Constants between their text and their value: numbers, strings, timestamps."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from estero.errors import NOWHERE, QueryError, Span
from estero.language.tree.durations import Duration

Value = bool | int | float | str | datetime | Duration | None
"""The values of literals; a datetime is timezone-aware, in UTC, with microseconds."""

_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
TIMESTAMP_FORM: Final = "YYYY-MM-DD hh:mm:ss.ffffff, with Z or an offset such as +02:00 (none means UTC)"

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
MOST_DIGITS: Final = 1_000
"""Integers of more digits are refused as they are read and written: Python takes quadratic time for them, and
refuses 4,301 digits."""


def integer_value(text: str, span: Span) -> int:
    """The value of a whole number, with or without a sign and with any number of leading zeros.

    Raises `QueryError` for more than `MOST_DIGITS` digits.

    >>> integer_value("-007", Span(0, 4))
    -7
    """
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > MOST_DIGITS:
        raise _too_long(span, f"{digits[:20]}…", f"it has {len(digits):,} digits")
    return -int(digits) if text.startswith("-") else int(digits)


def integer_text(value: int) -> str:
    """The text of a whole number; raises `QueryError` for more than `MOST_DIGITS` digits."""
    if abs(value) >= _TOO_LARGE:
        raise _too_long(NOWHERE, "", f"it has more than {MOST_DIGITS:,} digits")
    return str(value)


def _too_long(span: Span, digits: str, hint: str) -> QueryError:
    expected = f"an integer from {INT_MIN} to {INT_MAX}"
    return QueryError(
        "this integer does not fit in 64 bits", span=span, found=digits, expected=expected, hint=hint
    )


_TOO_LARGE: Final = 10**MOST_DIGITS


def string_value(text: str) -> str:
    """The value of a string literal ``'it''s'``."""
    return text[1:-1].replace("''", "'")


def timestamp_value(text: str) -> datetime:
    """The instant that the text between the quotes of ``TIMESTAMP '…'`` names, in UTC.

    Raises ValueError if it is not of `TIMESTAMP_FORM` or no such instant exists.

    >>> timestamp_value("2024-02-29 12:00+02:00").isoformat()
    '2024-02-29T10:00:00+00:00'
    """
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(f"{text!r} is not a timestamp")
    read = datetime.fromisoformat(re.sub(r"\s(?=[Z+-]|$)", "", text))
    try:
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is before year 1 or after year 9999 in UTC") from error


def literal_text(value: Value) -> str:
    """The text of a constant; it reads back as the same value of the same type.

    >>> literal_text("it's"), literal_text(0.1), literal_text(None)
    ("'it''s'", '0.1', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return integer_text(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(UTC).isoformat().replace('+00:00', 'Z')}'"
    if isinstance(value, Duration):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def _float_text(value: float) -> str:
    if math.isnan(value):
        raise ValueError("NaN has no literal")
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


def in_lower_case(text: str) -> str:
    """The text in lower case letter by letter: Python writes the last sigma of a word differently."""
    if text.isascii():
        return text.lower()
    return "".join("i" if letter == "İ" else letter.lower() for letter in text)
