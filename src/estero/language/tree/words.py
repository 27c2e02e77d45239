"""The words of the language: keywords and names; functions are in functions.py."""

from __future__ import annotations

import re
from typing import Final

from estero.language.tree.exact_names import given_name
from estero.language.tree.paths import column_of, is_path, steps_of

KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "PARTITION", "BY", "WITHIN", "CONSUME", "LIMIT"),
    *("FILTER", "KEEP", "AS", "UNLESS", "ALL", "AND", "OR", "NOT"),
    *("IN", "BETWEEN", "LIKE", "ILIKE", "IS", "TRUE", "FALSE", "NULL"),
)
"""The reserved words, in any case; a name that is one of these is written in double quotes."""

_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_KEYWORD: Final = re.compile("|".join(KEYWORDS), re.IGNORECASE)


def is_keyword(word: str) -> bool:
    """Whether the lexer reads this word as a keyword."""
    return _KEYWORD.fullmatch(word) is not None


def quoted(name: str) -> str:
    """The name as it is written in a query: in double quotes where it needs them, a path step by step.

    >>> quoted("volume"), quoted("select"), quoted("two words")
    ('volume', '"select"', '"two words"')
    """
    if is_path(name):
        inside = (f"[{step}]" if isinstance(step, int) else f".{quoted(step)}" for step in steps_of(name))
        return quoted(column_of(name)) + "".join(inside)
    name = given_name(name)
    if _PLAIN_NAME.fullmatch(name) and not is_keyword(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def named(name: str) -> str:
    """The name of an attribute in messages and answers: itself, or a path as written in a query."""
    return quoted(name) if is_path(name) else given_name(name)


def unquoted(text: str) -> str:
    """The name in a piece of a query's text: the inverse of `quoted`, also for backticks."""
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark) if mark in ('"', "`") else text
