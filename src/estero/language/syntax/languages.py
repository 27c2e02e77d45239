"""The language of a text, CEQL or a conjunctive query, judged by its beginning."""

from __future__ import annotations

import re
from typing import Final

from estero.errors import QueryError, Span

_BEFORE: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_NAME: Final = r'(?:[^\W\d]\w*|"(?:[^"]|"")+"|`(?:[^`]|``)+`)'
_VARIABLES: Final = r'\([\w\s,"`]*\)?'
_ARROW: Final = r"(?:<-|:-|<=|←)"
_HEAD: Final = re.compile(rf"{_BEFORE}{_NAME}\s*(?:{_VARIABLES}\s*)?{_ARROW}", re.DOTALL)
_SELECT: Final = re.compile(rf"{_BEFORE}(?P<name>SELECT)\b", re.DOTALL | re.IGNORECASE)


def is_conjunctive(text: str) -> bool:
    """Whether a text begins as a conjunctive query does, with a head and an arrow, even a wrong one.

    >>> is_conjunctive("Q(x) <- T(x), S(x)"), is_conjunctive("SELECT * WHERE T FILTER T[x<-5]")
    (True, False)
    """
    return _HEAD.match(text) is not None and _SELECT.match(text) is None


def not_conjunctive(text: str) -> QueryError | None:
    """The error for CEQL in place of a conjunctive query; None for any other text."""
    select = _SELECT.match(text)
    if select is None:
        return None
    return QueryError(
        "this is a query in CEQL, and a conjunctive query is expected here",
        text=text,
        span=Span(*select.span("name")),
        found=select["name"],
        expected="a head and atoms, as in Q(x, y) <- T(x), S(x, y)",
        hint="estero.query takes queries in either language",
    )
