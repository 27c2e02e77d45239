"""The part of a predicate that says "this string column is one of these", apart from its rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from estero.automata.cea import EventPredicate
from estero.language.tree.expressions import And, Attribute, Comparison, In, Literal, Node


@dataclass(frozen=True, slots=True)
class Split:
    """A predicate as ``column is one of these strings``, for some columns, AND the rest."""

    one_of: Mapping[str, frozenset[str]]
    rest: Node | None


def split(predicate: EventPredicate, type_column: str | None, screened: Collection[str]) -> Split:
    """The part of a predicate that is screened by these columns, and its rest; it is true where both are."""
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


def _one_of(condition: Node) -> tuple[str, frozenset[str]] | None:
    match condition:
        case Comparison("=", Attribute(name, None), Literal(str() as text)):
            return name, frozenset((text,))
        case Comparison("=", Literal(str() as text), Attribute(name, None)):
            return name, frozenset((text,))
        case In(Attribute(name, None), members):
            texts = [member.value for member in members if isinstance(member, Literal)]
            if len(texts) == len(members) and all(isinstance(text, str) for text in texts):
                return name, frozenset(str(text) for text in texts)
    return None
