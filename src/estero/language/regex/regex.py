"""The regular expressions of ``~``: checked, and rewritten so that Python, RE2 and Java find the same.

=============  ===============================================================  =====================
construct      habits                                                           here, everywhere
=============  ===============================================================  =====================
``.``          Java also stops at ``\\r`` and the Unicode line ends              all but ``\\n``
``$``          Python and Java also match before a last line end                the end of the text
``\\d \\w \\s``   Python's are Unicode's, RE2's ``\\s`` lacks the vertical tab      the ASCII ones, with it
``\\b``         Python's and older Java's are Unicode's                          between ASCII words
``(?i)``       three different foldings                                         ASCII letters only
=============  ===============================================================  =====================

Whether something is found does not depend on laziness or groups, so neither is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span

if TYPE_CHECKING:
    from lark import Lark, Tree
    from lark.exceptions import UnexpectedInput

Ranges = tuple[tuple[int, int], ...]
"""A set of code points: disjoint ranges in order, both ends included."""

LAST: Final = 0x10FFFF
MOST_REPETITIONS: Final = 1000
"""RE2's limit, for nested ones as a product."""
MOST_GROUPS: Final = 100
"""So deep may groups be in one another: whoever writes an expression for an engine descends through them."""

SHARED: Final = r"characters, . [abc] [^a-z] \d \w \s \b ^ $ | ( ) * + ? {n,m}, escapes, a leading (?i)"
_SHORTHANDS: Final[dict[str, Ranges]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 13), (32, 32)),
}
_CONTROLS: Final = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7}
_WORD_EDGE: Final = "(?<![0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])"
_NO_WORD_EDGE: Final = "(?<![0-9A-Za-z_])(?![0-9A-Za-z_])|(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes what differs."""

    end: str
    word_edge: str
    no_word_edge: str
    code_point: Callable[[int], str]


_LOOKING: Final = (f"(?:{_WORD_EDGE})", f"(?:{_NO_WORD_EDGE})")
_PYTHON: Final = Dialect(r"\Z", *_LOOKING, lambda point: rf"\U{point:08x}")
JAVA: Final = Dialect(r"\z", *_LOOKING, lambda point: rf"\x{{{point:x}}}")
_RE2: Final = Dialect(r"\z", r"\b", r"\B", lambda point: rf"\x{{{point:x}}}")


def check_regex(regex: str) -> None:
    """Raise `QueryError`, with a span into `regex`, where it is outside the shared syntax."""
    parse_regex(regex)


@lru_cache(maxsize=256)
def for_python(regex: str) -> str:
    r"""The expression for `re.search`.

    >>> for_python("^a.$")
    '\\Aa[^\\U0000000a]\\Z'
    """
    return _written(regex, _PYTHON)


@lru_cache(maxsize=256)
def for_re2(regex: str) -> str:
    """The expression for RE2, as DuckDB's ``regexp_matches`` reads it."""
    return _written(regex, _RE2)


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


