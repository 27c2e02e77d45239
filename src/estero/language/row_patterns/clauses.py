"""The text between the parentheses of MATCH_RECOGNIZE → its tree, or all its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from estero.errors import QueryError, Span
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.tree import (
    PAST_LAST_ROW,
    Named,
    Nothing,
    RowPattern,
    RowPatternClause,
    RowsPerMatch,
    Scalar,
    Skip,
    Subset,
    Variable,
)
from estero.language.row_patterns.words import Dialect, Word, closing, split, words_of

_T = TypeVar("_T")

_BEGINNINGS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("PARTITION BY", ("PARTITION", "BY")),
    ("ORDER BY", ("ORDER", "BY")),
    ("MEASURES", ("MEASURES",)),
    ("ROWS PER MATCH", ("ONE", "ROW", "PER", "MATCH")),
    ("ROWS PER MATCH", ("ALL", "ROWS", "PER", "MATCH")),
    ("AFTER MATCH", ("AFTER", "MATCH")),
    ("INITIAL", ("INITIAL",)),
    ("SEEK", ("SEEK",)),
    ("PATTERN", ("PATTERN", "(")),
    ("WITHIN", ("WITHIN",)),
    ("SUBSET", ("SUBSET",)),
    ("DEFINE", ("DEFINE",)),
    ("DEFINES", ("DEFINES",)),
)
"""The parts of the clause in the order of the standard, and the words with which they begin."""
_ORDER: Final = tuple(dict.fromkeys(name for name, _ in _BEGINNINGS))
_GOES_ON: Final = frozenset(
    {"AS", ".", ",", "=", "+", "-", "*", "/", "|", "<", ">", "(", "BY", "AND", "OR", "NOT"}
)
"""Words that cannot end a part, so that a name after one of them begins no part."""
_NAMED_AS_KEYWORDS: Final = frozenset({"AS", ",", "."})
"""Words that follow a name which is spelled like the beginning of a part."""
_EXAMPLE: Final = (
    "PARTITION BY …, ORDER BY …, MEASURES … AS …, ONE ROW PER MATCH, AFTER MATCH SKIP …, PATTERN (…), "
    "SUBSET …, DEFINE … AS …, in this order"
)


@dataclass
class _Part:
    """A part of the clause: the words with which it begins, and those after them."""

    name: str
    head: Sequence[Word]
    body: list[Word] = field(default_factory=list)

    @property
    def span(self) -> Span:
        return Span(self.head[0].start, self.head[-1].end)


class _Mistakes:
    """All errors of a clause, in the order of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.errors: list[QueryError] = []

    def add(self, message: str, span: Span, *, expected: str = "", hint: str = "") -> None:
        """Adds an error."""
        piece = self._text[span.start : span.end]
        self.errors.append(
            QueryError(message, text=self._text, span=span, found=piece, expected=expected, hint=hint)
        )


def raise_all(errors: Sequence[QueryError]) -> None:
    """Raises the first of the errors, with the others in it, if there is one."""
    if errors:
        first, *others = sorted(errors, key=lambda error: (error.span.start, error.span.end))
        first.others = tuple(others)
        raise first


def parse_clause(text: str, start: int, end: int, dialect: Dialect) -> RowPatternClause:
    """The tree of the clause whose parentheses are at `start` and before `end` of a statement.

    Raises `QueryError` with all errors that can be found without knowing the columns.
    """
    mistakes = _Mistakes(text)
    words = words_of(text, start + 1, end - 1, dialect)
    whole = Span(start, end)
    parts = _parts_of(words, mistakes, whole)
    _check_order(parts, mistakes)
    by_name = {part.name: part for part in reversed(parts)}
    clause = _Reader(text, by_name, mistakes).read(whole, dialect)
    raise_all(mistakes.errors)
    return clause


def _parts_of(words: Sequence[Word], mistakes: _Mistakes, whole: Span) -> list[_Part]:
    parts: list[_Part] = []
    index = 0
    while index < len(words):
        name, size = _beginning(words, index)
        if name and _is_at_beginning(words, index, size, parts):
            parts.append(_Part(name, words[index : index + size]))
            index += size
            continue
        stop = (closing(words, index) or index) if words[index].text in ("(", "[", "{") else index
        if not parts:
            mistakes.add(
                f"{words[index].text!r} does not begin a part of MATCH_RECOGNIZE",
                words[index].span,
                expected=_EXAMPLE,
            )
            return parts
        parts[-1].body += words[index : stop + 1]
        index = stop + 1
    if not parts:
        mistakes.add("MATCH_RECOGNIZE is empty", whole, expected=_EXAMPLE)
    return parts


