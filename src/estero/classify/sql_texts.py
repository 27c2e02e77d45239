"""Strings and names in the SQL of all engines."""

from __future__ import annotations


def literal(text: str) -> str:
    """A string in SQL.

    >>> print(literal("it's"))
    'it''s'
    """
    return quoted(text, "'")


def quoted(name: str, mark: str = '"') -> str:
    """The name of a column in SQL."""
    return mark + name.replace(mark, 2 * mark) + mark
