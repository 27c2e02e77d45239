"""Paths into attributes: fields of structs and elements of lists.

``process.name`` and ``tags[1]`` are attributes like others, wherever events are read, compared and shown.
Their name is a *path*: that of the column, and the steps to take inside of it, joined by a letter that no
column can have in its name. How paths are written in a query is up to `words.quoted`.
"""

from __future__ import annotations

import re
from typing import Final

Step = str | int
"""The name of a field, or the index of an element, from 1."""

JOINT: Final = "\0"
"""The joint of paths, which no column has in its name."""
_STEPS: Final = re.compile(r"\0(?=[.\[])")
_FIELD: Final = f"{JOINT}."
_ELEMENT: Final = f"{JOINT}["


def field_of(name: str, field: str) -> str:
    """The path to a field of the attribute with this name."""
    return f"{name}{_FIELD}{field}"


def element_of(name: str, place: int) -> str:
    """The path to an element, counted from 1, of the attribute with this name."""
    return f"{name}{_ELEMENT}{place}"


def is_path(name: str) -> bool:
    """Whether the name of an attribute leads inside of a column."""
    return _FIELD in name or _ELEMENT in name


def column_of(name: str) -> str:
    """The column of an attribute, which may be inside of it."""
    return _STEPS.split(name)[0]


def steps_of(name: str) -> tuple[Step, ...]:
    """The steps from the column to an attribute; none if it is the column.

    >>> steps_of(element_of(field_of("process", "args"), 2))
    ('args', 2)
    """
    return tuple(int(step[1:]) if step.startswith("[") else step[1:] for step in _STEPS.split(name)[1:])


def variable_in(path: str) -> tuple[str, str] | None:
    """The variable and the attribute in ``x.a.b``; None if it is not a path, or begins with an element.

    >>> variable_in(field_of(field_of("x", "a"), "b")) == ("x", field_of("a", "b"))
    True
    """
    first, joint, rest = path.partition(_FIELD)
    return None if not joint or is_path(first) else (first, rest)
