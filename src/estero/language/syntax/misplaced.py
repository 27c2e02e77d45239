"""A misplaced word or sign, and what is known of its surroundings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from estero.language.tree.names import suggestion
from estero.language.tree.words import KEYWORDS, is_keyword

if TYPE_CHECKING:
    from lark import Token

COMPARISONS: Final = frozenset(
    {"EQUAL", "UNEQUAL", "LESS", "AT_MOST", "GREATER", "AT_LEAST", "TILDE"}
    | {"IN", "BETWEEN", "LIKE", "ILIKE", "IS"}
)
"""The terminals of comparisons and of tests of one value."""


class Mistake(NamedTuple):
    """A known mistake: what is wrong, the hint, and what is expected if the grammar lists too much."""

    message: str
    hint: str
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A word or sign in a place where the grammar has none for it.

    `accepted` are the terminals that have one; `before` is the text up to there, without spaces at its end,
    and `after` what begins there. `clause` is the first word of the clause that this is in.
    """

    token: Token
    accepted: frozenset[str]
    before: str
    after: str
    clause: str

    @property
    def kind(self) -> str:
        """The terminal of the word or sign."""
        return self.token.type

    @property
    def word(self) -> str:
        """The word or sign, in capitals where it is a word."""
        return self.token.upper() if self.kind != "$END" else ""

    @property
    def last(self) -> str:
        """The last word or sign before it, in capitals."""
        last = re.search(r"(\w+|\S)$", self.before)
        return last[1].upper() if last else ""

    @property
    def name_before(self) -> str:
        """The name right before it, or ``a``."""
        name = re.search(r"[^\W\d]\w*$", self.before)
        return name[0] if name and not is_keyword(name[0]) else "a"

    @property
    def next_word(self) -> str:
        """The word after it, or ``x``."""
        words = re.findall(r"\w+", self.after)
        return words[1] if len(words) > 1 else "x"

    @property
    def misspelt(self) -> str:
        """A hint with the keywords that were probably meant, or the empty string."""
        possible = [word for word in KEYWORDS if word in self.accepted or f"_{word}" in self.accepted]
        return suggestion(self.word, possible)


Finder: TypeAlias = Callable[[Misplaced], Mistake | None]
"""A function that names a mistake, or gives None if it does not know it."""

Finders: TypeAlias = tuple[tuple[str, Finder], ...]
"""The finders in turn, each with the clause whose mistakes it knows, or the empty string for all."""
