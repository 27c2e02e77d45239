"""Random streams and random queries for Hypothesis: small enough that the reference semantics answer at once.

Queries use the operators that are evaluated, are valid against `SCHEMA`, and print and parse to the same
tree. Integers stay small, so nothing overflows; floats can be NaN; all attributes but the time can be NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from estero.language.tree.distances import AttributeWindow, DurationWindow, EventWindow, Window
from estero.language.tree.durations import TimeUnit
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Case,
    Cast,
    Comparison,
    ComparisonOperator,
    EventFilter,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Negative,
    Node,
    Not,
    Or,
    Range,
    When,
)
from estero.language.tree.pattern import (
    As,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Link,
    Optional,
    Pattern,
)
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.language.tree.query import Consume, KeyBracket, QueryTree, SelectItem, Strategy
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import label_types
from estero.reference.queries import Event

Drawn = TypeVar("Drawn")

TYPES = ("A", "B", "C")
ATTRIBUTES = {"time": Kind.INT, "n": Kind.INT, "x": Kind.FLOAT, "s": Kind.STRING, "k": Kind.INT}
TIME_UNIT = TimeUnit.SECONDS
TICK = TIME_UNIT.value
"""The length of one tick of the integer time, in nanoseconds."""
SCHEMA = Schema(
    types=dict.fromkeys(TYPES, ATTRIBUTES),
    shared=ATTRIBUTES,
    closed=True,
    time="time",
    time_unit=TIME_UNIT,
)
TABLE = pa.schema(
    [
        ("type", pa.string()),
        ("time", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("k", pa.int64()),
    ]
)
"""The columns of a stream as a table: one table for all types, with `type` as the type column."""

AT_ENDS = tuple(each for each in Strategy if not each.one_for_each_start)
"""The strategies that choose among the complex events of one end, which serve every pattern."""

INTEGERS = st.integers(-3, 3)
FLOATS = st.sampled_from([0.0, 0.5, 1.0, -1.5, 3.0, -0.0, 1e300, math.inf, -math.inf, math.nan])
STRINGS = st.text(alphabet="abB%_é", max_size=3)


# ------------------------------------------------------------------------------------------ streams


def _or_null(values: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn | None]:
    return st.one_of(values, values, values, st.none())


_ROWS = st.tuples(
    st.sampled_from(TYPES),
    st.sampled_from([0, 1, 1, 2, 5]),
    _or_null(INTEGERS),
    _or_null(FLOATS),
    _or_null(STRINGS),
    st.sampled_from([0, 1, 0, 1, None]),
)


@st.composite
def streams(draw: st.DrawFn, min_size: int = 0, max_size: int = 12) -> list[Event]:
    """Events of three types in stream order, with integer times that never decrease and often tie."""
    size = max(draw(st.tuples(st.integers(min_size, max_size), st.integers(min_size, max_size))))
    events = []
    time = 0
    for name, step, n, x, s, k in draw(st.lists(_ROWS, min_size=size, max_size=size)):
        time += step
        events.append(Event(name, {"time": time, "n": n, "x": x, "s": s, "k": k}, time))
    return events


def to_table(events: Sequence[Event]) -> pa.Table:
    """The events as a table, in the same order; NaN stays NaN and NULL stays NULL."""
    rows = [{"type": event.type, **event.attributes} for event in events]
    return pa.Table.from_pylist(rows, schema=TABLE)


def from_table(table: pa.Table) -> list[Event]:
    """The events of a table that `to_table` made."""
    return [Event(row.pop("type"), row, row["time"]) for row in table.to_pylist()]


# --------------------------------------------------------------------------------------- predicates


@cache
def predicates(max_depth: int = 2) -> st.SearchStrategy[Node]:
    """Predicates over one event: everything that can stand in ``X[p]``, with AND, OR and NOT around it."""
    deeper = _simple_predicates()
    for _ in range(max_depth):
        parts = st.lists(deeper, min_size=2, max_size=3).map(tuple)
        deeper = st.one_of(_simple_predicates(), parts.map(And), parts.map(Or), deeper.map(Not))
    return deeper


def _case(operator: ComparisonOperator, left: Node, right: Node, value: Node) -> Node:
    """A number that depends on how two others compare."""
    return Case((When(Comparison(operator, left, right), value),), left)


@cache
def numbers() -> st.SearchStrategy[Node]:
    """Expressions over one event with a number as their value."""
    attributes = st.sampled_from(["n", "x", "k", "time"]).map(Attribute)
    constants = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.5, 1e300])).map(Literal)
    leaves = st.one_of(attributes, attributes, constants)
    functions = st.builds(
        Call, st.sampled_from(["abs", "floor", "ceil", "round", "sign", "sqrt"]), st.tuples(attributes)
    )
    choices = st.builds(
        Call, st.sampled_from(["greatest", "least", "nullif", "coalesce"]), st.tuples(leaves, leaves)
    )
    operators = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        leaves,
        leaves,
        st.builds(Arithmetic, operators, leaves, leaves),
        functions,
        choices,
        st.builds(_case, st.sampled_from(["<", "="]), leaves, leaves, leaves),
        st.builds(Cast, attributes, st.just("FLOAT")),
        attributes.map(Negative),
        st.builds(Call, st.just("length"), st.tuples(texts())),
    )


@cache
def texts() -> st.SearchStrategy[Node]:
    """Expressions over one event with a string as their value."""
    attribute = st.just(Attribute("s"))
    cased = st.builds(Call, st.sampled_from(["lower", "upper", "trim"]), st.tuples(attribute))
    cut = st.builds(Call, st.just("substring"), st.tuples(attribute, st.integers(0, 3).map(Literal)))
    return st.one_of(attribute, attribute, attribute, cased, cut)


@cache
def _simple_predicates() -> st.SearchStrategy[Node]:
    operators, text = st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), texts()
    return st.one_of(
        st.builds(
            Comparison,
            operators,
            st.sampled_from(["n", "x", "k"]).map(Attribute),
            st.integers(0, 2).map(Literal),
        ),
        st.builds(Comparison, operators, numbers(), numbers()),
        st.builds(Comparison, operators, text, STRINGS.map(Literal)),
        st.builds(In, numbers(), st.lists(_numeric_members(), min_size=1, max_size=3).map(tuple)),
        st.builds(In, text, st.lists(STRINGS.map(Literal), min_size=1, max_size=3).map(tuple)),
        st.builds(Between, numbers(), numbers(), numbers()),
        st.builds(Like, text, _like_patterns()),
        st.builds(Matches, text, st.sampled_from(REGEXES)),
        st.sampled_from(["n", "x", "s", "k"]).map(Attribute).map(IsNull),
    )


REGEXES = (
    "a",
    "^a",
    "b$",
    "a.b",
    "[ab]+",
    "^$",
    "^(a|b)*$",
    "(ab)+",
    "[^aB]",
    "a{2}",
    "é?b",
    "\\w",
    "^.{2,3}$",
)


def _like_patterns() -> st.SearchStrategy[str]:
    pieces = st.sampled_from(["a", "b", "B", "é", "%", "_", "\\%", "\\_", "\\\\"])
    return st.lists(pieces, max_size=4).map("".join)


@st.composite
def _numeric_members(draw: st.DrawFn) -> Literal | Range:
    low = draw(st.one_of(st.integers(-3, 3), st.sampled_from([-0.5, 0.5, 1.5])))
    if draw(st.booleans()):
        return Literal(low)
    return Range(Literal(low), Literal(low + draw(st.integers(0, 3))))


# ----------------------------------------------------------------------------------------- patterns


@dataclass
class _Purse:
    """What a pattern may still spend: operators, and unbounded iterations, as each multiplies answers."""

    operators: int
    stream: str | None = None
    loops: int = 2


@st.composite
def patterns(draw: st.DrawFn, max_operators: int = 4, stream: str | None = None) -> Pattern:
    """Patterns of at most so many operators (a sequence is one, whatever its length).

    Some types are said to be of `stream`, if there is one.
    """
    operators = max(draw(st.tuples(*[st.integers(0, max_operators)] * 2)))
    return _pattern(draw, _Purse(operators, stream))


def _pattern(draw: st.DrawFn, purse: _Purse) -> Pattern:
    if purse.operators <= 0:
        return _atom(draw, purse)
    purse.operators -= 1
    kinds = [_sequence, _sequence, _iteration, _named, _disjunction, _filter]
    return draw(st.sampled_from(kinds))(draw, purse)


def _atom(draw: st.DrawFn, purse: _Purse) -> Pattern:
    qualified = purse.stream is not None and draw(st.booleans())
    return EventType(draw(st.sampled_from(TYPES)), purse.stream if qualified else None)


def _sequence(draw: st.DrawFn, purse: _Purse) -> Pattern:
    size = draw(st.integers(2, 3))
    needed = draw(st.integers(0, size - 1))
    parts = []
    for place in range(size):
        part = _pattern(draw, purse) if draw(st.booleans()) else _atom(draw, purse)
        parts.append(Optional(part) if place != needed and draw(st.integers(0, 4)) == 0 else part)
    links = [Link(contiguous=draw(st.integers(0, 2)) == 0) for _ in range(size - 1)]
    return SequencePattern(tuple(parts), tuple(links))


def _iteration(draw: st.DrawFn, purse: _Purse) -> Pattern:
    contiguous = draw(st.booleans())
    minimum = draw(st.sampled_from([1, 1, 2, 3]))
    maximum: int | None = minimum + draw(st.integers(0, 2))
    if purse.loops > 0 and draw(st.integers(0, 3)) > 0:
        purse.loops -= 1
        minimum, maximum = max(1, minimum - 1), None
    return Iteration(_pattern(draw, purse), contiguous, minimum, maximum)


def _named(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return As(_pattern(draw, purse), draw(st.sampled_from(["u", "v", "w"])))


def _disjunction(draw: st.DrawFn, purse: _Purse) -> Pattern:
    return Disjunction(tuple(_pattern(draw, purse) for _ in range(draw(st.integers(2, 3)))))


def _filter(draw: st.DrawFn, purse: _Purse) -> Pattern:
    inner = _pattern(draw, purse)
    return Filter(inner, draw(filters(tuple(label_types(inner)))))


@cache
def filters(labels: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """Filters of one-event predicates on these labels, with AND, OR and NOT around them."""
    single = st.builds(EventFilter, st.sampled_from(labels), predicates(max_depth=1))
    parts = st.lists(st.one_of(single, single.map(Not)), min_size=2, max_size=3).map(tuple)
    return st.one_of(single, single, single.map(Not), parts.map(And), parts.map(Or), parts.map(Or).map(Not))


# ------------------------------------------------------------------------------------------ queries


@st.composite
def queries(draw: st.DrawFn, max_operators: int = 4) -> QueryTree:
    """Queries that `check_query` accepts against `SCHEMA`, with every clause but a strategy."""
    stream = draw(st.sampled_from([None, None, None, "S"]))
    pattern = draw(patterns(max_operators, stream))
    partition_by = draw(st.one_of(st.just(()), st.just(()), _key_brackets()))
    consume = [Consume.NONE, Consume.NONE, Consume.ANY, *([Consume.PARTITION] if partition_by else [])]
    return QueryTree(
        pattern,
        select=draw(_select(tuple(label_types(pattern)))),
        streams=() if stream is None else (stream,),
        partition_by=partition_by,
        window=draw(st.one_of(st.none(), st.none(), windows())),
        consume=draw(st.sampled_from(consume)),
        limit=draw(st.sampled_from([None] * 7 + [1, 3])),
    )


@st.composite
def queries_by_start(
    draw: st.DrawFn, *, windowed: bool = False, among: st.SearchStrategy[QueryTree] | None = None
) -> QueryTree:
    """Queries, `among` these if some are given, with LONGEST or SHORTEST; with a window if `windowed`."""
    strategy = draw(st.sampled_from([Strategy.LONGEST, Strategy.SHORTEST]))
    tree = replace(
        draw(queries() if among is None else among),
        strategy=strategy,
        disjoint=draw(st.booleans()),
        consume=Consume.NONE,
    )
    return replace(tree, window=draw(windows())) if windowed and tree.window is None else tree


@cache
def windows() -> st.SearchStrategy[Window]:
    """Windows of each kind, a few events or seconds long; those of no length are of one time."""
    return st.one_of(
        st.integers(1, 8).map(EventWindow),
        st.integers(0, 10).map(lambda ticks: AttributeWindow(ticks, "time")),
        st.integers(0, 10).map(lambda seconds: DurationWindow(((seconds, TimeUnit.SECONDS),))),
        st.integers(1, 5000).map(
            lambda amount: DurationWindow(((2, TimeUnit.SECONDS), (amount, TimeUnit.MILLISECONDS)))
        ),
    )


@cache
def intervals() -> st.SearchStrategy[Window]:
    """Intervals of LIMIT … PER: a few seconds, or ticks, long; those of parts of a second are of one time."""
    return st.one_of(
        st.integers(1, 8).map(lambda ticks: AttributeWindow(ticks, "time")),
        st.integers(1, 8).map(lambda seconds: DurationWindow(((seconds, TimeUnit.SECONDS),))),
        st.integers(1, 5000).map(lambda amount: DurationWindow(((amount, TimeUnit.MILLISECONDS),))),
    )


@cache
def _key_brackets() -> st.SearchStrategy[tuple[KeyBracket, ...]]:
    names = [("k",), ("s",), ("n",), ("x",)]
    return st.sampled_from(
        [
            (KeyBracket(("k",)),),
            (KeyBracket(("k",)),),
            *((KeyBracket(one),) for one in names),
            *(
                (KeyBracket(one), KeyBracket(other))
                for one in names[:3]
                for other in names[:3]
                if one != other
            ),
        ]
    )


@st.composite
def _select(draw: st.DrawFn, labels: tuple[str, ...]) -> tuple[SelectItem, ...] | None:
    shown = draw(st.one_of(st.none(), st.none(), st.lists(st.sampled_from(labels), unique=True)))
    if shown is None:
        return None
    some = st.lists(st.sampled_from(["n", "x", "s", "k"]), min_size=1, max_size=2, unique=True).map(tuple)
    return tuple(SelectItem(label, draw(st.one_of(st.none(), some))) for label in shown)
