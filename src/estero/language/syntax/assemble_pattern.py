"""The productions of patterns: Lark's parse tree → nodes of the pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.syntax.assemble_condition import name_of, node_of, span_of
from estero.language.tree import pattern as p
from estero.language.tree.literals import integer_value
from estero.language.tree.names import suggestion
from estero.language.tree.render import render_pattern

if TYPE_CHECKING:
    from lark import Token

Children = list[Any]
"""Patterns, pieces of the kinds below, and tokens."""

Wrap = Callable[[p.Pattern, Span], p.Pattern]


@dataclass(frozen=True, slots=True)
class Tail:
    """A FILTER, KEEP or PARTITION BY behind a pattern, before it is put around it."""

    wrap: Wrap
    span: Span


@dataclass(frozen=True, slots=True)
class PartitionTail(Tail):
    """A PARTITION BY: the keys of each bracket, and where the brackets are."""

    brackets: tuple[tuple[p.PartitionKey, ...], ...]
    places: tuple[Span, ...]

    @property
    def plain(self) -> bool:
        """Whether all keys are attributes without a variable."""
        return all(key.variable is None for keys in self.brackets for key in keys)


@dataclass(frozen=True, slots=True)
class _Absent:
    """A ``NOT(…)`` of a sequence."""

    pattern: p.Pattern
    span: Span


def with_tails(pattern: p.Pattern, tails: list[Tail]) -> p.Pattern:
    """The pattern with FILTER, KEEP and PARTITION BY around it, the first innermost."""
    start = pattern.span.start
    for tail in tails:
        pattern = tail.wrap(pattern, Span(min(start, tail.span.start), tail.span.end))
    return pattern


def _tailed(children: Children, _span: Span) -> p.Pattern:
    return with_tails(children[0], children[1:])


def _filter_tail(children: Children, span: Span) -> Tail:
    condition = node_of(children[1])
    return Tail(lambda pattern, place: p.Filter(pattern, condition, span=place), span)


def _keep_tail(children: Children, span: Span) -> Tail:
    labels = tuple(map(name_of, children[1:]))
    return Tail(lambda pattern, place: p.Keep(pattern, labels, span=place), span)


def _partition_tail(children: Children, span: Span) -> Tail:
    brackets = tuple(keys for keys, _ in children[2:])
    places = tuple(place for _, place in children[2:])

    def wrap(pattern: p.Pattern, place: Span) -> p.Pattern:
        for keys, bracket in zip(brackets, places, strict=True):
            pattern = p.PartitionBy(pattern, keys, span=Span(place.start, bracket.end))
        return pattern

    return PartitionTail(wrap, span, brackets, places)


def _bracket(children: Children, span: Span) -> tuple[tuple[p.PartitionKey, ...], Span]:
    return tuple(children), span


def _lone_key(children: Children, span: Span) -> tuple[tuple[p.PartitionKey, ...], Span]:
    (key,) = children
    if key.variable is not None:
        raise QueryError(
            "keys of variables stand in brackets",
            span=span,
            found="a key without brackets",
            expected="PARTITION BY [x.a, y.b]: what x and y mark agrees, x.a = y.b",
            hint="or leave the variable out: PARTITION BY a is the attribute a of all events",
        )
    return (key,), span


def _key(children: Children, _span: Span) -> p.PartitionKey:
    *variable, attribute = map(name_of, children)
    return p.PartitionKey(attribute, variable[0] if variable else None)


def _disjunction(children: Children, span: Span) -> p.Pattern:
    return p.Disjunction(tuple(children), span=span)


def _conjunction(children: Children, span: Span) -> p.Pattern:
    return p.Conjunction(tuple(children), span=span)


def _all(children: Children, span: Span) -> p.Pattern:
    return p.All(tuple(children[::2]), span=span)


def _unless(children: Children, span: Span) -> p.Pattern:
    return p.Unless(children[0], children[2], span=span)


def _absent(children: Children, span: Span) -> _Absent:
    inner = children[1]
    while isinstance(inner, p.As | p.Filter):
        inner = inner.pattern
    if isinstance(inner, p.Disjunction) and all(isinstance(part, p.EventType) for part in inner.parts):
        types = map(render_pattern, inner.parts)
        raise QueryError(
            "NOT(…) takes one event type",
            span=children[1].span,
            found="several event types",
            expected="an event type, with AS and FILTER if wanted",
            hint=f"for none of them write a ; {' ; '.join(f'NOT({each})' for each in types)} ; b",
        )
    if not isinstance(inner, p.EventType):
        raise QueryError(
            "NOT(…) takes one event type",
            span=children[1].span,
            found="a larger pattern",
            expected="an event type, with AS and FILTER if wanted",
            hint="for a pattern that must not happen inside another, write UNLESS",
        )
    return _Absent(children[1], span)


@dataclass(slots=True)
class _Chain:
    """A sequence as far as it is read: `absent` are the NOT(…) since the last part."""

    parts: list[p.Pattern] = field(default_factory=list)
    links: list[p.Link] = field(default_factory=list)
    absent: list[p.Pattern] = field(default_factory=list)
    contiguous: bool = False


def _sequence(children: Children, span: Span) -> p.Pattern:
    chain = _Chain()
    if isinstance(children[0], _Absent):
        raise _misplaced(children[0].span, "start")
    if isinstance(children[-1], _Absent):
        raise _misplaced(children[-1].span, "end")
    chain.parts.append(children[0])
    for separator, item in zip(children[1::2], children[2::2], strict=True):
        contiguous = separator.type == "COLON"
        if chain.absent and contiguous != chain.contiguous:
            raise QueryError(
                "the links on both sides of NOT(…) differ",
                span=span_of(separator),
                found=str(separator),
                expected=":" if chain.contiguous else ";",
                hint="';' forbids such events between the parts, ':' asks for one event that is not such",
            )
        chain.contiguous = contiguous
        if isinstance(item, _Absent):
            chain.absent.append(item.pattern)
            continue
        chain.parts.append(item)
        chain.links.append(p.Link(contiguous, tuple(chain.absent)))
        chain.absent.clear()
    return p.Sequence(tuple(chain.parts), tuple(chain.links), span=span)


def _misplaced(span: Span, end: str) -> QueryError:
    return QueryError(
        "NOT(…) stands between two parts of a sequence",
        span=span,
        found=f"NOT at the {end} of a sequence",
        expected="a part that happens before it and one that happens after it",
        hint="for a pattern that must not happen inside another, write UNLESS",
    )


def _plus(children: Children, span: Span) -> p.Pattern:
    return p.Iteration(children[0], span=span)


def _contiguous_plus(children: Children, span: Span) -> p.Pattern:
    return p.Iteration(children[0], contiguous=True, span=span)


def _bounded(contiguous: bool) -> Callable[[Children, Span], p.Pattern]:
    def iteration(children: Children, span: Span) -> p.Pattern:
        pattern, (minimum, maximum) = children
        return p.Iteration(pattern, contiguous, minimum, maximum, span=span)

    return iteration


def _exactly(children: Children, _span: Span) -> tuple[int, int | None]:
    times = _times(children[0])
    return times, times


def _at_least(children: Children, _span: Span) -> tuple[int, int | None]:
    return _times(children[0]), None


def _from_to(children: Children, _span: Span) -> tuple[int, int | None]:
    return _times(children[0]), _times(children[1])


def _times(token: Token) -> int:
    return integer_value(token, span_of(token))


def _optional(children: Children, span: Span) -> p.Pattern:
    return p.Optional(children[0], span=span)


def _as(children: Children, span: Span) -> p.Pattern:
    return p.As(children[0], name_of(children[2]), span=span)


def _rename(children: Children, span: Span) -> p.Pattern:
    pattern, old, new = children
    return p.Rename(pattern, name_of(old), name_of(new), span=span)


def _event_type(children: Children, span: Span) -> p.Pattern:
    return p.EventType(name_of(children[0]), span=span)


def _stream_type(children: Children, span: Span) -> p.Pattern:
    return p.EventType(name_of(children[2]), name_of(children[0]), span=span)


def _modified(children: Children, span: Span) -> p.Pattern:
    word, pattern = children
    if word.upper() == "START":
        return p.Start(pattern, span=span)
    if word.upper() == "STRICT":
        return p.Strict(pattern, span=span)
    raise QueryError(
        f"{word}(…) is not an operator of patterns",
        span=span_of(word),
        found=str(word),
        expected="START, STRICT or NOT before a parenthesis",
        hint=suggestion(word.upper(), ("START", "STRICT", "NOT"))
        or f"to filter events of {word}, write {word} FILTER …",
    )


def _group(children: Children, _span: Span) -> p.Pattern:
    return cast(p.Pattern, children[0])


PRODUCTIONS: Final = {
    "tailed": _tailed,
    "filter_tail": _filter_tail,
    "keep_tail": _keep_tail,
    "partition_tail": _partition_tail,
    "bracket": _bracket,
    "lone_key": _lone_key,
    "key": _key,
    "disjunction": _disjunction,
    "unless": _unless,
    "conjunction": _conjunction,
    "all": _all,
    "absent": _absent,
    "sequence": _sequence,
    "plus": _plus,
    "contiguous_plus": _contiguous_plus,
    "iteration": _bounded(contiguous=False),
    "contiguous_iteration": _bounded(contiguous=True),
    "exactly": _exactly,
    "at_least": _at_least,
    "from_to": _from_to,
    "optional": _optional,
    "as_": _as,
    "rename": _rename,
    "event_type": _event_type,
    "stream_type": _stream_type,
    "modified": _modified,
    "group": _group,
}
