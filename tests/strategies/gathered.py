"""Random queries on `strategies.SCHEMA` that a joining automaton may serve: ALL, ;, OR, +, and equalities."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    EventFilter,
    Literal,
    Node,
)
from estero.language.tree.pattern import (
    All,
    As,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Link,
    Optional,
    PartitionBy,
    PartitionKey,
    Pattern,
    Sequence,
)
from estero.language.tree.query import Consume, KeyBracket, QueryTree
from estero.reference.queries import Event
from strategies.patterns import SCHEMA, TYPES, windows

_VARIABLES = "tuvwxyz"


@dataclass
class _Purse:
    """What a pattern may still spend, and the variables that it has."""

    events: int
    loops: int = 1
    variables: list[str] = field(default_factory=list)


@st.composite
def gathered_queries(draw: st.DrawFn, most: int = 5, *, clauses: bool = True) -> QueryTree:
    """Queries of 2 to `most` events, each with a variable of its own; two of three have an ALL on top."""
    purse = _Purse(draw(st.integers(2, most)))
    pattern = _pattern(draw, purse, 0)
    if draw(st.integers(0, 5)) == 0:
        one, two = (Attribute("n", draw(st.sampled_from(purse.variables))) for _ in range(2))
        left = Comparison(draw(st.sampled_from([">", "!="])), Arithmetic("+", one, two), Literal(0))
        pattern = Filter(pattern, left)
    tree = QueryTree(pattern)
    if clauses:
        tree = QueryTree(
            pattern,
            window=draw(st.none() | windows()),
            partition_by=draw(st.sampled_from([(), (), (), (KeyBracket(("k",)),)])),
            consume=draw(st.sampled_from([Consume.NONE] * 5 + [Consume.ANY, Consume.PARTITION])),
            limit=draw(st.sampled_from([None] * 7 + [1])),
        )
    return tree


def is_valid(tree: QueryTree) -> bool:
    """Whether the checker has nothing against it."""
    return not check_query(tree, SCHEMA)


def _pattern(draw: st.DrawFn, purse: _Purse, depth: int) -> Pattern:
    """A pattern with all the events that are left to spend."""
    if purse.events == 1:
        return _event(draw, purse)
    kinds = ["all", "all", "all", "sequence"] if depth == 0 else ["all", "sequence", "sequence", "or"]
    before = len(purse.variables)
    parts = [_pattern(draw, each, depth + 1) for each in _divided(draw, purse)]
    kind = draw(st.sampled_from(kinds))
    if kind == "all":
        found: Pattern = All(tuple(parts))
    elif kind == "or":
        found = Disjunction(tuple(parts))
    else:
        place = draw(st.integers(0, 3 * len(parts)))
        if place < len(parts):
            parts[place] = Optional(parts[place])
        found = Sequence(tuple(parts), (Link(),) * (len(parts) - 1))
    found = _filtered(draw, found, purse.variables[before:])
    if purse.loops and draw(st.integers(0, 4)) == 0:
        purse.loops -= 1
        times = draw(st.sampled_from([(1, None), (1, None), (2, None), (1, 2), (2, 2)]))
        found = Iteration(found, False, *times)
        found = _filtered(draw, found, purse.variables[before:])
    return found


def _divided(draw: st.DrawFn, purse: _Purse) -> list[_Purse]:
    """Two or three purses with its events; variables are common."""
    parts = draw(st.integers(2, min(3, purse.events)))
    sizes = [1] * parts
    for _ in range(purse.events - parts):
        sizes[draw(st.integers(0, parts - 1))] += 1
    return [
        _Purse(size, purse.loops if place == 0 else 0, purse.variables) for place, size in enumerate(sizes)
    ]


def _event(draw: st.DrawFn, purse: _Purse) -> Pattern:
    name = _VARIABLES[len(purse.variables)]
    purse.variables.append(name)
    event: Pattern = As(EventType(draw(st.sampled_from(TYPES))), name)
    if draw(st.integers(0, 5)) == 0:
        constant = Literal(draw(st.integers(0, 2)))
        event = Filter(event, EventFilter(name, Comparison("!=", Attribute("n"), constant)))
    if purse.loops and draw(st.integers(0, 4)) == 0:
        purse.loops -= 1
        event = Iteration(event, False, *draw(st.sampled_from([(1, None), (1, None), (1, 2)])))
    return event


def _filtered(draw: st.DrawFn, pattern: Pattern, inside: list[str]) -> Pattern:
    """The pattern with equalities between some variables of it, or all of it in one partition."""
    kind = draw(st.integers(0, 7))
    if kind == 0:
        keys: tuple[PartitionKey, ...] = (PartitionKey("k"),)
        if draw(st.booleans()):
            keys = tuple(PartitionKey(draw(st.sampled_from(["k", "n"])), name) for name in inside)
        return PartitionBy(pattern, keys)
    if kind < 5:
        equalities: list[Node] = []
        for _ in range(draw(st.integers(1, 2))):
            attribute = draw(st.sampled_from(["k", "k", "n", "x", "s"]))
            other = draw(st.sampled_from(["k", "n"])) if attribute in "kn" and kind == 1 else attribute
            names = draw(st.permutations(inside))
            for one, two in pairwise(names):
                if len(equalities) < 1 + kind // 2:
                    equalities.append(Comparison("=", Attribute(attribute, one), Attribute(other, two)))
        if equalities:
            condition = equalities[0] if len(equalities) == 1 else And(tuple(equalities))
            return Filter(pattern, condition)
    return pattern


_FEW = {
    "n": st.sampled_from([0, 1, 0, 1, 1, None]),
    "x": st.sampled_from([0.0, 1.0, 0.0, 1.0, None]),
    "s": st.sampled_from(["a", "b", "a", "b", None]),
    "k": st.sampled_from([0, 1, 0, 0, 1, None]),
}


@st.composite
def dense_streams(draw: st.DrawFn, most: int = 9) -> list[Event]:
    """Events of three types with few different values, so that many of them are equal."""
    events: list[Event] = []
    time = 0
    for _ in range(max(draw(st.tuples(*[st.integers(0, most)] * 3)))):
        time += draw(st.sampled_from([0, 1, 1, 2]))
        values = {name: draw(of) for name, of in _FEW.items()}
        events.append(Event(draw(st.sampled_from(TYPES)), {"time": time, **values}, time))
    return events
