"""What people type who know other languages → what is wrong, and what to write instead.

A finder looks at what stands where the grammar has no place for it; the first that knows the mistake wins.
tests/hostile/words.txt is the index of what was typed and what is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estero.language.syntax import mistakes_in_clauses, mistakes_in_patterns
from estero.language.syntax.clauses import clause_at_end
from estero.language.syntax.misplaced import Misplaced, Mistake

if TYPE_CHECKING:
    from lark import Token


def mistake_of(token: Token, accepted: set[str], text: str, place: int, start: str) -> Mistake | None:
    """The mistake that is made at a place of a text, if it is a known one; `start` is what is read."""
    before = text[:place].rstrip()
    first = {"pattern": "WHERE", "condition": "FILTER"}.get(start, "")
    found = Misplaced(token, frozenset(accepted), before, text[place:], clause_at_end(before, first))
    said = (finder(found) for finder in (*mistakes_in_clauses.FINDERS, *mistakes_in_patterns.FINDERS))
    return next((mistake for mistake in said if mistake is not None), None)
