"""The fields of a struct in DuckDB's text of its type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PIECE: Final = re.compile(r"""[^"'(),]+|"(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]""")
"""Brackets, commas, and text without them: names and strings in quotes, or other text."""


def split_fields(text: str) -> list[tuple[str, str]]:
    """The names and types in ``name type, …``, as DuckDB describes what is inside of ``STRUCT(…)``.

    >>> split_fields('pid INTEGER, "a, b" DECIMAL(10,2), args STRUCT(a VARCHAR)[]')
    [('pid', 'INTEGER'), ('a, b', 'DECIMAL(10,2)'), ('args', 'STRUCT(a VARCHAR)[]')]
    """
    return [_name_and_type(part.strip()) for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    """The text between commas that are in no brackets."""
    depth, part = 0, ""
    for piece in _PIECE.findall(text):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "," and depth == 0:
            yield part
            part = ""
        else:
            part += piece
    yield part


def _name_and_type(part: str) -> tuple[str, str]:
    quoted = re.match(r'"((?:[^"]|"")*)"\s+', part)
    if quoted is not None:
        return quoted[1].replace('""', '"'), part[quoted.end() :]
    name, _, kind = part.partition(" ")
    return name, kind
