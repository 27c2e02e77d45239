"""The productions of patterns, from Lark's parse tree to nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span
from estero.language.syntax.productions import (
    Children,
    Production,
    name_of,
    node_of,
    nodes_of,
    refused,
    span_of,
)
from estero.language.tree import distances
from estero.language.tree import pattern as p
from estero.language.tree.distances import Apart, Distance
from estero.language.tree.literals import integer_value
from estero.language.tree.names import suggestion
from estero.language.tree.parameters import OpenNumber
from estero.language.tree.paths import element_of, field_of, variable_in
from estero.language.tree.selection import bound_names

if TYPE_CHECKING:
    from lark import Token

_UNKNOWN: Final = p.EventType("_")
"""The placeholder in a tail for the pattern that it will be put around."""


@dataclass(frozen=True, slots=True)
class Tail:
    """A FILTER, KEEP or PARTITION BY after a pattern, before it is put around it.

    `nodes` are one for each bracket of PARTITION BY, with the bracket's span, and otherwise one.
    """

    nodes: tuple[p.Filter | p.Keep | p.PartitionBy, ...]
    span: Span

    def over(self, pattern: p.Pattern) -> Tail:
        """The tail after this pattern, where the first name of a key may be one of its variables."""
        if not any(isinstance(node, p.PartitionBy) for node in self.nodes):
            return self
        labels = frozenset(bound_names(pattern))
        return replace(
            self,
            nodes=tuple(
                _with_variables(node, labels) if isinstance(node, p.PartitionBy) else node
                for node in self.nodes
            ),
        )

    @property
    def plain_keys(self) -> list[p.PartitionBy]:
        """The nodes of a PARTITION BY if no key has a variable, else none."""
        nodes = [node for node in self.nodes if isinstance(node, p.PartitionBy)]
        return nodes if all(key.variable is None for node in nodes for key in node.keys) else []


@dataclass(frozen=True, slots=True)
class _Absent:
    """A ``NOT(…)`` of a sequence."""

    pattern: p.Pattern
    span: Span


def with_tails(pattern: p.Pattern, tails: list[Tail]) -> p.Pattern:
    """The pattern with FILTER, KEEP and PARTITION BY around it, the first innermost."""
    start = pattern.span.start
    for tail in tails:
        for node in tail.over(pattern).nodes:
            span = Span(min(start, tail.span.start), node.span.end)
            pattern = replace(node, pattern=pattern, span=span)
    return pattern


def _filter_tail(children: Children, span: Span) -> Tail:
    return Tail((p.Filter(_UNKNOWN, node_of(children[1]), span=span),), span)


def _keep_tail(children: Children, span: Span) -> Tail:
    return Tail((p.Keep(_UNKNOWN, tuple(map(name_of, children[1:])), span=span),), span)


def _lone_key(children: Children, span: Span) -> p.PartitionBy:
    return p.PartitionBy(_UNKNOWN, tuple(children), span=span)


def _with_variables(node: p.PartitionBy, labels: frozenset[str]) -> p.PartitionBy:
    """The keys with a variable if their first name is one of these labels and more names follow."""
    keys = tuple(
        replace(key, attribute=dotted[1], variable=dotted[0])
        if (dotted := variable_in(key.attribute)) is not None and dotted[0] in labels
        else key
        for key in node.keys
    )
    if keys != node.keys and node.span == node.keys[0].span:  # without brackets
        raise QueryError(
            "keys with variables go in brackets",
            span=node.span,
            found="a key without brackets",
            expected="PARTITION BY [x.a, y.b]: what x and y mark agrees, x.a = y.b",
            hint="or leave the variable out: PARTITION BY a is the attribute a of all events",
        )
    return replace(node, keys=keys)


def _step_of_key(step: Callable[[str, Any], str]) -> Production:
    def build(children: Children, span: Span) -> p.PartitionKey:
        key, token = children
        inside = _times(token) if token.type == "INT" else name_of(token)
        return p.PartitionKey(step(key.attribute, inside), span=span)

    return build


def _absent(children: Children, span: Span) -> _Absent:
    inner = children[1]
    while isinstance(inner, p.As | p.Filter):
        inner = inner.pattern
    if isinstance(inner, p.EventType):
        return _Absent(children[1], span)
    several = isinstance(inner, p.Disjunction) and all(isinstance(part, p.EventType) for part in inner.parts)
    raise QueryError(
        "NOT(…) takes one event type",
        span=children[1].span,
        found="several event types" if several else "a larger pattern",
        expected="an event type, with AS and FILTER if wanted",
        hint=f"to forbid each of them, write a ; {' ; '.join(f'NOT({part})' for part in inner.parts)} ; b"
        if several
        else "for a pattern that must not happen inside another, write UNLESS",
    )


@dataclass(slots=True)
class _Chain:
    """A partly read sequence: `absent` are the NOT(…) since the last part, `lacking` those FOR d."""

    parts: list[p.Pattern] = field(default_factory=list)
    links: list[p.Link] = field(default_factory=list)
    absent: list[p.Pattern] = field(default_factory=list)
    lacking: list[p.Absence] = field(default_factory=list)
    before: tuple[p.Absence, ...] = ()
    contiguous: bool = False
    distances: tuple[Distance, ...] = ()

    def take(self, part: p.Pattern) -> None:
        """Adds a part, with the absences before it."""
        if self.parts:
            link = p.Link(self.contiguous, tuple(self.absent), self.distances, tuple(self.lacking))
            self.links.append(link)
        else:
            self.before = tuple(self.lacking)
        self.parts.append(part)
        self.absent.clear()
        self.lacking.clear()
        self.distances = ()


@dataclass(frozen=True, slots=True)
class _Operator:
    """A ``;`` or ``:`` of a sequence, with the step after it, if there is one."""

    sign: Token
    step: p.Step | None

    @property
    def contiguous(self) -> bool:
        """Whether it is ``:``."""
        return self.sign.type == "COLON"


def _link(children: Children, _span: Span) -> _Operator:
    return _Operator(children[0], children[1] if len(children) > 1 else None)


def _step(children: Children, span: Span) -> p.Step:
    absent = tuple(child.pattern for child in children if isinstance(child, _Absent))
    return p.Step(absent, tuple(child for child in children if isinstance(child, Distance)), span=span)


def _stepped(children: Children, span: Span) -> p.Pattern:
    """``φ+[…]``, and ``φ*[…]``, which is ``(φ+[…])?``."""
    pattern, step = children
    repeated = pattern.pattern if isinstance(pattern, p.Optional) else pattern
    if not isinstance(repeated, p.Iteration) or repeated.step != p.Step():
        raise QueryError(
            "a step goes right after ; or : or a repetition",
            span=step.span,
            found="conditions on a step",
            expected=f"a ;{step} b, or a+{step}",
            hint="conditions on attributes go in FILTER, after the pattern",
        )
    if repeated.contiguous:  # nothing lies between what follows directly
        step = replace(step, absent=())
    stepped = replace(repeated, step=step, span=span)
    return stepped if pattern is repeated else replace(pattern, pattern=stepped, span=span)


def _sequence(children: Children, span: Span) -> p.Pattern:
    _check_ends(children, span)
    chain = _Chain()
    for operator, item in zip((None, *children[1::2]), children[::2], strict=True):
        if operator is not None:
            _take_operator(chain, operator, item)
        if isinstance(item, _Absent):
            chain.absent.append(item.pattern)
        elif isinstance(item, p.Absence):
            chain.lacking.append(item)
        else:
            chain.take(item)
    return p.Sequence(tuple(chain.parts), tuple(chain.links), chain.before, tuple(chain.lacking), span=span)


def _check_ends(children: Children, span: Span) -> None:
    """Refuses a NOT(…) without FOR at an end of a sequence, and a sequence without any part."""
    items = children[::2]
    ends = (("start", _until_part(items)), ("end", _until_part(items[::-1])))
    for end, absent in ends:
        for item in (child for child in absent if isinstance(child, _Absent)):
            raise QueryError(
                "NOT(…) goes between two parts of a sequence",
                span=item.span,
                found=f"NOT at the {end} of a sequence",
                expected="a part that happens before it and one that happens after it",
                hint="with a time it may be first or last: NOT(b) FOR 1 HOUR; "
                "for a pattern that must not happen inside another, write UNLESS",
            )
    if all(isinstance(item, p.Absence) for item in items):
        raise QueryError(
            "a sequence needs a part that happens, before or after NOT(…)",
            span=span,
            found="a sequence of nothing but NOT(…)",
            expected="a part that happens: a ; NOT(b) FOR 1 HOUR",
            hint="an event of any type that comes often enough can be that part",
        )


def _until_part(items: Children) -> Children:
    return list(takewhile(lambda item: isinstance(item, _Absent | p.Absence), items))


def _take_operator(chain: _Chain, operator: _Operator, item: object) -> None:
    contiguous, not_there = operator.contiguous, isinstance(item, _Absent | p.Absence)
    if chain.absent and contiguous != chain.contiguous:
        raise refused(
            operator.sign,
            "the links on both sides of NOT(…) differ",
            ":" if chain.contiguous else ";",
            "';' forbids such events between the parts, ':' requires one event that is not such an event",
        )
    if contiguous and (chain.lacking or isinstance(item, p.Absence)):
        raise refused(
            operator.sign,
            "NOT(…) FOR is joined by ; alone",
            ";",
            "a : b leaves no time between a and b",
        )
    chain.contiguous = contiguous
    if operator.step is not None:
        _take_step(chain, operator, not_there)


def _lacking(children: Children, span: Span) -> p.Absence:
    sign, pattern, word, length = children
    if word.upper() != "FOR":
        raise refused(
            word, "NOT(…) is followed by what happens then, or by FOR", "FOR, or ;", "a ; NOT(b) ; c"
        )
    absent = _absent([sign, pattern], span)
    apart = Apart(">", length, span=length.span)
    return p.Absence(absent.pattern, apart, span=span)


def _take_step(chain: _Chain, operator: _Operator, before_absent: bool) -> None:
    step = operator.step
    if step is None:
        return
    if before_absent or chain.absent or chain.lacking:
        raise QueryError(
            "a step leads from one part to the next, and NOT(…) is not a part",
            span=step.span,
            found=f"a step {'before' if before_absent else 'behind'} NOT(…)",
            expected="NOT as one of the conditions in the brackets",
            hint="write a ;[<= 5 MINUTES, NOT b] c",
        )
    chain.distances = step.distances
    if not operator.contiguous:  # nothing lies between what follows directly
        chain.absent.extend(step.absent)


def _as(children: Children, span: Span) -> p.Pattern:
    """``φ? AS x`` is ``(φ AS x)?``."""
    return p.settled(p.As(children[0], name_of(children[1]), span=span))


def _repeated(pattern: p.Pattern, contiguous: bool, times: tuple[int, int | None], span: Span) -> p.Pattern:
    """``φ{0,m}`` is ``(φ{1,m})?``."""
    least, most = times
    return p.settled(p.Iteration(pattern, contiguous, least, most, span=span))


def _times(token: Token) -> int:
    if token.type == "PARAMETER":
        return OpenNumber.of(token[1:], span_of(token))
    return integer_value(token, span_of(token))


def _modified(children: Children, span: Span) -> p.Pattern:
    word, pattern = children
    if word.upper() == "START":
        return p.Start(pattern, span=span)
    if word.upper() == "STRICT":
        return p.Strict(pattern, span=span)
    raise refused(
        word,
        f"{word}(…) is not an operator of patterns",
        "START, STRICT or NOT before a parenthesis",
        suggestion(word.upper(), ("START", "STRICT", "NOT"))
        or f"to filter events of {word}, write {word} FILTER …",
    )


PRODUCTIONS: Final[Mapping[str, Production]] = {
    **nodes_of(p),
    "tailed": lambda children, _: with_tails(children[0], children[1:]),
    "filter_tail": _filter_tail,
    "keep_tail": _keep_tail,
    "partition_tail": lambda children, span: Tail(tuple(children[2:]), span),
    "bracket": lambda keys, span: p.PartitionBy(_UNKNOWN, tuple(keys), span=span),
    "lone_key": _lone_key,
    "key": lambda children, span: p.PartitionKey(name_of(children[0]), span=span),
    "field_of_key": _step_of_key(field_of),
    "element_of_key": _step_of_key(element_of),
    **nodes_of(distances),
    "absent": _absent,
    "lacking": _lacking,
    "nothing": lambda children, span: _Absent(children[1], span),
    "link": _link,
    "step": _step,
    "stepped": _stepped,
    "sequence": _sequence,
    "plus": lambda children, span: p.Iteration(children[0], span=span),
    "contiguous_plus": lambda children, span: p.Iteration(children[0], contiguous=True, span=span),
    "star": lambda children, span: _repeated(children[0], False, (0, None), span),
    "iteration": lambda children, span: _repeated(children[0], False, children[1], span),
    "contiguous_iteration": lambda children, span: _repeated(children[0], True, children[1], span),
    "as": _as,
    "exactly": lambda times, _: (_times(times[0]), _times(times[0])),
    "at_least": lambda times, _: (_times(times[0]), None),
    "from_to": lambda times, _: (_times(times[0]), _times(times[1])),
    "modified": _modified,
}
"""The productions without a node class of their own, or that need more than its fields."""
