"""The texts of values, names and time spans in EQL."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[@A-Za-z_]\w*")
RESERVED: Final = frozenset(
    {"and", "any", "by", "false", "in", "join", "like", "not", "null", "of", "or", "regex"}
    | {"sample", "sequence", "true", "until", "where", "with"}
)
"""Words that are names only in backquotes."""
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
UNITS: Final = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "micros": 1_000,
    "nanos": 1,
}
"""The units of time spans in nanoseconds, longest first."""


def value_text(value: bool | float | str | None) -> str:
    """The text of a constant."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return string_text(value) if isinstance(value, str) else repr(value)


def string_text(value: str) -> str:
    """A string in double quotes, with escapes."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


def field_text(parts: tuple[str, ...]) -> str:
    """A dotted name, with backquotes around parts that are not plain names."""
    return ".".join(map(_part_text, parts))


def _part_text(part: str) -> str:
    plain = _WORD.fullmatch(part) and part not in RESERVED
    return part if plain else "`" + part.replace("`", "``") + "`"


def category_text(category: str | None) -> str:
    """The category before ``where``."""
    if category is None:
        return "any"
    plain = re.fullmatch(r"[A-Za-z_]\w*", category) and category not in RESERVED
    return category if plain else string_text(category)


def span_text(nanoseconds: int) -> str:
    """A time span in the largest unit that divides it."""
    unit = next(unit for unit, length in UNITS.items() if nanoseconds % length == 0)
    return f"{nanoseconds // UNITS[unit]}{unit}"
