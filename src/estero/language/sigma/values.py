"""Values of pySigma as tests of a field, or of any text of an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, cast

from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaString,
    SigmaTimestampPart,
    SigmaType,
    SpecialChars,
)

from estero.errors import QueryError
from estero.language.regex.parser import parse_regex
from estero.language.sigma import tree as s
from estero.language.sigma.reading import Placeholders
from estero.language.sigma.regexes import with_flags
from estero.language.sigma.texts import escaped, number_text

_OPERATORS: Final[Mapping[CompareOperators, Literal["<", "<=", ">", ">="]]] = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
}
_PARTS: Final[Mapping[s.TimePart, range]] = {
    "minute": range(60),
    "hour": range(24),
    "day": range(1, 32),
    "week": range(1, 54),
    "month": range(1, 13),
}


def test_of(field: str, value: SigmaType, placeholders: Placeholders) -> s.Condition:
    """The test of a field for a value; raises `QueryError` for a value that cannot be compared."""
    match value:
        case SigmaExpansion(values=values):
            return s.Some(tuple(test_of(field, inner, placeholders) for inner in values))
        case SigmaString():
            cased = isinstance(value, SigmaCasedString)
            return _any(s.Text(field, like_of(text), cased) for text in expanded(value, placeholders))
        case SigmaTimestampPart():
            return _part_of_time(field, value)
        case SigmaNumber():
            return s.Number(field, value.number)
        case SigmaBool():
            return s.Truth(field, value.boolean)
        case SigmaNull():
            return s.Missing(field)
        case SigmaExists():
            return s.Negated(s.Missing(field)) if value.exists else s.Missing(field)
        case SigmaRegularExpression():
            return _any(s.Searched(field, regex) for regex in _regexes(value, placeholders))
        case SigmaCIDRExpression():
            return s.Network(field, str(value.network))
        case SigmaFieldReference():
            return s.SameAs(field, value.field, value.starts_with, value.ends_with)
        case SigmaCompareExpression():
            return _compared(field, value)
        case _:
            raise QueryError(f"nothing can be compared with {_named(value)}")


def _part_of_time(field: str, value: SigmaTimestampPart) -> s.Condition:
    part = cast("s.TimePart", value.timestamp_part.name.lower())
    if value.number not in _PARTS.get(part, (value.number,)):
        raise QueryError(f"no {part} is {number_text(value.number)}")
    return s.PartOfTime(field, part, int(value.number))


def _compared(field: str, value: SigmaCompareExpression) -> s.Condition:
    number = value.number.number
    if value.op is CompareOperators.NEQ:
        return s.Negated(s.Number(field, number))
    return s.Compared(field, _OPERATORS[value.op], number)


def keyword_of(value: SigmaType, placeholders: Placeholders) -> s.Condition:
    """The test of all texts of an event for a value; raises `QueryError` as `test_of`."""
    match value:
        case SigmaExpansion(values=values):
            return s.Some(tuple(keyword_of(inner, placeholders) for inner in values))
        case SigmaString():
            cased = isinstance(value, SigmaCasedString)
            return _any(s.Keyword(_inside(like_of(text)), cased) for text in expanded(value, placeholders))
        case SigmaNumber() if not isinstance(value, SigmaTimestampPart):
            return s.Keyword(_inside(escaped(number_text(value.number))))
        case SigmaBool():
            return s.Keyword(_inside(str(value.boolean).lower()))
        case SigmaRegularExpression():
            return _any(s.Keyword(regex=regex) for regex in _regexes(value, placeholders))
        case _:
            raise QueryError(f"{_named(value)} applies to a field, not to the whole event")


def like_of(value: SigmaString) -> str:
    """The pattern of LIKE for a text with wildcards."""
    signs = {SpecialChars.WILDCARD_MULTI: "%", SpecialChars.WILDCARD_SINGLE: "_"}
    pattern = "".join(
        escaped(part) if isinstance(part, str) else signs[cast("SpecialChars", part)] for part in value.s
    )
    while "%%" in pattern.replace("\\%", "  "):
        pattern = pattern.replace("%%", "%")
    return pattern


def _inside(pattern: str) -> str:
    """The pattern for texts that contain a match of another pattern."""
    ends = pattern.endswith("%") and not pattern.endswith("\\%")
    return ("" if pattern.startswith("%") else "%") + pattern + ("" if ends else "%")


def expanded(value: SigmaString, placeholders: Placeholders) -> list[SigmaString]:
    """The texts with values for placeholders; raises `QueryError` for a placeholder without values."""
    return value.replace_placeholders(_filled(placeholders)) if value.contains_placeholder() else [value]


def _filled(placeholders: Placeholders) -> Callable[[Placeholder], Iterator[SigmaString]]:
    """The values of placeholders, in which ``*`` and ``?`` are wildcards as in rules."""

    def fill(placeholder: Placeholder) -> Iterator[SigmaString]:
        if placeholder.name not in placeholders:
            raise QueryError(
                f"the placeholder %{placeholder.name}% has no values",
                hint=f"give them: placeholders={{{placeholder.name!r}: [...]}}",
            )
        yield from map(SigmaString, placeholders[placeholder.name])

    return fill


def _regexes(value: SigmaRegularExpression, placeholders: Placeholders) -> list[str]:
    """The regular expressions in the syntax of CEQL; raises `QueryError` for unsupported ones."""
    texts: list[str] = []
    regexp: object = value.regexp
    if regexp is None:
        raise QueryError("a regular expression is a text, not null")
    plain = [regexp]
    if isinstance(regexp, SigmaString):
        plain = list(expanded(regexp, placeholders))
    for text in plain:
        raw = text.to_plain_regex() if isinstance(text, SigmaString) else str(text)
        regex = with_flags(raw, frozenset(flag.name for flag in value.flags))
        parse_regex(regex)
        texts.append(regex)
    return texts


def _any(tests: Iterable[s.Condition]) -> s.Condition:
    parts = tuple(tests)
    return parts[0] if len(parts) == 1 else s.Some(parts)


def _named(value: SigmaType) -> str:
    return f"a value of the kind {type(value).__name__.removeprefix('Sigma')}"
