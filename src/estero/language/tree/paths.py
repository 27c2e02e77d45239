"""What is inside of an attribute: fields of structs and elements of lists.

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
"""No column has it in its name."""
_STEPS: Final = re.compile(r"\0(?=[.\[])")
_FIELD: Final = f"{JOINT}."
_ELEMENT: Final = f"{JOINT}["


def field_of(name: str, field: str) -> str:
    """The path to a field of what has this name."""
    return f"{name}{_FIELD}{field}"


def element_of(name: str, place: int) -> str:
    """The path to an element, counted from 1, of what has this name."""
    return f"{name}{_ELEMENT}{place}"


def is_path(name: str) -> bool:
    """Whether the name of an attribute leads inside of a column."""
    return _FIELD in name or _ELEMENT in name


def column_of(name: str) -> str:
    """The column that an attribute is, or is inside of."""
    return _STEPS.split(name)[0]


def steps_of(name: str) -> tuple[Step, ...]:
    """The steps from the column to an attribute; none where it is the column.

    >>> steps_of(element_of(field_of("process", "args"), 2))
    ('args', 2)
    """
    return tuple(int(step[1:]) if step.startswith("[") else step[1:] for step in _STEPS.split(name)[1:])


def variable_in(path: str) -> tuple[str, str] | None:
    """``x.a.b`` as a variable and an attribute; None for what is no path, or begins with an element.

    >>> variable_in(field_of(field_of("x", "a"), "b")) == ("x", field_of("a", "b"))
    True
    """
    first, joint, rest = path.partition(_FIELD)
    return None if not joint or is_path(first) else (first, rest)
