"""Regular expressions for Java's matcher, which backtracks and recurses.

For ``(a|b)*`` it takes a stack frame for each character, and can crash its process; for ``(a|aa)+$`` it tries
all ways, whose number doubles with each character. RE2 and DuckDB do neither. So an expression is passed to
Java only in a form for which the number of steps is at most proportional to the square of the length of a
text, and the number of frames to the length of the expression:

* unbounded repetitions are of single characters or classes: ``(a|b)*`` is ``[ab]*``, ``(x+)*`` is ``x*``;
* there is one of them in a row, or two where the beginning of the text is fixed. What an expression that is
  searched for begins or ends with, and need not have, is left out: ``.*a+`` is found where ``a`` is;
* bounded ones leave at most 1,000 ways to go.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from estero.language.regex.dialects import JAVA
from estero.language.regex.parser import parse_regex
from estero.language.regex.tree import LAST, Characters, Choice, Edge, Part, Repeated, Row

_MOST_WAYS: Final = 1000
_MOST_LOOPS: Final = 2


@lru_cache(maxsize=256)
def for_java(regex: str) -> str | None:
    r"""The expression for `java.util.regex`, as Spark's ``RLIKE`` reads it; None if RE2 has to match.

    >>> for_java("^(a|b)*c"), for_java("^(a|bc)*d")
    ('\\A[a-b]{0,}c', None)
    """
    whole = parse_regex(regex)
    branches = whole.parts if isinstance(whole, Choice) else (whole,)
    searched = tuple(map(_as_searched, branches))
    if max(map(_ways, searched)) > _MOST_WAYS or max(map(_steps, searched)) > _MOST_LOOPS:
        return None
    if not all(map(_is_flat, searched)):
        return None
    return "|".join(map(JAVA.written, searched))


def like_for_java(pattern: str) -> str:
    r"""The expression for ``LIKE`` with this pattern (``%``, ``_``, escape ``\``), in one pass over a text.

    The first match of a part is as good as any, so Java does not try it again.

    >>> like_for_java("a%b%_%")
    '\\Aa(?>[\\x{0}-\\x{10ffff}]*?b)(?>[\\x{0}-\\x{10ffff}]*?[\\x{0}-\\x{10ffff}])'
    """
    anything = JAVA.characters(((0, LAST),))
    pieces, characters = [""], iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "_":
            pieces[-1] += anything
        else:
            point = ord(next(characters, "\\") if character == "\\" else character)
            pieces[-1] += JAVA.characters(((point, point),))
    first, *middle = pieces
    last = middle.pop() if middle else None
    between = "".join(f"(?>{anything}*?{piece})" for piece in middle if piece)
    end = "" if last == "" else rf"{'' if last is None else f'{anything}*{last}'}\z"
    return rf"\A{first}{between}{end}"


# ── Judging ──────────────────────────────────────────────────────────────────────────────────────


def _as_searched(branch: Part) -> Part:
    """A branch of the whole expression without optional parts at its ends."""
    parts = list(branch.parts) if isinstance(branch, Row) else [branch]
    for place in (0, -1):
        while parts and isinstance(edge := parts[place], Repeated) and edge.most != edge.least:
            if edge.least:
                parts[place] = replace(edge, most=edge.least)
            else:
                parts.pop(place)
    return Row(tuple(parts))


def _ways(part: Part) -> int:
    """The number of ways through a part apart from unbounded repetitions, capped just above the limit."""
    match part:
        case Characters() | Edge():
            ways = 2 if part in (Edge("\\b"), Edge("\\B")) else 1
        case Choice(parts):
            ways = sum(map(_ways, parts))
        case Row(parts):
            ways = 1
            for section in parts:
                ways = min(ways * _ways(section), _MOST_WAYS + 1)
        case Repeated(inner, least, most):
            once, power, ways = _ways(inner), 1, 0
            for times in range((least if most is None else most) + 1):
                ways += power if times >= least else 0
                power = min(power * once, _MOST_WAYS + 1)
    return min(ways, _MOST_WAYS + 1)


def _steps(branch: Part) -> int:
    """The power of the text's length that bounds the steps: one for the starting place, one for each loop."""
    parts = branch.parts if isinstance(branch, Row) else (branch,)
    begins = bool(parts) and parts[0] == Edge("^")
    return _loops(branch) + (not begins)


def _loops(part: Part) -> int:
    """The most unbounded repetitions on one way through a part."""
    match part:
        case Choice(parts):
            return max(map(_loops, parts))
        case Row(parts):
            return sum(map(_loops, parts))
        case Repeated(inner, _, most):
            return 1 if most is None else most * _loops(inner)
        case _:
            return 0


def _is_flat(part: Part) -> bool:
    """Whether unbounded repetitions are only of single characters; for others Java recurses each time."""
    match part:
        case Choice(parts) | Row(parts):
            return all(map(_is_flat, parts))
        case Repeated(inner, _, most):
            return isinstance(inner, Characters) if most is None else _is_flat(inner)
        case _:
            return True
