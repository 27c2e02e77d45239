"""Units of durations: the unit of a word, or its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estero.language.syntax.productions import refused
from estero.language.tree.durations import UNITS, TimeUnit, unit_of
from estero.language.tree.names import listed, suggestion

if TYPE_CHECKING:
    from lark import Token


def unit_named(word: Token, others: tuple[str, ...] = ()) -> TimeUnit:
    """The unit of a word; `others` are further words allowed there."""
    unit = UNITS.get(word.upper())
    if unit is None:
        expected = listed([*others, *TimeUnit.__members__])
        raise refused(word, f"unknown unit {word}", expected, _instead(word, others))
    return unit


def _instead(word: Token, others: tuple[str, ...]) -> str:
    if word.lower().removesuffix("s") in ("month", "year", "quarter"):
        return "months and years vary in length: write DAYS"
    known = unit_of(word)
    if known in (*others, *TimeUnit.__members__):
        return f"write {known}"
    near = suggestion(word.upper(), [*TimeUnit.__members__, *others])
    in_window = "ticks of an integer time column are written WITHIN 5 [time]"
    return near or (
        in_window if others else "a duration has a unit, as 5 MINUTES; conditions are joined by AND or OR"
    )
