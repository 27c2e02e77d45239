"""Regular expressions for Java's matcher, which tries one way after another and calls itself as it goes.

Of ``(a|b)*`` it takes a frame of the stack for each character, and ends the process that it runs in; of
``(a|aa)+$`` it tries as many ways as there are, which doubles with each character. RE2 and DuckDB do
neither. So an expression is given to Java only in a form that takes steps in proportion to at most the square
of the length of a text, and frames in proportion to the expression:

* unbounded repetitions are of single characters or classes: ``(a|b)*`` is ``[ab]*``, ``(x+)*`` is ``x*``;
* there is one of them in a row, or two where the beginning of the text is fixed. What an expression that is
  searched for begins or ends with, and need not have, is left out: ``.*a+`` is found where ``a`` is;
* bounded ones leave at most 1,000 ways to go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from estero.language.regex.regex import (
    JAVA,
    LAST,
    Ranges,
    Writer,
    bounds,
    characters_of,
    parse_regex,
    united,
)

_MOST_WAYS: Final = 1000
_MOST_LOOPS: Final = 2
_BEGIN: Final = r"\A"


@dataclass(frozen=True, slots=True)
class _Characters:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Edge:
    """A place between characters, as Java writes it."""

    text: str
    ways: int = 1


@dataclass(frozen=True, slots=True)
class _Repeated:
    """`least` to `most` times `part`; no end without `most`."""

    part: _Part
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class _Row:
    """One part after another."""

    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """Any of several parts."""

    parts: tuple[_Part, ...]


_Part = _Characters | _Edge | _Repeated | _Row | _Choice


@lru_cache(maxsize=256)
def for_java(regex: str) -> str | None:
    r"""The expression for `java.util.regex`, as Spark's ``RLIKE`` reads it; None where RE2 has to match.

    >>> for_java("^(a|b)*c"), for_java("^(a|bc)*d")
    ('\\A[a-b]{0,}c', None)
    """
    tree = parse_regex(regex)
    whole = _choice(tree.children[-1], Writer(JAVA, fold=len(tree.children) == 2))
    branches = whole.parts if isinstance(whole, _Choice) else (whole,)
    searched = tuple(map(_as_searched, branches))
    if max(map(_ways, searched)) > _MOST_WAYS or max(map(_steps, searched)) > _MOST_LOOPS:
        return None
    if not all(map(_is_flat, searched)):
        return None
    return "|".join(map(_text, searched))


def like_for_java(pattern: str) -> str:
    r"""The expression for ``LIKE`` with this pattern (``%``, ``_``, escape ``\``), in one pass over a text.

    Where a part fits first is as good as anywhere, so what Java has found of it is not tried again.

    >>> like_for_java("a%b%_%")
    '\\Aa(?>[\\x{0}-\\x{10ffff}]*?b)(?>[\\x{0}-\\x{10ffff}]*?[\\x{0}-\\x{10ffff}])'
    """
    writer = Writer(JAVA, fold=False)
    anything = writer.characters(((0, LAST),))
    pieces, characters = [""], iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "_":
            pieces[-1] += anything
        else:
            point = ord(next(characters, "\\") if character == "\\" else character)
            pieces[-1] += writer.characters(((point, point),))
    first, *middle = pieces
    last = middle.pop() if middle else None
    found = "".join(f"(?>{anything}*?{piece})" for piece in middle if piece)
    end = "" if last == "" else rf"{'' if last is None else f'{anything}*{last}'}\z"
    return rf"\A{first}{found}{end}"


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


def _choice(tree: Any, writer: Writer) -> _Part:
    branches = tuple(_row(branch, writer) for branch in tree.children)
    if len(branches) == 1:
        return branches[0]
    sets = [each.ranges for each in branches if isinstance(each, _Characters)]
    if len(sets) == len(branches):
        return _Characters(united(span for ranges in sets for span in ranges))
    return _Choice(branches)


def _row(branch: Any, writer: Writer) -> _Part:
    parts = tuple(_part(piece, writer) for piece in branch.children)
    return parts[0] if len(parts) == 1 else _Row(parts)


def _part(tree: Any, writer: Writer) -> _Part:
    match str(tree.data):
        case "anchor":
            text = writer.anchor(str(tree.children[0]))
            return _Edge(text, 2 if "|" in text else 1)
        case "repeated":
            least, most = bounds(str(tree.children[1]))
            return _repeated(_part(tree.children[0], writer), least, most)
        case "group":
            return _choice(tree.children[0], writer)
        case _:
            return _Characters(characters_of(tree, fold=writer.fold))


def _repeated(part: _Part, least: int, most: int | None) -> _Part:
    """Repetitions without an end of ``x*``, ``x+`` and ``x?`` are such of ``x``."""
    if isinstance(part, _Repeated) and most is None and part.least <= 1 and part.most != 0:
        return _Repeated(part.part, least * part.least, None)
    return _Repeated(part, least, most)


# ── Judging ──────────────────────────────────────────────────────────────────────────────────────


def _as_searched(branch: _Part) -> _Part:
    """A branch of the whole without what it begins or ends with and need not have."""
    parts = list(branch.parts) if isinstance(branch, _Row) else [branch]
    for place in (0, -1):
        while parts and isinstance(edge := parts[place], _Repeated) and edge.most != edge.least:
            if edge.least:
                parts[place] = replace(edge, most=edge.least)
            else:
                parts.pop(place)
    return _Row(tuple(parts))


def _ways(part: _Part) -> int:
    """How many ways there are through a part but for unbounded repetitions, at most one too many."""
    match part:
        case _Characters() | _Edge():
            ways = part.ways if isinstance(part, _Edge) else 1
        case _Choice(parts):
            ways = sum(map(_ways, parts))
        case _Row(parts):
            ways = 1
            for each in parts:
                ways = min(ways * _ways(each), _MOST_WAYS + 1)
        case _Repeated(inner, least, most):
            once, power, ways = _ways(inner), 1, 0
            for times in range((least if most is None else most) + 1):
                ways += power if times >= least else 0
                power = min(power * once, _MOST_WAYS + 1)
    return min(ways, _MOST_WAYS + 1)


def _steps(branch: _Part) -> int:
    """The power of the length of a text that bounds the steps: one for where it begins, one for each loop."""
    parts = branch.parts if isinstance(branch, _Row) else (branch,)
    begins = bool(parts) and parts[0] == _Edge(_BEGIN)
    return _loops(branch) + (not begins)


def _loops(part: _Part) -> int:
    """The most unbounded repetitions on one way through a part."""
    match part:
        case _Choice(parts):
            return max(map(_loops, parts))
        case _Row(parts):
            return sum(map(_loops, parts))
        case _Repeated(inner, _, most):
            return 1 if most is None else most * _loops(inner)
        case _:
            return 0


def _is_flat(part: _Part) -> bool:
    """Whether unbounded repetitions are of single characters only: of others Java calls itself for each."""
    match part:
        case _Choice(parts) | _Row(parts):
            return all(map(_is_flat, parts))
        case _Repeated(inner, _, most):
            return isinstance(inner, _Characters) if most is None else _is_flat(inner)
        case _:
            return True


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


def _text(part: _Part) -> str:
    match part:
        case _Characters(ranges):
            return Writer(JAVA, fold=False).characters(ranges)
        case _Edge(text):
            return text
        case _Row(parts):
            return "".join(map(_in_row, parts))
        case _Choice(parts):
            return "|".join(map(_text, parts))
        case _Repeated(inner, least, most):
            inside = _text(inner)
            inside = inside if isinstance(inner, _Characters) else f"(?:{inside})"
            return f"{inside}{{{least},{'' if most is None else most}}}"


def _in_row(part: _Part) -> str:
    return f"(?:{_text(part)})" if isinstance(part, _Choice) else _text(part)