@cache
def _parser() -> Lark:
    from lark import Lark

    grammar = resources.files(__package__).joinpath("regex.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def parse_regex(regex: str) -> Tree[Any]:
    """The tree of an expression; raises `QueryError` as `check_regex` does."""
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser().parse(regex)
    except UnexpectedInput as problem:
        raise _outside(regex, problem) from None
    _check_tree(tree, regex)
    return tree


_KNOWN: Final = (
    ("(?=", "looking ahead"),
    ("(?!", "looking ahead"),
    ("(?<=", "looking behind"),
    ("(?<!", "looking behind"),
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
            hint="a sign that means itself has a backslash before it: \\( \\[ \\\\",
        )
    if rest[0] == "\\" and rest[1:2].isdigit():
        what, found = "a back reference", rest[:2]
    else:
        start, what = next(((start, word) for start, word in _KNOWN if rest.startswith(start)), ("", "this"))
        found = rest[:2] if start == "\\" else start or rest[0]
    return QueryError(
        f"'{found}' at character {place + 1} of the regular expression: {what} is not in the syntax "
        "that all engines share",
        span=Span(place, place + len(found)),
        found=found,
        expected=SHARED,
        hint="several simple tests say as much, joined by AND, OR and NOT",
    )


_TOO_MANY: Final = f"more than {MOST_REPETITIONS} repetitions"
_TOO_DEEP: Final = f"groups are nested more than {MOST_GROUPS} levels deep"
_REMEDIES: Final = {
    _TOO_DEEP: "a group that is neither repeated nor chosen needs no parentheses",
    "the bounds are reversed": "the smaller number stands first",
    "the range is reversed": "the smaller character stands first",
    _TOO_MANY: "length(a) compares the length of a string; * and + have no bound",
    "no such character exists": "code points go up to 10FFFF, without D800 to DFFF",
}


def _check_tree(tree: Tree[Any], regex: str) -> None:
    """Refuse what the grammar cannot: reversed ranges, too many repetitions, impossible code points."""
    stack: list[tuple[Tree[Any], int, int]] = [(tree, 1, 0)]
    while stack:
        node, product, depth = stack.pop()
        problem = ""
        if node.data == "group":
            depth += 1
            problem = _TOO_DEEP if depth > MOST_GROUPS else ""
        elif node.data == "repeated":
            least, most = bounds(str(node.children[1]))
            product *= max(least, most or 0, 1)
            problem = "the bounds are reversed" if most is not None and most < least else ""
            if product > MOST_REPETITIONS:
                problem = _TOO_MANY
        elif node.data == "range":
            low, high = (_point(node.children[0]), _point(node.children[2]))
            problem = "the range is reversed" if low > high else ""
        elif node.data in ("literal", "member"):
            point = _code_point(str(node.children[0]))
            impossible = point > LAST or 0xD800 <= point <= 0xDFFF
            problem = "no such character exists" if impossible else ""
        if problem:
            span = Span(node.meta.start_pos, node.meta.end_pos)
            found = regex[span.start : span.end]
            message = f"'{found}' at character {span.start + 1} of the regular expression: {problem}"
            raise QueryError(message, span=span, found=found, expected=SHARED, hint=_REMEDIES[problem])
        below = (child for child in reversed(node.children) if not isinstance(child, str))
        stack.extend((child, product, depth) for child in below)


def bounds(quantifier: str) -> tuple[int, int | None]:
    """The least and the greatest number of repetitions, which None leaves open."""
    sign = quantifier.removesuffix("?") if len(quantifier) > 1 else quantifier
    match sign:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
        case _:
            least, comma, most = sign[1:-1].partition(",")
            return int(least), int(most) if most else None if comma else int(least)


def _code_point(text: str) -> int:
    if text.startswith("\\x"):
        return int(text[2:].strip("{}"), 16)
    if text.startswith("\\"):
        return _CONTROLS.get(text[1], ord(text[1]))
    return ord(text)


def _point(member: Tree[Any]) -> int:
    return _code_point(str(member.children[0]))


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


def _written(regex: str, dialect: Dialect) -> str:
    tree = parse_regex(regex)
    fold = len(tree.children) == 2
    return Writer(dialect, fold).alternation(tree.children[-1])


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes parts of an expression for an engine; with `fold` letters are of either case."""

    dialect: Dialect
    fold: bool

    def alternation(self, tree: Any) -> str:
        """Any of several branches."""
        return "|".join("".join(map(self._piece, branch.children)) for branch in tree.children)

    def _piece(self, tree: Any) -> str:
        match str(tree.data):
            case "anchor":
                return self.anchor(str(tree.children[0]))
            case "repeated":
                least, most = bounds(str(tree.children[1]))
                return f"{self._piece(tree.children[0])}{{{least},{'' if most is None else most}}}"
            case "group":
                return f"(?:{self.alternation(tree.children[0])})"
            case _:
                return self.characters(characters_of(tree, fold=self.fold))

    def anchor(self, sign: str) -> str:
        """A place between characters."""
        match sign:
            case "^" | "\\A":
                return r"\A"
            case "$" | "\\z":
                return self.dialect.end
            case "\\b":
                return self.dialect.word_edge
            case _:
                return self.dialect.no_word_edge

    def characters(self, ranges: Ranges) -> str:
        """One character of a set."""
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return self._plain(ranges[0][0])
        if not ranges or (len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == LAST):
            return f"[^{self._listed(_complement(ranges))}]"
        return f"[{self._listed(ranges)}]"

    def _listed(self, ranges: Ranges) -> str:
        return "".join(
            self._plain(low) if low == high else f"{self._plain(low)}-{self._plain(high)}"
            for low, high in ranges
        )

    def _plain(self, point: int) -> str:
        character = chr(point)
        return character if character.isascii() and character.isalnum() else self.dialect.code_point(point)


def characters_of(tree: Any, *, fold: bool) -> Ranges:
    """The characters that one part of an expression, which is no anchor and no group, stands for."""
    match str(tree.data):
        case "dot":
            return _complement(((10, 10),))
        case "literal":
            point = _code_point(str(tree.children[0]))
            ranges: Ranges = ((point, point),)
            return _folded(ranges) if fold else ranges
        case "shorthand":
            return _shorthand(tree)
        case _:
            opening, *items = tree.children
            ranges = united(span for item in items for span in _item(item))
            ranges = _folded(ranges) if fold else ranges
            return _complement(ranges) if opening.type == "OPEN_NEGATED" else ranges


def _item(item: Any) -> Iterator[tuple[int, int]]:
    if isinstance(item, str):
        yield (45, 45)
        return
    match str(item.data):
        case "range":
            yield _point(item.children[0]), _point(item.children[2])
        case "shorthand":
            yield from _shorthand(item)
        case "tail":
            yield from _item(item.children[0])
            yield (45, 45)
        case _:
            yield _point(item), _point(item)


def _shorthand(tree: Any) -> Ranges:
    letter = str(tree.children[0])[1]
    ranges = _SHORTHANDS[letter.lower()]
    return ranges if letter.islower() else _complement(ranges)


def united(spans: Iterator[tuple[int, int]]) -> Ranges:
    """The same set of code points as disjoint ranges in order."""
    united: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], high))
        else:
            united.append((low, high))
    return tuple(united)


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for low, high in ranges for edge in (low, high)), LAST + 1]
    gaps = ((edges[i] + 1, edges[i + 1] - 1) for i in range(0, len(edges), 2))
    return tuple((low, high) for low, high in gaps if low <= high)


def _folded(ranges: Ranges) -> Ranges:
    """The ranges with the other case of their ASCII letters."""
    others = []
    for low, high in ranges:
        for first, shift in ((65, 32), (97, -32)):
            begin, end = max(low, first), min(high, first + 25)
            if begin <= end:
                others.append((begin + shift, end + shift))
    return united(iter([*ranges, *others]))
