"""The words of a statement that begin and end clauses, with their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from estero.errors import Span

Dialect = Literal["duckdb", "spark"]
"""The dialect of SQL of a statement."""
_SPACE: Final = r"(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"
_OTHERS: Final = r"""
  | (?P<word>[^\W\d][\w$]*)
  | (?P<number>\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)
  | (?P<sign>.)
    """
_QUOTED: Final[dict[Dialect, str]] = {
    "duckdb": r"""
  | (?P<string>[eEbBxX]?'(?:[^']|'')*'|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
  | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)""",
    "spark": r"""
  | (?P<string>[rR](?:'[^']*'|"[^"]*")|[xX]?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
  | (?P<quoted>`(?:[^`]|``)*`)""",
}
"""Strings and quoted names. Spark reads text in double quotes as a string."""
_WORDS: Final = {
    dialect: re.compile(_SPACE + quoted + _OTHERS, re.VERBOSE | re.DOTALL)
    for dialect, quoted in _QUOTED.items()
}
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}

Kind = Literal["string", "quoted", "word", "number", "sign"]


@dataclass(frozen=True, slots=True)
class Word:
    """A word, name, literal or sign, and its place."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.start, self.end)

    @property
    def upper(self) -> str:
        """The word in the form of keywords; the signs of anything else, and "" for quoted names."""
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def name(self) -> str:
        """The name that it is, without quotes."""
        if self.kind == "quoted":
            mark = self.text[0]
            return self.text[1:-1].replace(mark * 2, mark)
        return self.text

    @property
    def is_name(self) -> bool:
        """Whether it can be one."""
        return self.kind in ("word", "quoted")


def words_of(text: str, start: int = 0, end: int | None = None, dialect: Dialect = "duckdb") -> list[Word]:
    """The words of a text without spaces and comments."""
    words: list[Word] = []
    for token in _WORDS[dialect].finditer(text, start, len(text) if end is None else end):
        kind = token.lastgroup if token.lastgroup != "tag" else "string"
        if kind != "space":
            words.append(Word(kind, token[0], token.start()))  # type: ignore[arg-type]
    return words


def closing(words: Sequence[Word], opening: int) -> int | None:
    """The index of the bracket that closes the one at `opening`; None if there is none."""
    expected: list[str] = []
    for index in range(opening, len(words)):
        sign = words[index].text if words[index].kind == "sign" else ""
        if sign in _OPENING:
            expected.append(_OPENING[sign])
        elif expected and sign == expected[-1]:
            expected.pop()
            if not expected:
                return index
    return None


def opening(words: Sequence[Word], closed: int) -> int | None:
    """The index of the bracket that the one at `closed` closes."""
    depth = 0
    for index in range(closed, -1, -1):
        sign = words[index].text if words[index].kind == "sign" else ""
        if sign in _OPENING.values():
            depth += 1
        elif sign in _OPENING:
            depth -= 1
            if depth == 0:
                return index
    return None


def split(words: Sequence[Word], sign: str = ",") -> list[Sequence[Word]]:
    """The parts of a list, split at a sign outside of brackets."""
    parts: list[Sequence[Word]] = []
    depth = first = 0
    for index, word in enumerate(words):
        if word.kind != "sign":
            continue
        if word.text in _OPENING:
            depth += 1
        elif word.text in _OPENING.values():
            depth -= 1
        elif word.text == sign and depth == 0:
            parts.append(words[first:index])
            first = index + 1
    parts.append(words[first:])
    return parts
