"""Texts of the events that a transition reads: ``SELL[price > 10]``, AND, OR, NOT; ``*`` is any event.

``START()`` is the first event of the stream, or of its partition. The text is parsed by the grammar of
conditions, in which a type's name reads like a variable's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from estero.automata.cea import FIRST, EventPredicate
from estero.errors import QueryError, Span
from estero.language.syntax.parser import parse_condition
from estero.language.tree import expressions as e
from estero.language.tree.names import listed, suggestion

MOST_CLAUSES = 256
_ANY = "_"
"""The name that replaces ``*``; it has the same length, so that positions in the text stay the same."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A conjunction of literals: all of `present` are true of the event, none of `absent` is."""

    present: tuple[EventPredicate, ...] = ()
    absent: tuple[EventPredicate, ...] = ()

    def meet(self, other: Clause) -> Clause:
        """The conjunction of two clauses."""
        return Clause(
            tuple(dict.fromkeys((*self.present, *other.present))),
            tuple(dict.fromkeys((*self.absent, *other.absent))),
        )


def clauses_of(text: str, types: Sequence[str] | None, where: str) -> list[Clause]:
    """The clauses of the disjunctive normal form of a text; an event must satisfy one of them.

    ``NOT SELL[price > 10]`` is any event except a SELL with ``price > 10``. `types` are all types of events,
    or None if they are not given; `where` names the transition.

    Raises `QueryError` with the position in `text`.

    >>> [str(predicate) for predicate in clauses_of("SELL[price > 10] OR BUY", None, "")[0].present]
    ['SELL[price > 10]']
    """
    place = len(text) - len(text.lstrip())
    if text.strip() == "*":
        return [Clause()]
    starred = text[place : place + 1] == "*"
    readable = f"{text[:place]}{_ANY}{text[place + 1 :]}" if starred else text
    reader = _Reader(text, place if starred else -1, types, where)
    try:
        node = parse_condition(readable)
    except QueryError as error:
        error.text = text
        error.message = f"{where}: {error.message}"
        raise
    return reader.clauses(node, wanted=True)


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    star: int
    types: Sequence[str] | None
    where: str

    def clauses(self, node: e.Node, *, wanted: bool) -> list[Clause]:
        """The clauses under which `node` is true, or not true unless `wanted`."""
        match node:
            case e.Not(part):
                return self.clauses(part, wanted=not wanted)
            case e.And(parts) | e.Or(parts):
                by_part = [self.clauses(part, wanted=wanted) for part in parts]
                if isinstance(node, e.And) != wanted:
                    return [clause for alternatives in by_part for clause in alternatives]
                return self._all(by_part, node.span)
            case _:
                predicate = self._predicate(node)
                return [Clause(present=(predicate,)) if wanted else Clause(absent=(predicate,))]

    def _all(self, parts: Sequence[Sequence[Clause]], span: Span) -> list[Clause]:
        clauses = []
        for choice in product(*parts):
            whole = Clause()
            for clause in choice:
                whole = whole.meet(clause)
            clauses.append(whole)
            if len(clauses) > MOST_CLAUSES:
                raise self._wrong(
                    f"this has more than {MOST_CLAUSES} alternatives",
                    span,
                    expected="fewer alternatives in one transition",
                    hint="spread them over several states",
                )
        return clauses

    def _predicate(self, node: e.Node) -> EventPredicate:
        match node:
            case e.SetPredicate("START", ()):
                return FIRST
            case e.Attribute(name, None) if node.span.start != self.star:
                return EventPredicate((self._type(name, node.span),))
            case e.EventFilter(_, condition) if node.span.start == self.star:
                return EventPredicate(self._all_types(node.span), self._about_one_event(condition))
            case e.EventFilter(name, condition):
                return EventPredicate((self._type(name, node.span),), self._about_one_event(condition))
            case e.Comparison(">", e.Attribute(stream, None), e.Attribute(name, None)):
                return EventPredicate((self._type(f"{stream}>{name}", node.span),))
            case e.Comparison(">", e.Attribute(stream, None), e.EventFilter(name, condition)):
                names = (self._type(f"{stream}>{name}", node.span),)
                return EventPredicate(names, self._about_one_event(condition))
            case _:
                attributes = any(isinstance(inner, e.Attribute) for inner in node.walk())
                raise self._wrong(
                    "this does not say which events are read",
                    node.span,
                    expected="TYPE, TYPE[condition], these with AND, OR and NOT, or * for any event",
                    hint=f"write TYPE[{node!s}] with the type of the events"
                    if attributes and node.span.start != self.star
                    else "",
                )

    def _type(self, name: str, span: Span) -> str:
        if self.types is not None and name not in self.types:
            raise self._wrong(
                f"there are no events of type {name}",
                Span(span.start, min(span.end, span.start + len(name))),
                expected=listed(tuple(self.types)),
                hint=suggestion(name, tuple(self.types)),
            )
        return name

    def _all_types(self, span: Span) -> tuple[str, ...]:
        if self.types is None:
            raise self._wrong(
                "this reads events of any type",
                Span(span.start, span.start + 1),
                expected="the name of a type",
                hint="or say with types=[…] which types there are",
            )
        return tuple(dict.fromkeys(self.types))

    def _about_one_event(self, condition: e.Node) -> e.Node:
        for node in condition.walk():
            if isinstance(node, e.EventFilter | e.Aggregate | e.SetPredicate | e.Previous):
                raise self._wrong(
                    "a transition looks at one event",
                    node.span,
                    expected="a condition on the attributes of the event that is read",
                    hint="conditions on several events are for queries: FILTER x.a < y.a",
                )
        return condition

    def _wrong(self, message: str, span: Span, *, expected: str, hint: str = "") -> QueryError:
        piece = self.text[span.start : span.end]
        return QueryError(
            f"{self.where}: {message}", text=self.text, span=span, found=piece, expected=expected, hint=hint
        )
