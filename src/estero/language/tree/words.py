"""The words of the language: keywords, names, aggregates and scalar functions."""

from __future__ import annotations

import re
from typing import Final

KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "PARTITION", "BY", "WITHIN", "CONSUME", "LIMIT"),
    *("FILTER", "KEEP", "AS", "UNLESS", "ALL", "AND", "OR", "NOT"),
    *("IN", "BETWEEN", "LIKE", "IS", "TRUE", "FALSE", "NULL"),
)
"""Reserved in any case: a name that is one of these is written in double quotes."""

AGGREGATES: Final = ("count", "sum", "avg", "stddev", "min", "max", "first", "last")
"""Functions of the set of events marked with a variable."""

SET_PREDICATES: Final = ("increasing", "decreasing")
"""Built-in predicates over sets of events; users register more."""

SCALAR_FUNCTIONS: Final = {
    "abs": "the absolute value; of the kind of its argument",
    "floor": "the largest whole number not above the argument; of the kind of its argument",
    "ceil": "the smallest whole number not below the argument; of the kind of its argument",
    "length": "the number of code points of a string, an integer",
    "coalesce": "the first argument that is not NULL; all of one kind, or of integers and floats",
    "year": "the year of a timestamp in UTC, an integer",
    "month": "the month of a timestamp in UTC, 1 to 12",
    "day": "the day of the month of a timestamp in UTC, 1 to 31",
    "hour": "the hour of a timestamp in UTC, 0 to 23",
    "minute": "the minute of a timestamp, 0 to 59",
    "second": "the whole seconds of a timestamp, 0 to 59",
}
"""Functions of values of one event that mean the same on every engine. NULL gives NULL.

Not here: lower and upper (they differ outside ASCII), round (engines differ in ties and kinds).
"""

_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_KEYWORD: Final = re.compile("|".join(KEYWORDS), re.IGNORECASE)


def is_keyword(word: str) -> bool:
    """Whether the lexer reads this word as a keyword."""
    return _KEYWORD.fullmatch(word) is not None


def quoted(name: str) -> str:
    """The name as it is written in a query: in double quotes where it needs them.

    >>> quoted("volume"), quoted("select"), quoted("two words")
    ('volume', '"select"', '"two words"')
    """
    if _PLAIN_NAME.fullmatch(name) and not is_keyword(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def unquoted(text: str) -> str:
    """The name that a piece of a query's text writes: the reverse of `quoted`, backticks too."""
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark) if mark in ('"', "`") else text
