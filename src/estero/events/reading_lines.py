"""Reading in words: the columns that are read, and the rows that the source itself leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estero.events.execution import named_in
from estero.events.inputs import Input
from estero.events.screening import Screen
from estero.events.tables.lazy_tables import LazyFrame
from estero.events.tables.relations import Relation

_MOST = 6
"""The number of strings, or alternatives, that are listed; the others are counted."""


def reading_line(sql: str, screen: Screen | None, source: Input, columns: Sequence[str]) -> str:
    """The columns and rows that the statement `sql` reads of an input, screened by `screen`, in words."""
    names = named_in(sql, columns)
    shown = f"{_few(names)} ({len(names)} of {len(columns)} columns)" if names else "no column"
    if screen is None or not screen.pushed:
        return f"{shown}; all rows, because every row has a position"
    by, kept = _who(screen, source), _said(screen.pushed)
    return f"{shown}; {by} numbers the rows and keeps only those with {kept}"


def _who(screen: Screen, source: Input) -> str:
    """The name of the component that leaves rows out."""
    if isinstance(source.stream, LazyFrame):
        return "the lazy frame"
    numbered = source.stream.in_order() if isinstance(source.stream, Relation) else None
    known = numbered is not None and numbered.has(screen.columns, screen.pushed)
    return "the relation" if known else "a first scan"


def _said(one_of: Iterable[Mapping[str, frozenset[str]]]) -> str:
    """The alternatives, as a condition."""
    parts = [
        " AND ".join(f"{name} = {_few(map(repr, sorted(texts)), ' | ')}" for name, texts in strings.items())
        for strings in one_of
    ]
    return _few(parts, " or ")


def _few(texts: Iterable[str], between: str = ", ") -> str:
    """The first of them, and the number of others."""
    every = list(texts)
    more = [f"{len(every) - _MOST} more"] if len(every) > _MOST else []
    return between.join([*every[:_MOST], *more])
