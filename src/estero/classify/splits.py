"""Predicates split into what the strings of an event decide, and the rest; and the columns read for it.

Everything that drops irrelevant events tests strings first: DuckDB's statement and Spark's condition
(bits.py), and the screen over Arrow batches (screening.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from estero.automata.cea import EventPredicate
from estero.language.tree.expressions import And, Attribute, Comparison, In, Literal, Node, Or
from estero.language.tree.paths import column_of
from estero.plan.plan import Classification


@dataclass(frozen=True, slots=True)
class Split:
    """A predicate as ``column is one of these strings`` for some columns, AND the rest."""

    one_of: Mapping[str, frozenset[str]]
    rest: Node | None


def split(predicate: EventPredicate, type_column: str | None, screened: Collection[str]) -> Split:
    """The part of a predicate screened by these columns and its rest, whose conjunction is the predicate."""
    one_of: dict[str, frozenset[str]] = {}
    if type_column is not None:
        one_of[type_column] = frozenset(predicate.types)
    condition = predicate.condition
    parts = condition.parts if isinstance(condition, And) else () if condition is None else (condition,)
    rest: list[Node] = []
    for part in parts:
        name, strings = _one_of(part) or ("", frozenset())
        if name in screened:
            one_of[name] = one_of.get(name, strings) & strings
        else:
            rest.append(part)
    return Split(one_of, And(tuple(rest)) if len(rest) > 1 else rest[0] if rest else None)


def columns_needed(classification: Classification, rests: Iterable[Node | None]) -> Iterator[str]:
    """The columns needed of relevant events when `rests` remain of the predicates, with repetitions."""
    yield from map(column_of, _attributes_needed(classification, rests))


def _attributes_needed(classification: Classification, rests: Iterable[Node | None]) -> Iterator[str]:
    """The attributes needed of relevant events, which are columns or fields inside them."""
    if classification.schema.time is not None:
        yield classification.schema.time
    for bracket in classification.keys:
        yield from bracket
        if len(bracket) > 1 and classification.type_column is not None:
            yield classification.type_column
    for read in (*rests, *(value.expression for value in classification.values)):
        if read is not None:
            yield from (node.name for node in read.walk() if isinstance(node, Attribute))
    if classification.values and classification.type_column is not None:
        yield classification.type_column
    yield from classification.payload


def _one_of(condition: Node) -> tuple[str, frozenset[str]] | None:
    """The column and its strings, if that is all that a condition says.

    >>> from estero.language.syntax.parser import parse_condition
    >>> name, texts = _one_of(parse_condition("s = 'a' OR s IN {'b', 'c'}"))
    >>> name, sorted(texts)
    ('s', ['a', 'b', 'c'])
    """
    match condition:
        case Or(parts):
            known = [_one_of(part) for part in parts]
            names = {name for name, _ in filter(None, known)}
            if None in known or len(names) > 1:
                return None
            return names.pop(), frozenset().union(*(texts for _, texts in filter(None, known)))
        case Comparison("=", Attribute(name, None), Literal(str() as text)) | Comparison(
            "=", Literal(str() as text), Attribute(name, None)
        ):
            return name, frozenset((text,))
        case In(Attribute(name, None), members):
            texts = [member.value for member in members if isinstance(member, Literal)]
            if len(texts) == len(members) and all(isinstance(text, str) for text in texts):
                return name, frozenset(str(text) for text in texts)
    return None
