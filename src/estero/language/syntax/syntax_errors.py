"""What Lark could not read → a `QueryError` in the words of the language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from estero.errors import QueryError, Span
from estero.language.syntax.assemble_condition import span_of
from estero.language.syntax.clauses import unclosed
from estero.language.syntax.mistakes import mistake_of
from estero.language.tree.names import suggestion
from estero.language.tree.words import KEYWORDS, is_keyword

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Lark, Token
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    Hint = Callable[[Token, set[str], str], str]
    """From what was found, the terminals that could stand there and the text before it: how to mend it."""

_END: Final = "the end of the text"

_VALUE: Final = frozenset({"NAME", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "NULL", "MINUS"})
_COMPARISON: Final = frozenset(
    {"EQUAL", "UNEQUAL", "LESS", "AT_MOST", "GREATER", "AT_LEAST", "IN", "LIKE", "TILDE"}
)
_GROUPS: Final = (
    (_VALUE | {"_LPAR", "NOT"}, "a condition"),
    (_VALUE | {"_LPAR"}, "a value"),
    (_VALUE, "a constant"),
    (frozenset({"NAME", "_LPAR", "NOT"}), "a pattern"),
    (frozenset({"NAME", "_LPAR"}), "a pattern"),
    (_COMPARISON | {"BETWEEN", "IS", "NOT"}, "a comparison"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}), "+ - * / %"),
    (frozenset({"PLUS", "COLON_PLUS", "_LBRACE", "_COLON_LBRACE", "QUESTION"}), "a repetition"),
)
"""Terminals that stand together, and what they are together. The first that fits wins."""

_WORDS: Final = {
    "NAME": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "STRING": "a string in single quotes",
    "COLON_PLUS": "':+'",
    "_COLON_LBRACE": "':{'",
    "UNEQUAL": "'!='",
    "$END": _END,
}

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
"""Signs that no token begins with, and what is written instead; of two that begin alike the longer first."""
_STRANGE: Final = {
    **dict.fromkeys("“”‘’", "strings stand in single quotes: 'INTC'"),
    **dict.fromkeys("$@", "write the value itself: a number, or a string in single quotes"),
    "#": "a comment begins with --; names with # in them stand in double quotes",
    "^": "there are no powers: write x * x",
    "\\": "a text goes on in the next line without any sign",
}


def syntax_error(
    problem: UnexpectedInput, text: str, start: str, grammar: Lark | None = None, hint: Hint | None = None
) -> QueryError:
    """The error for a text that the grammar (CEQL's, if none is given) has no place for."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from estero.language.syntax.parse import parser

    if isinstance(problem, UnexpectedCharacters):
        return _unreadable(problem, text)
    if isinstance(problem, UnexpectedToken):
        return _misplaced(problem, text, start, grammar or parser(), hint or _hint_or_advice)
    raise problem


def _unreadable(problem: UnexpectedCharacters, text: str) -> QueryError:
    start = problem.pos_in_stream or 0
    rest = text[start:]
    span = Span(start, start + 1)
    if rest[0] == "'":
        return QueryError(
            "this string has no end",
            text=text,
            span=span,
            found="'",
            expected="a closing single quote",
            hint="a single quote inside a string is written twice: 'it''s'",
        )
    if rest[0] in ('"', "`"):
        return QueryError(
            "this quoted name has no end",
            text=text,
            span=span,
            found=rest[0],
            expected=f"a closing {rest[0]}",
            hint="double quotes and backticks are for names; strings stand in single quotes",
        )
    for sign, word in _SIGNS.items():
        if rest.startswith(sign):
            return QueryError(
                f"{sign} is not an operator",
                text=text,
                span=Span(start, start + len(sign)),
                found=sign,
                expected=word,
                hint=f"write {word}" if word != "NOT" else "write NOT, and in a pattern NOT(…)",
            )
    return QueryError(
        f"{rest[0]!r} means nothing here",
        text=text,
        span=span,
        found=rest[0],
        expected="a name, a constant or an operator",
        hint=_STRANGE.get(
            rest[0], "names with other characters than letters, digits and _ stand in double quotes"
        ),
    )


def _misplaced(problem: UnexpectedToken, text: str, start: str, grammar: Lark, hint: Hint) -> QueryError:
    token = problem.token
    accepted = _accepted_before(token, text, start, grammar)
    at_end = token.type == "$END"
    end = len(text.rstrip())
    span = Span(end, end) if at_end else span_of(token)
    if not text.strip():
        message = f"there is no {start.replace('_', ' ')} here"
    else:
        message = "the text ends too early" if at_end else f"{_shown(token)} is not expected here"
    known = mistake_of(token, accepted, text, span.start, start) if hint is _hint_or_advice else None
    return QueryError(
        known.message if known else message,
        text=text,
        span=span,
        found=_END if at_end else str(token),
        expected=(known.expected if known else "")
        or _expected_unit(expected_words(accepted, grammar), accepted, text[: span.start]),
        hint=known.hint if known else hint(token, accepted, text[: span.start].rstrip()),
    )


def _accepted_before(token: Token, text: str, start: str, grammar: Lark) -> set[str]:
    """The terminals that could stand where `token` does: those that the parser accepts after all before it.

    The state in which the parser gave up tells less: some reductions are done before it notices.
    """
    reading = grammar.parse_interactive(text, start=start)
    for each in reading.lexer_thread.lex(reading.parser_state):  # type: ignore[no-untyped-call]
        if each.start_pos == token.start_pos and token.type != "$END":
            break
        reading.feed_token(each)
    return {str(each) for each in reading.accepts()}  # type: ignore[no-untyped-call]


def _shown(token: Token) -> str:
    return str(token) if token.type in ("NAME", "QUOTED", "STRING") or is_keyword(token) else f"'{token}'"


def _expected_unit(words: str, accepted: set[str], before: str) -> str:
    """Behind a number a name can only be a unit."""
    behind_number = re.search(r"\d\s*$", before) is not None and "NAME" in accepted
    return words.replace("a name", "a unit", 1) if behind_number else words


def expected_words(terminals: set[str], grammar: Lark) -> str:
    """What could stand there, as one phrase, the likely things first."""
    left = set(terminals) - {"QUOTED"} if "NAME" in terminals else set(terminals)
    if "NAME" not in terminals and len(terminals) > 3:
        left -= {"_LPAR", "STRING"}  # START( and TIMESTAMP '' are what they could continue
    words: list[str] = []
    for group, word in _GROUPS:
        if group <= left:
            words.append(word)
            left -= group
    signs = sorted(each for each in left if each in _WORDS or not is_keyword(each.lstrip("_")))
    keywords = [each for each in KEYWORDS if each in left or f"_{each}" in left]
    words += [_WORDS.get(each) or _sign(each, grammar) for each in signs if each != "$END"]
    words += keywords
    words += [_END] if "$END" in left else []
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _sign(terminal: str, grammar: Lark) -> str:
    return f"'{grammar.get_terminal(terminal).pattern.value}'"


def _hint_or_advice(token: Token, accepted: set[str], before: str) -> str:
    return _hint(token, accepted, before) or _advice(token, accepted)


def _hint(token: Token, accepted: set[str], before: str) -> str:
    """How to mend it, where the mistake is a known one."""
    opened = unclosed(before)
    if {"NAME", "_LSQUARE"} <= accepted and re.search(r"\bWITHIN\s+\d+$", before, re.IGNORECASE):
        return "a window is written WITHIN 10 SECONDS, WITHIN 100 EVENTS or WITHIN 5 [time]"
    if token.type == "EQUAL" and before.endswith("="):
        return "equality is written with one ="
    if token.type == "$END" and opened is not None:
        return f"the {before[opened]!r} at character {opened + 1} is not closed"
    if token.type in ("WITHIN", "CONSUME", "LIMIT", "FROM", "WHERE") and opened is not None:
        return f"the {before[opened]!r} at character {opened + 1} is not closed"
    if accepted == {"_LBRACE"}:
        return "the members of a set stand in braces: IN {1, 2, 5..9}"
    if token.type in ("_RPAR", "_RSQUARE", "_RBRACE") and opened is None:
        return f"nothing is open that this {str(token)!r} could close"
    if token.type in ("SEMICOLON", "COLON", "ALL", "UNLESS") and re.search(r"(?i)\bfilter\b", before):
        return "a filter covers all of the pattern before it; to go on, put both in parentheses"
    return _hint_on_words(token, accepted)


def _hint_on_words(token: Token, accepted: set[str]) -> str:
    if {"WHERE", "FROM"} <= accepted and token.type in ("NAME", "QUOTED", "_LPAR"):
        possible = suggestion(token, ("WHERE", "FROM"))
        return possible or "the pattern comes after WHERE"
    if token.type == "FLOAT" and accepted <= {"INT", "MINUS"}:
        return "a whole number of smaller units says the same: 1 HOUR 30 MINUTES"
    if token.type == "QUOTED" and "STRING" in accepted and "NAME" not in accepted:
        return f"single quotes make a string: '{token[1:-1]}'"
    if "STAR" in accepted and token.type in ("FROM", "WHERE"):
        return "SELECT * shows all labels, and SELECT NONE no label"
    if "NAME" in accepted and is_keyword(token):
        return f'{token.upper()} is a keyword; as a name it is written "{token}"'
    if token.type == "NAME":
        possible_words = [word for word in KEYWORDS if word in accepted or f"_{word}" in accepted]
        return suggestion(token.upper(), possible_words)
    return ""


def _advice(token: Token, accepted: set[str]) -> str:
    """What is written there, where no known mistake explains what was found."""
    if "SELECT" in accepted:
        return "the shortest query is SELECT * WHERE and an event type"
    if "$END" in accepted <= {"$END", "CONSUME", "LIMIT"}:
        return "the clauses stand in this order, each once: PARTITION BY, WITHIN, CONSUME BY, LIMIT"
    if accepted == {"INT"}:
        return "how often is written {2}, {2,} or {2,5}"
    if "SEMICOLON" in accepted:
        return "between two patterns stands ; for later, : for the very next event, or AND, OR, ALL, UNLESS"
    if token.type == "$END":
        return "something has to follow the last word, or it is one too many"
    return "something is missing before it, or it is one too many"
