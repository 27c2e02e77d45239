"""Lucene's regular expressions, the operands of ``regex``, as regular expressions of CEQL.

They match whole values. ``.`` matches any character, ``^`` and ``$`` match themselves, ``@`` matches any
text, and text in double quotes matches literally. Operators that only Lucene has (``&``, ``~``, ``<1-9>``,
``#``) are errors.
"""

from __future__ import annotations

import re
from typing import Final

from estero.errors import QueryError, Span
from estero.language.regex.parser import parse_regex

_ANY: Final = r"[\s\S]"
_PIECE: Final = re.compile(
    r"""\\(?P<escaped>.)|(?P<class>\[\^?(?:\\.|[^\\\]])+\])|"(?P<quoted>[^"]*)"|(?P<sign>.)""", re.DOTALL
)
_ONLY_LUCENE: Final = {
    "&": "an intersection",
    "~": "a complement",
    "<": "a range of numbers",
    "#": "the language without any text",
}


def as_regex(pattern: str, span: Span, *, caseless: bool) -> str:
    r"""The equivalent of one of Lucene's expressions, anchored at both ends of a value.

    Raises `QueryError` for syntax that only one of the two dialects has.

    >>> print(as_regex("a.b$", Span(0, 0), caseless=False))
    \A(?:a[\s\S]b\$)\z
    """
    inner = "".join(_written(piece, span) for piece in _PIECE.finditer(pattern))
    regex = rf"{'(?i)' if caseless else ''}\A(?:{inner})\z"
    try:
        parse_regex(regex)
    except QueryError as error:
        message = re.sub(
            r" at character \d+ of the regular expression", " in this regular expression", error.message
        )
        raise QueryError(
            message, span=span, found=error.found, expected=error.expected, hint=error.hint
        ) from error
    return regex


def _written(piece: re.Match[str], span: Span) -> str:
    sign, quoted = piece["sign"], piece["quoted"]
    if piece["escaped"] is not None:
        return _escaped(piece["escaped"])
    if piece["class"] is not None:
        return _class(piece["class"])
    if quoted is not None:
        return "".join(map(_literal, quoted))
    if sign in _ONLY_LUCENE:
        raise QueryError(
            f"{sign} is {_ONLY_LUCENE[sign]} in regular expressions of Lucene, which no engine here knows",
            span=span,
            found=sign,
            expected=f"\\{sign} for the character",
        )
    return {".": _ANY, "@": f"{_ANY}*", "^": r"\^", "$": r"\$"}.get(sign, sign)


def _escaped(character: str) -> str:
    return f"\\{character}" if character in "dDwWsS" else _literal(character)


def _literal(character: str) -> str:
    """A character that matches itself."""
    if character.isalnum() or not character.isascii() or not character.isprintable():
        return character
    return f"\\{character}"


def _class(written: str) -> str:
    """A character class, in which only the closing bracket, ``-``, ``^`` and the backslash are special."""
    opening = "[^" if written.startswith("[^") and len(written) > 3 else "["
    inner = written[len(opening) : -1]

    def piece(match: re.Match[str]) -> str:
        return _escaped(match[1]) if match[1] else f"\\{match[0]}"

    return opening + re.sub(r"\\(.)|[\[&^]", piece, inner, flags=re.DOTALL) + "]"
