"""Tests of strings in Python with the results of the engines, in linear time.

Python's regular expressions backtrack where RE2 does not, up to exponentially often. So only expressions that
vary in a few places are tested here, on short strings; the others are left to SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from estero.language.regex.dialects import for_python
from estero.language.regex.parser import parse_regex
from estero.language.regex.tree import Characters, Choice, Part, Repeated, Row

Test = Callable[[str], bool]

MOST_LETTERS: Final = 200
"""The longest string tested for a regular expression in Python."""
_MOST_VARYING: Final = 2
_MOST_REPEATED: Final = 100


def like_test(pattern: str) -> Test:
    r"""The test that a string is LIKE the pattern; a backslash escapes ``% _ \`` and nothing else.

    Parts between two ``%`` are searched from left to right; the first occurrence always suffices.

    >>> test = like_test("a%b_")
    >>> test("a and bc"), test("ab")
    (True, False)
    """
    first, *others = _parts(pattern)
    if not others:
        whole = re.compile("".join(first), re.DOTALL).fullmatch
        return _equal_to(first) or (lambda text: whole(text) is not None)
    *middle, last = others
    begin = re.compile("".join(first), re.DOTALL).match
    searches = [re.compile("".join(part), re.DOTALL).search for part in middle if part]
    end, length = re.compile("".join(last), re.DOTALL).match, len(last)

    def is_like(text: str) -> bool:
        matched = begin(text)
        if matched is None:
            return False
        place = matched.end()
        for search in searches:
            matched = search(text, place)
            if matched is None:
                return False
            place = matched.end()
        tail = len(text) - length
        return tail >= place and end(text, tail) is not None

    return is_like


def _parts(pattern: str) -> list[list[str]]:
    """The pieces between the ``%`` of a pattern: a regular expression for each character."""
    parts: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            parts.append([])
        elif character == "\\":
            parts[-1].append(re.escape(next(characters, "\\")))
        else:
            parts[-1].append("." if character == "_" else re.escape(character))
    return parts


def _equal_to(part: list[str]) -> Test | None:
    """The test of a pattern without wildcards; None if it has one."""
    if "." in part:
        return None
    text = "".join(piece[-1] for piece in part)
    return text.__eq__


def regex_test(regex: str) -> Test | None:
    """The test that a string of at most `MOST_LETTERS` has a match; None if it is left to SQL.

    >>> regex_test("^a.*b$")("a or b"), regex_test("(a|ab)*c")
    (True, None)
    """
    if not _is_quick(parse_regex(regex)):
        return None
    search = re.compile(for_python(regex)).search
    return lambda text: search(text) is not None


def _is_quick(part: Part) -> bool:
    """Whether the expression has few ways to match, each with few steps."""
    repeated = [node for node in _walk(part) if isinstance(node, Repeated)]
    varying = [node for node in repeated if node.least != node.most]
    inside = [below for node in repeated for below in _walk(node.part)]
    return (
        len(varying) <= _MOST_VARYING
        and all(isinstance(node.part, Characters) for node in varying)
        and not any(isinstance(node, Choice | Repeated) for node in inside)
        and all(node.least <= _MOST_REPEATED for node in repeated)
    )


def _walk(part: Part) -> Iterator[Part]:
    yield part
    match part:
        case Row(parts) | Choice(parts):
            for section in parts:
                yield from _walk(section)
        case Repeated(inner):
            yield from _walk(inner)