def _beginning(words: Sequence[Word], index: int) -> tuple[str, int]:
    for name, keywords in _BEGINNINGS:
        if tuple(word.upper for word in words[index : index + len(keywords)]) == keywords:
            return name, len(keywords) - (keywords[-1] == "(")
    return "", 0


def _is_at_beginning(words: Sequence[Word], index: int, size: int, parts: Sequence[_Part]) -> bool:
    """Whether the words at `index` begin a part, and are not names that are spelled like one."""
    if parts and not parts[-1].body and parts[-1].name not in ("ROWS PER MATCH", "INITIAL", "SEEK"):
        return False
    before = words[index - 1].upper if index else ""
    behind = words[index + size].upper if index + size < len(words) else ""
    if before in _GOES_ON:
        return False
    return size > 1 or behind not in _NAMED_AS_KEYWORDS


def _check_order(parts: Sequence[_Part], mistakes: _Mistakes) -> None:
    seen: dict[str, _Part] = {}
    latest = -1
    for part in parts:
        name = "DEFINE" if part.name == "DEFINES" else part.name
        place = _ORDER.index(name)
        if part.name == "DEFINES":
            mistakes.add("DEFINES is not known", part.span, hint="write DEFINE")
        elif part.name in ("INITIAL", "SEEK"):
            mistakes.add(f"{part.name} is not supported in MATCH_RECOGNIZE", part.span, hint="leave it out")
        elif name in seen:
            mistakes.add(f"there is more than one {name} clause", part.span, hint="join them to one")
        elif place < latest:
            mistakes.add(
                f"{name} comes after {_ORDER[latest]}", part.span, expected=_EXAMPLE, hint="move it forward"
            )
        seen[name] = part
        latest = max(latest, place)
    if parts and "PATTERN" not in seen:
        mistakes.add(
            "MATCH_RECOGNIZE requires a PATTERN clause",
            parts[-1].span,
            hint="say which rows follow one another, as in PATTERN (A B+)",
        )
    if "PATTERN" in seen and "DEFINE" not in seen:
        mistakes.add(
            "MATCH_RECOGNIZE requires a DEFINE clause",
            seen["PATTERN"].span,
            hint="say which rows a variable may have, as in DEFINE A AS price > 10, or A AS TRUE",
        )


