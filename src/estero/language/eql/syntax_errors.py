"""Lark's errors as `QueryError` in terms of EQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from estero.errors import QueryError, Span
from estero.language.eql.texts import RESERVED
from estero.language.syntax.productions import span_of

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_END: Final = "the end of the text"
_VALUE: Final = frozenset(
    {"NAME", "CASELESS_NAME", "INT", "FLOAT", "STRING", "RAW"} | {"TRUE", "FALSE", "NULL"}
)
_GROUPS: Final = (
    (_VALUE | {"NOT", "_LPAR", "MINUS", "PLUS", "_QUESTION"}, "a condition"),
    (_VALUE | {"_LPAR", "MINUS", "PLUS", "_QUESTION"}, "a value"),
    (_VALUE - {"NAME", "CASELESS_NAME"} | {"MINUS"}, "a constant"),
    (
        frozenset({"_SEQUENCE", "_SAMPLE", "ANY", "NAME", "STRING"}),
        "a category and where, or sequence or sample",
    ),
    (frozenset({"ANY", "NAME", "STRING", "RAW"}), "a category, or any"),
    (frozenset({"NAME", "_QUESTION"}), "a field"),
    (frozenset({"LSQUARE", "MISSING"}), "[…]"),
    (frozenset({"SAME", "UNEQUAL", "LESS", "AT_MOST", "GREATER", "AT_LEAST"}), "a comparison"),
    (frozenset({"COLON", "LIKE", "LIKE_CASELESS", "REGEX", "REGEX_CASELESS"}), ""),
    (frozenset({"IN", "IN_CASELESS", "NOT"}), ""),
    (frozenset({"PLUS", "MINUS"}), ""),
    (frozenset({"STAR", "SLASH", "PERCENT"}), ""),
    (frozenset({"_AND", "_OR"}), "and/or"),
)
"""Groups of terminals by name: the first that fits is used, and empty names are not shown."""
_WORDS: Final = {"NAME": "a name", "INT": "a whole number", "FLOAT": "a number", "$END": _END}
_CHARACTERS: Final = {
    "'": ("strings stand in double quotes", 'a string such as "cmd.exe"', "a single quote begins nothing"),
    '"': (
        "this string is not closed",
        'a closing "',
        'inside of a string, " is written \\" and a backslash \\\\',
    ),
    "`": ("this name is not closed", "a closing `", ""),
    "&": ("& is not an operator", "and", ""),
    "!": ("! is not an operator", "not, or != between two values", "![…] is an item of a sequence"),
}
_UPPER: Final = frozenset(RESERVED - {"of", "join"})


def syntax_error(problem: UnexpectedInput, text: str, grammar: Lark) -> QueryError:
    """The error for a text that cannot be parsed."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    if isinstance(problem, UnexpectedCharacters):
        return _unreadable(problem, text)
    if isinstance(problem, UnexpectedToken):
        return _misplaced(problem, text, grammar)
    raise problem


def _unreadable(problem: UnexpectedCharacters, text: str) -> QueryError:
    start = problem.pos_in_stream or 0
    sign = text[start]
    message, expected, hint = _CHARACTERS.get(
        sign,
        (
            f"{sign!r} has no meaning here",
            "a name, a constant or an operator",
            "names with characters other than letters, digits, _ and @ go in `backquotes`",
        ),
    )
    return QueryError(
        message, text=text, span=Span(start, start + 1), found=sign, expected=expected, hint=hint
    )


def _misplaced(problem: UnexpectedToken, text: str, grammar: Lark) -> QueryError:
    token = problem.token
    at_end = token.type == "$END"
    end = len(text.rstrip())
    span = Span(end, end) if at_end else span_of(token)
    message = "the text ends too early" if at_end else f"{token} is not expected here"
    if not text.strip():
        message = "there is no query here"
    return QueryError(
        message,
        text=text,
        span=span,
        found=_END if at_end else str(token),
        expected=_expected(_accepted_before(token, text, grammar), grammar),
        hint=_hint(token, text[: span.start], text[span.start :]),
    )


