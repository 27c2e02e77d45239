"""Random queries of the whole language: every operator, filter and strategy, valid against `SCHEMA`.

What multiplies answers is rationed: unbounded iterations, and ALL. Streams of eight events are answered by
the reference in a moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree.expressions import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    ComparisonOperator,
    EventFilter,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Previous,
    SetPredicate,
    with_variable,
)
from estero.language.tree.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    PartitionBy,
    PartitionKey,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
)
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.selection import label_types
from strategies.patterns import AT_ENDS, SCHEMA, STRINGS, TYPES, predicates, queries

_COMPARE = ["=", "!=", "<", "<=", ">", ">="]
_NUMBERS = ["n", "n", "x", "k", "time"]


# ---------------------------------------------------------------------------------------- conditions


@cache
def correlations(labels: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """Conditions that relate attributes of one or more of the variables, by value and by arithmetic."""
    number = st.builds(Attribute, st.sampled_from(_NUMBERS), st.sampled_from(labels))
    text = st.builds(Attribute, st.just("s"), st.sampled_from(labels))
    constant = st.integers(-2, 3).map(Literal)
    operators = st.sampled_from(_COMPARE)
    computed = st.builds(
        Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), number, st.one_of(number, constant)
    )
    return st.one_of(
        st.builds(Comparison, operators, number, number),
        st.builds(Comparison, operators, number, number),
        st.builds(Comparison, operators, computed, st.one_of(number, constant)),
        st.builds(Comparison, operators, text, st.one_of(text, STRINGS.map(Literal))),
        st.builds(Between, number, number, st.one_of(number, constant)),
        st.builds(IsNull, number),
        st.builds(_on_variable, predicates(max_depth=1), st.sampled_from(labels)),
    )


def _on_variable(predicate: Node, label: str) -> Node:
    return with_variable(predicate, label)


@cache
def aggregates(labels: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """Conditions on one value of all events of a variable, and the built-in predicates over sets."""
    label = st.sampled_from(labels)
    operators = st.sampled_from(_COMPARE)
    small = st.integers(-1, 3).map(Literal)
    counts = st.one_of(
        st.builds(Aggregate, st.just("count"), label),
        st.builds(
            Aggregate, st.just("count"), label, st.sampled_from(["n", "s", "x"]).map(Attribute), st.booleans()
        ),
    )
    functions = st.sampled_from(["sum", "avg", "stddev", "median", "min", "max", "first", "last"])
    one = st.sampled_from(["n", "n", "x", "time"]).map(Attribute)
    operators_of_one = st.sampled_from(["+", "-", "*", "/", "%"])
    operands = st.one_of(one, one, st.builds(Arithmetic, operators_of_one, one, one))
    values = st.builds(Aggregate, functions, label, operands)
    texts = st.builds(
        Aggregate, st.sampled_from(["min", "max", "first", "last"]), label, st.just(Attribute("s"))
    )
    lists = st.builds(Aggregate, st.just("list"), label, one)
    attribute = st.builds(Attribute, st.sampled_from(["n", "x"]), label)
    return st.one_of(
        st.builds(Comparison, operators, counts, small),
        st.builds(Comparison, operators, values, small),
        st.builds(IsNull, lists),
        st.builds(Comparison, operators, values, values),
        st.builds(Comparison, operators, attribute, values),
        st.builds(Comparison, operators, texts, STRINGS.map(Literal)),
        st.builds(
            lambda name, attribute: SetPredicate(name, (attribute,)),
            st.sampled_from(["increasing", "increasing", "decreasing"]),
            st.builds(Attribute, st.sampled_from(["n", "x", "s", "time"]), label),
        ),
        neighbours(labels),
    )


@cache
def neighbours(labels: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """Conditions that compare an event with the one before it of the same variable, and some with others."""
    operators, label = st.sampled_from(_COMPARE), st.sampled_from(labels)
    number = st.builds(Attribute, st.sampled_from(_NUMBERS), label)
    constant = st.integers(-2, 3).map(Literal)

    def of_one(name: str, of: str, operator: ComparisonOperator, other: str) -> Node:
        return Comparison(operator, Attribute(name, of), Previous(Attribute(other, of)))

    def apart(operator: ComparisonOperator, value: Attribute, least: Node) -> Node:
        return Comparison(operator, Arithmetic("-", value, Previous(value)), least)

    def between(operator: ComparisonOperator, value: Attribute, other: Node) -> Node:
        return Comparison(
            operator, Arithmetic("+", other, Previous(value)), Arithmetic("*", value, Literal(2))
        )

    return st.one_of(
        st.builds(of_one, st.sampled_from(_NUMBERS), label, operators, st.sampled_from(_NUMBERS)),
        st.builds(of_one, st.just("s"), label, operators, st.just("s")),
        st.builds(apart, operators, number, constant),
        st.builds(between, operators, number, st.one_of(number, constant)),
        st.builds(Comparison, operators, st.builds(Previous, number), st.one_of(number, constant)),
    )


@cache
def conditions(labels: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """Filters of every kind on these labels, with AND, OR and NOT around them."""
    unary = st.builds(EventFilter, st.sampled_from(labels), predicates(max_depth=1))
    single = st.one_of(unary, correlations(labels), correlations(labels), aggregates(labels))
    parts = st.lists(st.one_of(single, single, single.map(Not)), min_size=2, max_size=3).map(tuple)
    return st.one_of(single, single, single, single.map(Not), parts.map(And), parts.map(And), parts.map(Or))


# ------------------------------------------------------------------------------------------ patterns


@dataclass
class _Purse:
    """What a pattern may still spend; `loops` are unbounded iterations."""

    operators: int
    loops: int = 2


@st.composite
def full_patterns(draw: st.DrawFn, max_operators: int = 4) -> Pattern:
    """Patterns of at most so many operators of every kind."""
    operators = max(draw(st.tuples(*[st.integers(1, max_operators)] * 2)))
    return _pattern(draw, _Purse(operators))


def _pattern(draw: st.DrawFn, purse: _Purse) -> Pattern:
    if purse.operators <= 0:
        return EventType(draw(st.sampled_from(TYPES)))
    purse.operators -= 1
    kind: Callable[[st.DrawFn, _Purse], Pattern] = draw(st.sampled_from(_KINDS))
    return kind(draw, purse)


def _sequence(draw: st.DrawFn, purse: _Purse) -> Pattern:
    parts = [_pattern(draw, purse) for _ in range(draw(st.sampled_from([2, 2, 3])))]
    labels = tuple(dict.fromkeys(label for part in parts for label in label_types(part)))
    links = []
    for _ in parts[1:]:
        how_many = draw(st.sampled_from([0, 0, 0, 1, 1, 2]))
        absent = tuple(_absent(draw, labels) for _ in range(how_many))
        links.append(Link(draw(st.sampled_from([False, False, True])), absent))
    free = [
        not any(link.absent for link in links[max(0, place - 1) : place + 1]) for place in range(len(parts))
    ]
    needed = draw(st.integers(0, len(parts) - 1))
    for place, part in enumerate(parts):
        if free[place] and place != needed and draw(st.integers(0, 4)) == 0:
            parts[place] = Optional(part)
    return Sequence(tuple(parts), tuple(links))


def _absent(draw: st.DrawFn, around: tuple[str, ...]) -> Pattern:
    """What NOT takes: an event type, perhaps with a filter, perhaps on the parts around it."""
    event = EventType(draw(st.sampled_from(TYPES)))
    match draw(st.integers(0, 3)):
        case 0:
            return event
        case 1:
            return Filter(event, EventFilter(event.name, draw(predicates(max_depth=1))))
        case _:
            attribute = st.builds(Attribute, st.sampled_from(["n", "k", "x"]), st.just("z"))
            other = st.builds(Attribute, st.sampled_from(["n", "k", "x"]), st.sampled_from(around))
            related = st.builds(Comparison, st.sampled_from(_COMPARE), attribute, other)
            return Filter(As(event, "z"), draw(related))


def _iteration(draw: st.DrawFn, purse: _Purse) -> Pattern:
    contiguous = draw(st.booleans())
    minimum = draw(st.sampled_from([1, 1, 2, 3]))
    maximum: int | None = minimum + draw(st.integers(0, 2))
    if purse.loops > 0 and draw(st.integers(0, 3)) > 0:
        purse.loops -= 1
        minimum, maximum = max(1, minimum - 1), None
    return Iteration(_pattern(draw, purse), contiguous, minimum, maximum)


def _rebinding(draw: st.DrawFn, purse: _Purse) -> Pattern:
    """``X AS o ; (Y AS r FILTER … r … o …)+``: a filter inside an iteration on what is outside of it."""
    purse.loops -= 1
    inner = As(_pattern(draw, purse), "r")
    condition = draw(correlations(("r", "o")))
    rounds = Iteration(Filter(inner, condition), draw(st.booleans()))
    outer = As(EventType(draw(st.sampled_from(TYPES))), "o")
    parts = (outer, rounds) if draw(st.booleans()) else (rounds, outer)
    return Sequence(parts, (Link(draw(st.booleans())),))


def _named(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return As(_pattern(draw, purse), draw(st.sampled_from(["u", "v", "w"])))


def _disjunction(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return Disjunction(tuple(_pattern(draw, purse) for _ in range(draw(st.integers(2, 3)))))


def _conjunction(draw: st.DrawFn, purse: _Purse) -> Pattern:
    """Often with a part in common, as two random patterns seldom have the same complex events."""
    first = _pattern(draw, purse)
    second = _pattern(draw, purse)
    return Conjunction((Disjunction((first, second)), first) if draw(st.booleans()) else (first, second))


def _all(draw: st.DrawFn, purse: _Purse) -> Pattern:
    purse.loops = min(purse.loops, 1)
    parts = tuple(_pattern(draw, purse) for _ in range(2))
    purse.loops = 0
    return All(parts)


def _unless(draw: st.DrawFn, purse: _Purse) -> Pattern:
    """Of what is forbidden, filters speak of one event at a time; of a single event, of those around, too."""
    inner = _pattern(draw, purse)
    event = EventType(draw(st.sampled_from(TYPES)))
    match draw(st.integers(0, 2)):
        case 0:
            return Unless(inner, Filter(event, EventFilter(event.name, draw(predicates(max_depth=1)))))
        case 1:
            return Unless(inner, _absent(draw, tuple(label_types(inner))))
        case _:
            other = EventType(draw(st.sampled_from(TYPES)))
            filtered = Filter(As(other, "y"), EventFilter("y", draw(predicates(max_depth=1))))
            link = Link(contiguous=draw(st.booleans()))
            return Unless(inner, Sequence((event, filtered), (link,)))


def _start(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return Start(_pattern(draw, purse))


def _strict(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return Strict(_pattern(draw, purse))


def _keep(draw: st.DrawFn, purse: _Purse) -> Pattern:
    inner = _pattern(draw, purse)
    labels = st.lists(st.sampled_from(tuple(label_types(inner))), min_size=1, max_size=3, unique=True)
    return Keep(inner, tuple(draw(labels)))


def _rename(draw: st.DrawFn, purse: _Purse) -> Pattern:
    inner = _pattern(draw, purse)
    old = draw(st.sampled_from(tuple(label_types(inner))))
    return Rename(inner, old, draw(st.sampled_from(["u", "v", "w", "A"])))


def _partition(draw: st.DrawFn, purse: _Purse) -> Pattern:
    inner = _pattern(draw, purse)
    attribute = st.sampled_from(["k", "k", "n", "x", "s"])
    if draw(st.booleans()):
        names = draw(st.lists(attribute, min_size=1, max_size=2, unique=True))
        return PartitionBy(inner, tuple(PartitionKey(name) for name in names))
    name = st.sampled_from(["k", "k", "n", "x"])
    return PartitionBy(inner, tuple(PartitionKey(draw(name), label) for label in label_types(inner)))


def _filter(draw: st.DrawFn, purse: _Purse) -> Pattern:
    inner = _pattern(draw, purse)
    return Filter(inner, draw(conditions(tuple(label_types(inner)))))


_KINDS = [
    *[_sequence] * 4,
    *[_iteration] * 2,
    *[_named] * 2,
    *[_filter] * 3,
    *(_rebinding, _disjunction, _conjunction, _all, _unless),
    *(_start, _strict, _keep, _rename, _partition, _partition),
]


# ------------------------------------------------------------------------------------------- queries


@st.composite
def full_queries(draw: st.DrawFn, max_operators: int = 4) -> QueryTree:
    """Queries that `check_query` accepts against `SCHEMA`, with every operator, clause and strategy."""
    clauses = draw(queries(max_operators=0))
    pattern = draw(full_patterns(max_operators).filter(is_valid))
    strategy = draw(st.sampled_from([Strategy.ALL, Strategy.ALL, Strategy.ALL, *AT_ENDS]))
    shown = draw(st.sampled_from([None, None, ()]))
    return replace(clauses, pattern=pattern, streams=(), select=shown, strategy=strategy)


def is_valid(pattern: Pattern) -> bool:
    """Whether a query may have this pattern: some random ones use a variable where nothing binds it."""
    return not check_query(QueryTree(pattern), SCHEMA)