class _Reader:
    """Reads the parts of a clause."""

    def __init__(self, text: str, parts: dict[str, _Part], mistakes: _Mistakes) -> None:
        self._text, self._parts, self._mistakes = text, parts, mistakes

    def read(self, whole: Span, dialect: Dialect) -> RowPatternClause:
        """The clause, as far as it could be read."""
        pattern, pattern_span = self._pattern()
        return RowPatternClause(
            pattern=pattern,
            define=self._entries("DEFINE", self._condition),
            measures=self._entries("MEASURES", self._measure),
            partition_by=self._entries("PARTITION BY", self._scalar),
            order_by=self._entries("ORDER BY", self._scalar),
            rows=self._rows(),
            skip=self._skip(),
            subsets=self._entries("SUBSET", self._subset),
            within=self._within(),
            dialect=dialect,
            text=self._text,
            span=whole,
            pattern_span=pattern_span,
        )

    def _entries(self, name: str, read: Callable[[Sequence[Word], _Part], _T | None]) -> tuple[_T, ...]:
        part = self._parts.get(name)
        if part is None:
            return ()
        entries = split(part.body)
        if not all(entries):
            self._mistakes.add(f"{name} has an entry that is empty", part.span, hint="leave out the comma")
        values = [read(words, part) for words in entries if words]
        return tuple(value for value in values if value is not None)

    def _scalar(self, words: Sequence[Word], _part: _Part | None = None) -> Scalar:
        span = words[0].span.to(words[-1].span)
        return Scalar(self._text[span.start : span.end], span)

    def _measure(self, words: Sequence[Word], _part: _Part) -> Named | None:
        if len(words) < 3 or words[-2].upper != "AS" or not words[-1].is_name:
            span = words[0].span.to(words[-1].span)
            self._mistakes.add("a measure has no name", span, expected="an expression AS a name")
            return None
        return Named(words[-1].name, self._scalar(words[:-2]), words[-1].span)

    def _condition(self, words: Sequence[Word], _part: _Part) -> Named | None:
        span = words[0].span.to(words[-1].span)
        if len(words) == 1 and words[0].upper == "AUTO":
            self._mistakes.add(
                "DEFINE AUTO is not supported", span, hint="write each condition, as in DEFINE A AS a > 0"
            )
            return None
        if len(words) < 3 or words[1].upper != "AS" or not words[0].is_name:
            self._mistakes.add(
                "a variable has no condition",
                span,
                expected="a variable AS a condition, as in A AS price > 10",
            )
            return None
        return Named(words[0].name, self._scalar(words[2:]), words[0].span)

    def _subset(self, words: Sequence[Word], _part: _Part) -> Subset | None:
        names = split(words[3:-1]) if len(words) > 4 else []
        is_list = bool(names) and all(len(name) == 1 and name[0].is_name for name in names)
        if not (is_list and words[0].is_name and words[1].text == "=" and words[2].text == "("):
            span = words[0].span.to(words[-1].span)
            self._mistakes.add(
                "a SUBSET that cannot be read", span, expected="a name = (variables), as in U = (A, B)"
            )
            return None
        return Subset(_variable(words[0]), tuple(_variable(name[0]) for name in names))

    def _rows(self) -> RowsPerMatch:
        part = self._parts.get("ROWS PER MATCH")
        if part is None:
            return "one"
        said = " ".join(word.upper for word in part.body)
        if part.head[0].upper == "ONE":
            if said:
                self._mistakes.add(
                    f"{said} does not belong to ONE ROW PER MATCH",
                    part.body[0].span.to(part.body[-1].span),
                    hint="leave it out, or write ALL ROWS PER MATCH",
                )
            return "one"
        kinds: dict[str, RowsPerMatch] = {
            "": "all",
            "SHOW EMPTY MATCHES": "all",
            "OMIT EMPTY MATCHES": "all nonempty",
            "WITH UNMATCHED ROWS": "all unmatched",
        }
        if said not in kinds:
            self._mistakes.add(
                "ALL ROWS PER MATCH is followed by something else",
                part.body[0].span.to(part.body[-1].span),
                expected="SHOW EMPTY MATCHES, OMIT EMPTY MATCHES, WITH UNMATCHED ROWS or nothing",
            )
        return kinds.get(said, "all")

    def _skip(self) -> Skip:
        part = self._parts.get("AFTER MATCH")
        if part is None:
            return PAST_LAST_ROW
        span = part.span.to(part.body[-1].span) if part.body else part.span
        match [word.upper for word in part.body]:
            case ["SKIP", "PAST", "LAST", "ROW"]:
                return Skip(span=span)
            case ["SKIP", "TO", "NEXT", "ROW"]:
                return Skip("next", span=span)
            case ["SKIP", "TO", "FIRST", _] if part.body[3].is_name:
                return Skip("first", _variable(part.body[3]), span)
            case ["SKIP", "TO", "LAST", _] if part.body[3].is_name:
                return Skip("last", _variable(part.body[3]), span)
            case ["SKIP", "TO", _] if part.body[2].is_name:
                return Skip("last", _variable(part.body[2]), span)
        self._mistakes.add(
            "AFTER MATCH says where to continue",
            span,
            expected="SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST A, SKIP TO LAST A or SKIP TO A",
        )
        return PAST_LAST_ROW

    def _pattern(self) -> tuple[RowPattern, Span]:
        part = self._parts.get("PATTERN")
        if part is None or not part.body:
            return Nothing(), Span(0, 0)
        stop = closing(part.body, 0)
        last = part.body[-1 if stop is None else stop]
        if stop is not None and stop + 1 < len(part.body):
            self._mistakes.add(
                "PATTERN is followed by something else",
                part.body[stop + 1].span,
                expected="WITHIN, SUBSET or DEFINE",
            )
        span = Span(part.body[0].start, last.end)
        try:
            return parse_row_pattern(self._text, span.start, span.end), span
        except QueryError as error:
            self._mistakes.errors.append(error)
            return Nothing(), span

    def _within(self) -> Scalar | None:
        part = self._parts.get("WITHIN")
        if part is None:
            return None
        if not part.body:
            self._mistakes.add(
                "WITHIN needs a length of time", part.span, hint="write WITHIN INTERVAL '1' HOUR"
            )
            return None
        return self._scalar(part.body)


def _variable(word: Word) -> Variable:
    return Variable(word.name, word.span)
