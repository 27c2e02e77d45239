"""The parser of the regular expressions of ``~``; it refuses syntax that not all engines share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from estero.errors import NOWHERE, QueryError, Span
from estero.language.regex.tree import (
    LAST,
    Characters,
    Choice,
    Edge,
    Part,
    Ranges,
    Repeated,
    Row,
    complement,
    folded,
    united,
)

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

MOST_REPETITIONS: Final = 1000
"""RE2's limit, for nested ones as a product."""
MOST_GROUPS: Final = 100
"""The deepest nesting of groups, since reading and writing an expression recurse through them."""

SHARED: Final = r"characters, . [abc] [^a-z] \d \w \s \b ^ $ | ( ) * + ? {n,m}, escapes, a leading (?i)"
_SHORTHANDS: Final[dict[str, Ranges]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 13), (32, 32)),
}
_CONTROLS: Final = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7}
_DASH: Final = (45, 45)


@lru_cache(maxsize=256)
def parse_regex(regex: str) -> Part:
    """The tree of an expression.

    Raises `QueryError`, with a span into `regex`, if it is outside the shared syntax.
    """
    from lark.exceptions import UnexpectedInput

    try:
        return _read(regex, _parser())
    except UnexpectedInput as problem:
        raise _outside(regex, problem) from None
    except QueryError:
        return _read(regex, _parser(with_places=True))  # which raises it, with the place


def _read(regex: str, parser: Lark) -> Part:
    tree = parser.parse(regex)
    return _Reader(regex, fold=len(tree.children) == 2).alternation(tree.children[-1], 1, 0)


