"""The flags of Sigma's regular expressions, written into expressions of CEQL, whose only flag is ``(?i)``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from estero.errors import QueryError

_ANYTHING: Final = r"[\d\D]"
_LEADING: Final = re.compile(r"\(\?([ims]+)\)")
_TOKENS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[.^$|()]|[^\\\[.^$|()]+|.", re.DOTALL)
_NAMES: Final = {"i": "IGNORECASE", "m": "MULTILINE", "s": "DOTALL"}


def flags_of(modifiers: Iterable[str]) -> frozenset[str]:
    """The flags among the modifiers of a regular expression: ``i`` or ``ignorecase``, and so on."""
    return frozenset(
        flag for name in modifiers for letter, flag in _NAMES.items() if name in (letter, flag.lower())
    )


def with_flags(regex: str, flags: frozenset[str]) -> str:
    r"""The expression that matches without flags what `regex` matches with them.

    Flags are IGNORECASE, MULTILINE and DOTALL.

    With MULTILINE, ``^`` and ``$`` may only be at the ends of alternatives; raises `QueryError` otherwise.

    >>> with_flags("^a.$", frozenset({"MULTILINE"})), with_flags("a.", frozenset({"DOTALL", "IGNORECASE"}))
    ('(?:^|\\n)a.(?:$|\\n)', '(?i)a[\\d\\D]')
    """
    leading = _LEADING.match(regex)
    if leading is not None:
        regex, flags = regex[leading.end() :], flags | {_NAMES[letter] for letter in leading[1]}
    tokens = _TOKENS.findall(regex)
    if "DOTALL" in flags:
        tokens = [_ANYTHING if sign == "." else sign for sign in tokens]
    if "MULTILINE" in flags:
        tokens = _by_lines(tokens)
    return ("(?i)" if "IGNORECASE" in flags else "") + "".join(tokens)


def _by_lines(tokens: list[str]) -> list[str]:
    depth, written = 0, []
    for place, sign in enumerate(tokens):
        depth += (sign == "(") - (sign == ")")
        begins = place == 0 or (depth == 0 and tokens[place - 1] == "|")
        ends = place == len(tokens) - 1 or (depth == 0 and tokens[place + 1] == "|")
        if sign == "^" and begins and not depth:
            written.append(r"(?:^|\n)")
        elif sign == "$" and ends and not depth:
            written.append(r"(?:$|\n)")
        elif sign in ("^", "$"):
            raise QueryError(
                f"{sign} inside of a regular expression over lines is not taken",
                hint="the flag m goes with ^ and $ at its ends",
            )
        else:
            written.append(sign)
    return written
