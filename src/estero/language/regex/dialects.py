"""The regular expressions of ``~``, rewritten so that Python, RE2 and Java find the same matches.

=============  ===============================================================  =====================
construct      habits                                                           here, everywhere
=============  ===============================================================  =====================
``.``          Java also stops at ``\\r`` and the Unicode line ends              all but ``\\n``
``$``          Python and Java also match before a last line end                the end of the text
``\\d \\w \\s``   Python's are Unicode's, RE2's ``\\s`` lacks the vertical tab      the ASCII ones, with it
``\\b``         Python's and older Java's are Unicode's                          between ASCII words
``(?i)``       three different foldings                                         ASCII letters only
=============  ===============================================================  =====================

Whether there is a match does not depend on laziness or groups, so neither is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from estero.language.regex.parser import parse_regex
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
)

_WORD: Final = "[0-9A-Za-z_]"
_LOOKING: Final = {
    "\\b": f"(?:(?<!{_WORD})(?={_WORD})|(?<={_WORD})(?!{_WORD}))",
    "\\B": f"(?:(?<!{_WORD})(?!{_WORD})|(?<={_WORD})(?={_WORD}))",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The notation of an engine for places between characters, and for characters by code point."""

    edges: dict[str, str]
    code_point: Callable[[int], str]

    def written(self, part: Part) -> str:
        """The text of a part."""
        match part:
            case Characters(ranges):
                return self.characters(ranges)
            case Edge(sign):
                return self.edges[sign]
            case Row(parts):
                return "".join(map(self._in_row, parts))
            case Choice(parts):
                return "|".join(map(self.written, parts))
            case Repeated(inner, least, most):
                text = self.written(inner)
                text = text if isinstance(inner, Characters) else f"(?:{text})"
                return f"{text}{{{least},{'' if most is None else most}}}"

    def _in_row(self, part: Part) -> str:
        return f"(?:{self.written(part)})" if isinstance(part, Choice) else self.written(part)

    def characters(self, ranges: Ranges) -> str:
        """One character of a set."""
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return self._plain(ranges[0][0])
        if not ranges or (len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == LAST):
            return f"[^{self._listed(complement(ranges))}]"
        return f"[{self._listed(ranges)}]"

    def _listed(self, ranges: Ranges) -> str:
        return "".join(
            self._plain(low) if low == high else f"{self._plain(low)}-{self._plain(high)}"
            for low, high in ranges
        )

    def _plain(self, point: int) -> str:
        character = chr(point)
        return character if character.isascii() and character.isalnum() else self.code_point(point)


_PYTHON: Final = Dialect({"^": r"\A", "$": r"\Z", **_LOOKING}, lambda point: rf"\U{point:08x}")
_RE2: Final = Dialect({"^": r"\A", "$": r"\z", "\\b": r"\b", "\\B": r"\B"}, lambda point: rf"\x{{{point:x}}}")
JAVA: Final = Dialect({"^": r"\A", "$": r"\z", **_LOOKING}, lambda point: rf"\x{{{point:x}}}")
"""The dialect of Java, which also needs an expression in a form that it matches safely: see java.py."""


@lru_cache(maxsize=256)
def for_python(regex: str) -> str:
    r"""The expression for `re.search`; raises `QueryError` as `parse_regex` does.

    >>> for_python("^a.$")
    '\\Aa[^\\U0000000a]\\Z'
    """
    return _PYTHON.written(parse_regex(regex))


@lru_cache(maxsize=256)
def for_re2(regex: str) -> str:
    """The expression for RE2, as DuckDB's ``regexp_matches`` reads it; raises as `parse_regex` does."""
    return _RE2.written(parse_regex(regex))