@cache
def _parser(*, with_places: bool = False) -> Lark:
    """The parser; places in the text, which only messages have, make it half as fast."""
    from importlib import resources

    from lark import Lark

    grammar = resources.files(__package__).joinpath("regex.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=with_places)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads Lark's tree of an expression, and refuses what the grammar cannot refuse.

    With `fold` letters are of either case. `times` is the number of repetitions of the current part, `depth`
    the number of groups around it.
    """

    regex: str
    fold: bool

    def alternation(self, tree: Any, times: int, depth: int) -> Part:
        branches = tuple(self._branch(branch, times, depth) for branch in tree.children)
        if len(branches) == 1:
            return branches[0]
        sets = [branch.ranges for branch in branches if isinstance(branch, Characters)]
        if len(sets) == len(branches):
            return Characters(united(span for ranges in sets for span in ranges))
        return Choice(branches)

    def _branch(self, tree: Any, times: int, depth: int) -> Part:
        parts: list[Part] = []
        for piece in tree.children:
            if piece.data == "letters":
                parts += [self._character(ord(letter)) for letter in piece.children[0]]
            else:
                parts.append(self._piece(piece, times, depth))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _character(self, point: int) -> Characters:
        return Characters(folded(((point, point),)) if self.fold else ((point, point),))

    def _piece(self, tree: Any, times: int, depth: int) -> Part:
        match str(tree.data):
            case "anchor":
                sign = str(tree.children[0])
                return Edge({"\\A": "^", "\\z": "$"}.get(sign, sign))
            case "repeated":
                return self._repeated(tree, times, depth)
            case "group" if depth >= MOST_GROUPS:
                raise self._refused(tree, _TOO_DEEP)
            case "group":
                return self.alternation(tree.children[0], times, depth + 1)
            case "dot":
                return Characters(complement(((10, 10),)))
            case "shorthand":
                return Characters(_shorthand(tree))
            case "literal":
                return self._character(self._point(tree))
            case _:
                opening, *items = tree.children
                ranges = united(span for item in items for span in self._item(item))
                ranges = folded(ranges) if self.fold else ranges
                return Characters(complement(ranges) if opening.type == "OPEN_NEGATED" else ranges)

    def _repeated(self, tree: Any, times: int, depth: int) -> Part:
        least, most = _bounds(str(tree.children[1]))
        times *= max(least, most or 0, 1)
        if times > MOST_REPETITIONS:
            raise self._refused(tree, _TOO_MANY)
        if most is not None and most < least:
            raise self._refused(tree, _BOUNDS)
        part = self._piece(tree.children[0], times, depth)
        if isinstance(part, Repeated) and most is None and part.least <= 1 and part.most != 0:
            # Unbounded repetitions of x*, x+ and x? are those of x.
            return Repeated(part.part, least * part.least, None)
        return Repeated(part, least, most)

    def _item(self, item: Any) -> Iterator[tuple[int, int]]:
        """The code points of a part of a class."""
        if isinstance(item, str):
            yield _DASH
            return
        match str(item.data):
            case "range":
                low, high = (_code_point(item.children[place]) for place in (0, 2))
                if low > high:
                    raise self._refused(item, _RANGE)
                yield self._point(item.children[0]), self._point(item.children[2])
            case "shorthand":
                yield from _shorthand(item)
            case "tail":
                yield from self._item(item.children[0])
                yield _DASH
            case _:
                point = self._point(item)
                yield point, point

    def _point(self, tree: Any) -> int:
        point = _code_point(tree)
        if point > LAST or 0xD800 <= point <= 0xDFFF:
            raise self._refused(tree, _NO_CHARACTER)
        return point

    def _refused(self, tree: Any, problem: str) -> QueryError:
        span = NOWHERE if tree.meta.empty else Span(tree.meta.start_pos, tree.meta.end_pos)
        piece = self.regex[span.start : span.end]
        message = f"'{piece}' at character {span.start + 1} of the regular expression: {problem}"
        return QueryError(message, span=span, found=piece, expected=SHARED, hint=_REMEDIES[problem])


def _bounds(quantifier: str) -> tuple[int, int | None]:
    """The least and the greatest number of repetitions, None if unbounded."""
    sign = quantifier.removesuffix("?") if len(quantifier) > 1 else quantifier
    if sign in ("*", "+", "?"):
        return int(sign == "+"), 1 if sign == "?" else None
    least, comma, most = sign[1:-1].partition(",")
    return int(least), int(most) if most else None if comma else int(least)


def _code_point(tree: Any) -> int:
    text = str(tree.children[0])
    if text.startswith("\\x"):
        return int(text[2:].strip("{}"), 16)
    if text.startswith("\\"):
        return _CONTROLS.get(text[1], ord(text[1]))
    return ord(text)


def _shorthand(tree: Any) -> Ranges:
    letter = str(tree.children[0])[1]
    ranges = _SHORTHANDS[letter.lower()]
    return ranges if letter.islower() else complement(ranges)


# ── What is refused ──────────────────────────────────────────────────────────────────────────────

_KNOWN: Final = (
    ("(?=", "lookahead"),
    ("(?!", "lookahead"),
    ("(?<=", "lookbehind"),
    ("(?<!", "lookbehind"),
    ("(?>", "an atomic group"),
    ("(?P", "a named group"),
    ("(?<", "a named group"),
    ("(?", "a flag other than a leading (?i)"),
    ("[[:", "a POSIX class"),
    ("[:", "a POSIX class"),
    ("&&", "a class intersection"),
    ("\\p", "a Unicode property"),
    ("\\P", "a Unicode property"),
    ("[", "a bracket inside brackets (a plain one is written \\[)"),
    ("{", "a brace that starts no repetition (a plain one is written \\{)"),
    ("+", "a repetition of nothing or of a repetition"),
    ("*", "a repetition of nothing or of a repetition"),
    ("?", "a repetition of nothing or of a repetition"),
    (")", "a parenthesis that closes nothing"),
    ("\\", "this escape"),
)


def _outside(regex: str, problem: UnexpectedInput) -> QueryError:
    at_end = getattr(getattr(problem, "token", None), "type", None) == "$END"
    place = len(regex) if at_end else problem.pos_in_stream or 0
    rest = regex[place:]
    if regex[max(0, place - 1) :].startswith("(?"):
        rest, place = regex[place - 1 :], place - 1
    if not rest:
        return QueryError(
            "the regular expression ends too early",
            span=Span(len(regex), len(regex)),
            found="its end",
            expected="a closing ) or ], or a character after \\",
            hint="put a backslash before a special character to match it: \\( \\[ \\\\",
        )
    if rest[0] == "\\" and rest[1:2].isdigit():
        what, piece = "a backreference", rest[:2]
    else:
        start, what = next(((start, word) for start, word in _KNOWN if rest.startswith(start)), ("", "this"))
        piece = rest[:2] if start == "\\" else start or rest[0]
    return QueryError(
        f"'{piece}' at character {place + 1} of the regular expression: {what} is not in the syntax "
        "that all engines share",
        span=Span(place, place + len(piece)),
        found=piece,
        expected=SHARED,
        hint="write several simpler tests, joined by AND, OR and NOT",
    )


_TOO_MANY: Final = f"more than {MOST_REPETITIONS} repetitions"
_BOUNDS: Final = "the bounds are reversed"
_RANGE: Final = "the range is reversed"
_NO_CHARACTER: Final = "no such character exists"
_TOO_DEEP: Final = f"groups are nested more than {MOST_GROUPS} levels deep"
_REMEDIES: Final = {
    _TOO_DEEP: "a group that is neither repeated nor one of several needs no parentheses",
    _BOUNDS: "the smaller number comes first",
    _RANGE: "the smaller character comes first",
    _TOO_MANY: "length(a) compares the length of a string; * and + have no bound",
    _NO_CHARACTER: "code points go up to 10FFFF, without D800 to DFFF",
}
