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
class _Dialect:
    """How an engine writes what differs."""

    end: str
    word_edge: str
    no_word_edge: str
    code_point: Callable[[int], str]


_LOOKING: Final = (f"(?:{_WORD_EDGE})", f"(?:{_NO_WORD_EDGE})")
_PYTHON: Final = _Dialect(r"\Z", *_LOOKING, lambda point: rf"\U{point:08x}")
_JAVA: Final = _Dialect(r"\z", *_LOOKING, lambda point: rf"\x{{{point:x}}}")
_RE2: Final = _Dialect(r"\z", r"\b", r"\B", lambda point: rf"\x{{{point:x}}}")


def check_regex(regex: str) -> None:
    """Raise `QueryError`, with a span into `regex`, where it is outside the shared syntax."""
    _parse(regex)


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


@lru_cache(maxsize=256)
def for_java(regex: str) -> str:
    """The expression for `java.util.regex`, as Spark's ``RLIKE`` reads it."""
    return _written(regex, _JAVA)


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


@cache
def _parser() -> Lark:
    from lark import Lark

    grammar = resources.files(__package__).joinpath("regex.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def _parse(regex: str) -> Tree[Any]:
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
_REMEDIES: Final = {
    "the bounds are reversed": "the smaller number stands first",
    "the range is reversed": "the smaller character stands first",
    _TOO_MANY: "length(a) compares the length of a string; * and + have no bound",
    "no such character exists": "code points go up to 10FFFF, without D800 to DFFF",
}


def _check_tree(tree: Tree[Any], regex: str) -> None:
    """Refuse what the grammar cannot: reversed ranges, too many repetitions, impossible code points."""
    stack: list[tuple[Tree[Any], int]] = [(tree, 1)]
    while stack:
        node, product = stack.pop()
        problem = ""
        if node.data == "repeated":
            least, most = _bounds(str(node.children[1]))
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
        stack.extend((child, product) for child in reversed(node.children) if not isinstance(child, str))


def _bounds(quantifier: str) -> tuple[int, int | None]:
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


def _written(regex: str, dialect: _Dialect) -> str:
    tree = _parse(regex)
    fold = len(tree.children) == 2
    return _Writer(dialect, fold).alternation(tree.children[-1])


@dataclass(frozen=True, slots=True)
class _Writer:
    dialect: _Dialect
    fold: bool

    def alternation(self, tree: Any) -> str:
        return "|".join("".join(map(self._piece, branch.children)) for branch in tree.children)

    def _piece(self, tree: Any) -> str:
        match str(tree.data):
            case "anchor":
                return self._anchor(str(tree.children[0]))
            case "repeated":
                least, most = _bounds(str(tree.children[1]))
                return f"{self._piece(tree.children[0])}{{{least},{'' if most is None else most}}}"
            case "dot":
                return self._set(((10, 10),), negated=True)
            case "group":
                return f"(?:{self.alternation(tree.children[0])})"
            case "literal":
                return self._literal(_code_point(str(tree.children[0])))
            case "shorthand":
                return self._set(_shorthand(tree))
            case _:
                return self._class(tree)

    def _anchor(self, sign: str) -> str:
        match sign:
            case "^" | "\\A":
                return r"\A"
            case "$" | "\\z":
                return self.dialect.end
            case "\\b":
                return self.dialect.word_edge
            case _:
                return self.dialect.no_word_edge

    def _literal(self, point: int) -> str:
        if self.fold and chr(point).isascii() and chr(point).isalpha():
            return self._set(_folded(((point, point),)))
        return self._plain(point)

    def _plain(self, point: int) -> str:
        character = chr(point)
        return character if character.isascii() and character.isalnum() else self.dialect.code_point(point)

    def _class(self, tree: Any) -> str:
        opening, *items = tree.children
        ranges = _united(span for item in items for span in _item(item))
        return self._set(_folded(ranges) if self.fold else ranges, negated=opening.type == "OPEN_NEGATED")

    def _set(self, ranges: Ranges, *, negated: bool = False) -> str:
        if not ranges:
            return (
                "["
                + ("" if negated else "^")
                + f"{self.dialect.code_point(0)}-{self.dialect.code_point(LAST)}]"
            )
        inside = "".join(
            self._plain(low) if low == high else f"{self._plain(low)}-{self._plain(high)}"
            for low, high in ranges
        )
        return f"[{'^' if negated else ''}{inside}]"


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


def _united(spans: Iterator[tuple[int, int]]) -> Ranges:
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
    return _united(iter([*ranges, *others]))