def _accepted_before(token: Token, text: str, grammar: Lark) -> frozenset[str]:
    """The terminals that the parser accepts in place of `token`, after all tokens before it."""
    reading = grammar.parse_interactive(text)
    for earlier in reading.lexer_thread.lex(reading.parser_state):  # type: ignore[no-untyped-call]
        if earlier.start_pos == token.start_pos and token.type != "$END":
            break
        reading.feed_token(earlier)
    return frozenset(str(accept) for accept in reading.accepts())  # type: ignore[no-untyped-call]


def _expected(terminals: frozenset[str], grammar: Lark) -> str:
    left = set(terminals) - (
        {"_LPAR"} if "SAME" in terminals else set()
    )  # a name may be the name of a function
    words: list[str] = []
    for group, word in _GROUPS:
        if group <= left:
            words += [word] if word else []
            left -= group
    if "$END" in left:
        left.discard("$END")
        words.append(_END)
    words += [
        _WORDS.get(terminal) or _sign(terminal, grammar)
        for terminal in sorted(left - {"CASELESS_NAME", "RAW"})
    ]
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else (words or [_END])[0]


def _sign(terminal: str, grammar: Lark) -> str:
    value = grammar.get_terminal(terminal).pattern.value
    return {"MISSING": "'!['", "STRING": "a string"}.get(terminal) or (
        value if value.isalpha() else f"'{value}'"
    )


_Hint = Callable[["Token", str, str], str]


def _hint(token: Token, before: str, after: str) -> str:
    return next(filter(None, (hint(token, before, after) for hint in _HINTS)), "")


def _of_equals(token: Token, before: str, after: str) -> str:
    del before, after
    return "== compares exactly, : without case and with * and ?" if token.type == "EQUALS" else ""


def _of_upper_case(token: Token, before: str, after: str) -> str:
    del before, after
    word = str(token)
    return (
        f"keywords are in lower case: {word.lower()}"
        if word != word.lower() and word.lower() in _UPPER
        else ""
    )


def _of_lineage(token: Token, before: str, after: str) -> str:
    del after
    if str(token) == "of" and re.search(r"\b(child|descendant|event)$", before.rstrip()):
        return "child of, descendant of and event of are not read: join the events in a sequence by their ids"
    return ""


def _of_join(token: Token, before: str, after: str) -> str:
    del token, after
    is_join = re.fullmatch(r"\s*join\s*", before) is not None
    return "join is not read: sample by k […] […] takes events in any order" if is_join else ""


def _of_elements(token: Token, before: str, after: str) -> str:
    del after
    if token.type == "LSQUARE" and re.search(r"\w$", before):
        return "a comparison with a list holds if any of its elements does, so there is no [0]"
    return ""


def _of_not(token: Token, before: str, after: str) -> str:
    del token
    if re.search(r"\bnot$", before.rstrip()) and re.match(r"like|regex|:", after):
        return 'not stands before the whole comparison: not name like "a*"'
    return ""


def _of_where(token: Token, before: str, after: str) -> str:
    del after
    if token.type == "$END" or re.search(r"\bwhere\b", before):
        return ""
    if token.type == "_WHERE":
        return "before where stands the category of the events, or any"
    return "a query begins with the category of its events: process where …, any where …"


def _of_chains(token: Token, before: str, after: str) -> str:
    del before, after
    compares = token.type in ("SAME", "UNEQUAL", "LESS", "AT_MOST", "GREATER", "AT_LEAST")
    return "comparisons are joined by and: 1 < x and x < 5" if compares else ""


def _of_strings(token: Token, before: str, after: str) -> str:
    del after
    if token.type in ("STRING", "RAW") and before.endswith("?"):
        return 'a string of which no sign is an escape stands in """three quotes"""'
    return ""


def _of_reserved(token: Token, before: str, after: str) -> str:
    del after
    if str(token) in RESERVED and re.search(r"(?:where|and|or|not|by|,|\()\s*\??$", before):
        return f"a field of this name stands in backquotes: `{token}`"
    return ""


_HINTS: Final[tuple[_Hint, ...]] = (
    *(_of_equals, _of_upper_case, _of_lineage, _of_join, _of_elements, _of_not, _of_strings),
    *(_of_where, _of_chains, _of_reserved),
)
