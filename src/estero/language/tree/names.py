"""Suggestions of known names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from estero.language.tree.exact_names import given_name

SPELLING: Final = "names must match the events' columns, including case"
"""The hint on an unknown name without a similar known one."""


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Up to `most` known names that look like `name`, the likeliest first; case does not matter.

    >>> nearest("Volum", ["price", "volume", "name"])
    ('volume',)
    """
    spelled: dict[str, list[str]] = {}
    for spelling in known:
        own = given_name(spelling)
        spelled.setdefault(own.casefold(), []).append(own)
    close = get_close_matches(name.casefold(), spelled, n=most, cutoff=0.6)
    return tuple(spelling for folded in close for spelling in spelled[folded])[:most]


def listed(names: Iterable[str], word: str = "or") -> str:
    """The names as one phrase.

    >>> listed(["a", "b", "c"])
    'a, b or c'
    """
    *front, last = map(given_name, names)
    return f"{', '.join(front)} {word} {last}" if front else last


def some(names: Iterable[str], most: int = 8, word: str = "or") -> str:
    """The first names as one phrase, and how many more there are.

    >>> some(["a", "b", "c"], most=2)
    'a, b or 1 more'
    """
    every = tuple(map(given_name, names))
    if len(every) <= most:
        return listed(every, word) if every else ""
    return f"{', '.join(every[:most])} {word} {len(every) - most} more"


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint with the name that was probably meant, or the empty string."""
    close = nearest(name, known)
    return f"did you mean {listed(close)}?" if close else ""
