"""The words of the language by what they are, for highlighting and completion, as the grammar has them."""

from __future__ import annotations

from typing import Final

from estero.language.syntax.cases import strategy_words
from estero.language.tree.durations import UNITS
from estero.language.tree.functions import AGGREGATES, PREVIOUS, SCALAR_FUNCTIONS, SET_PREDICATES
from estero.language.tree.words import KEYWORDS

_CONSTANTS: Final = ("FALSE", "NULL", "TRUE")
_IN_PLACES: Final = ("ANY", "CASE", "DISTINCT", "ELSE", "END", "FOR", "NONE", "PER", "START", "THEN", "WHEN")
"""Words that are keywords in one place each, and names elsewhere."""


def vocabulary() -> dict[str, list[str]]:
    """The words by kind, sorted: ``keyword``, ``modifier``, ``constant``, ``unit`` and ``function``.

    All but functions are in capitals; case does not matter in a query.

    >>> vocabulary()["constant"]
    ['FALSE', 'NULL', 'TRUE']
    """
    functions = {*SCALAR_FUNCTIONS, *AGGREGATES, *SET_PREDICATES, PREVIOUS, "cast"}
    return {
        "keyword": sorted({*KEYWORDS, *_IN_PLACES}.difference(_CONSTANTS)),
        "modifier": sorted(strategy_words()),
        "constant": list(_CONSTANTS),
        "unit": sorted({*UNITS, "EVENT", "EVENTS"}),
        "function": sorted(map(str.lower, functions)),
    }
