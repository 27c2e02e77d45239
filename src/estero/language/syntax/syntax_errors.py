"""Lark's errors as `QueryError` in the words of the language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from estero.errors import QueryError, Span
from estero.language.syntax import hints, mistakes_in_clauses, mistakes_in_patterns
from estero.language.syntax.clauses import clause_at_end
from estero.language.syntax.misplaced import COMPARISONS, Misplaced, Mistake
from estero.language.syntax.productions import span_of
from estero.language.tree.words import KEYWORDS, is_keyword

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_END: Final = "the end of the text"

_VALUE: Final = frozenset({"NAME", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "NULL", "MINUS"})
_GROUPS: Final = (
    (_VALUE | {"_LPAR", "NOT"}, "a condition"),
    (_VALUE | {"_LPAR"}, "a value"),
    (_VALUE, "a constant"),
    (frozenset({"NAME", "_LPAR", "NOT", "_LSQUARE"}), "a pattern"),
    (frozenset({"NAME", "_LPAR", "NOT"}), "a pattern"),
    (frozenset({"NAME", "_LPAR"}), "a pattern"),
    (COMPARISONS | {"NOT"}, "a comparison"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}), "+ - * / %"),
    (frozenset({"PLUS", "COLON_PLUS", "_LBRACE", "_COLON_LBRACE", "QUESTION", "STAR"}), "a repetition"),
)
"""Groups of terminals with a common name; the first that fits wins."""

_NAMES: Final = {"QUOTED", "_CASE", "_DISTINCT", "STRATEGY"}
"""Terminals that are names as well, or begin like one."""

_WORDS: Final = {
    "NAME": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "STRING": "a string in single quotes",
    "COLON_PLUS": "':+'",
    "_COLON_LBRACE": "':{'",
    "UNEQUAL": "'!='",
    **{f"_{word}": word for word in ("WHEN", "THEN", "ELSE", "END")},
    "PER": "PER",
    "$END": _END,
}

_KEYWORDS: Final = [
    word for keyword in KEYWORDS for word in (["ORDER_BY", keyword] if keyword == "LIMIT" else [keyword])
]
"""The terminals of keywords, in the order in which they are named."""

_SIGNS: Final = {
    "&&": "AND",
    "||": "OR",
    "&": "AND",
    "|": "OR",
    "!": "NOT",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "→": ";",
    "−": "-",
    "×": "*",
}
"""Signs that begin no token, with what to write instead; a longer one comes before its prefix."""
_ALSO: Final = {"!": ", and in a pattern NOT(…)", "||": ", or concat(a, b) to join strings"}
_UNCLOSED: Final = {
    "'": ("string", "single quote", "a single quote inside a string is written twice: 'it''s'"),
    **{
        mark: ("quoted name", mark, "double quotes and backticks are for names, single quotes for strings")
        for mark in ('"', "`")
    },
}
"""The thing that an unclosed quote begins, the sign that closes it, and a hint."""
_STRANGE: Final = {
    **dict.fromkeys("“”‘’", "strings are written in single quotes: 'INTC'"),
    "$": "a parameter is $ and a name: $least; its value is given to query.bind",
    "@": "write the value itself: a number, or a string in single quotes",
    "#": "a comment begins with --; names with # in them go in double quotes",
    "^": "there is no power operator: write x * x",
    "\\": "a text continues on the next line without any sign",
}


def syntax_error(problem: UnexpectedInput, text: str, start: str, grammar: Lark) -> QueryError:
    """The error for a text that cannot be parsed from `start`."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    if isinstance(problem, UnexpectedCharacters):
        return _unreadable(problem, text, start)
    if isinstance(problem, UnexpectedToken):
        return _misplaced(problem, text, start, grammar)
    raise problem


def _unreadable(problem: UnexpectedCharacters, text: str, read: str) -> QueryError:
    start = problem.pos_in_stream or 0
    rest = text[start:]
    sign = next((known for known in _SIGNS if rest.startswith(known)), rest[0])
    if sign == "=" and read == "conjunctive_query":
        message = "a conjunctive query has no ="
        expected = "the same variable, or a constant, in both places"
        hint = "T(k: x) names the attribute k, T(k: 5) requires it to be 5, two atoms with x share a value"
    elif sign in _UNCLOSED:
        what, closing, hint = _UNCLOSED[sign]
        message, expected = f"this {what} is not closed", f"a closing {closing}"
    elif sign in _SIGNS:
        message, expected = f"{sign} is not an operator", _SIGNS[sign]
        hint = f"write {expected}{_ALSO.get(sign, '')}"
    else:
        message, expected = f"{sign!r} has no meaning here", "a name, a constant or an operator"
        hint = _STRANGE.get(
            sign, "names with characters other than letters, digits and _ go in double quotes"
        )
    span = Span(start, start + len(sign))
    return QueryError(message, text=text, span=span, found=sign, expected=expected, hint=hint)


def _misplaced(problem: UnexpectedToken, text: str, start: str, grammar: Lark) -> QueryError:
    token = problem.token
    at_end = token.type == "$END"
    end = len(text.rstrip())
    span = Span(end, end) if at_end else span_of(token)
    accepted = _accepted_before(token, text, start, grammar) - {"PARAMETER"}  # goes where constants go
    before = text[: span.start].rstrip()
    first = {"pattern": "WHERE", "condition": "FILTER"}.get(start, "")
    misplaced = Misplaced(token, accepted, before, text[span.start :], clause_at_end(before, first))
    if not text.strip():
        message = f"there is no {start.replace('_', ' ')} here"
    else:
        message = "the text ends too early" if at_end else f"{_shown(token)} is not expected here"
    if start == "conjunctive_query":
        known, hint = None, hints.in_conjunctive
    else:
        known, hint = _known(misplaced), hints.in_ceql
    return QueryError(
        known.message if known else message,
        text=text,
        span=span,
        found=_END if at_end else str(token),
        expected=(known.expected if known else "")
        or _expected_unit(_expected(accepted, grammar), accepted, before),
        hint=known.hint if known else hint(misplaced),
    )


def _known(misplaced: Misplaced) -> Mistake | None:
    """The known mistake, if there is one."""
    said = (finder(misplaced) for clause, finder in _FINDERS if clause in ("", misplaced.clause))
    return next((mistake for mistake in said if mistake is not None), None)


_FINDERS: Final = (*mistakes_in_clauses.FINDERS, *mistakes_in_patterns.FINDERS)
"""The finders of known mistakes, of which the first result wins.

tests/hostile/words.txt is the index of the texts and their messages.
"""


def _accepted_before(token: Token, text: str, start: str, grammar: Lark) -> frozenset[str]:
    """The terminals that the parser accepts in place of `token`, after all tokens before it.

    The state in which the parser stopped says less, since it makes some reductions first.
    """
    reading = grammar.parse_interactive(text, start=start)
    for earlier in reading.lexer_thread.lex(reading.parser_state):  # type: ignore[no-untyped-call]
        if earlier.start_pos == token.start_pos and token.type != "$END":
            break
        reading.feed_token(earlier)
    return frozenset(str(accept) for accept in reading.accepts())  # type: ignore[no-untyped-call]


def _shown(token: Token) -> str:
    return str(token) if token.type in ("NAME", "QUOTED", "STRING") or is_keyword(token) else f"'{token}'"


def _expected_unit(words: str, accepted: frozenset[str], before: str) -> str:
    """The expected phrase, if a name after a number can only be a unit."""
    behind_number = re.search(r"\d\s*$", before) is not None and "NAME" in accepted
    return words.replace("a name", "a unit", 1) if behind_number else words


def _expected(terminals: frozenset[str], grammar: Lark) -> str:
    """The phrase for what could be there, the likely first."""
    left = set(terminals) - _NAMES if "NAME" in terminals else set(terminals)
    if "NAME" not in terminals and len(terminals) > 3:
        left -= {"_LPAR", "STRING"}  # START( and TIMESTAMP '' are what they could continue
    if "_DOT" in terminals and "_LPAR" not in terminals:  # any value may have a field or an element
        left -= {"_LSQUARE", "_DOT"} if "SLASH" in terminals else {"_LSQUARE"}
    words: list[str] = []
    for group, word in _GROUPS:
        if group <= left:
            words.append(word)
            left -= group
    keywords = [word for word in _KEYWORDS if word in left or f"_{word}" in left]
    signs = sorted(left - {*keywords, *(f"_{word}" for word in keywords)})
    words += [_WORDS.get(sign) or _sign(sign, grammar) for sign in signs if sign != "$END"]
    words += [word.replace("_", " ") for word in keywords]
    words += [_END] if "$END" in left else []
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _sign(terminal: str, grammar: Lark) -> str:
    return f"'{grammar.get_terminal(terminal).pattern.value}'"
