"""Random syntax trees of the whole language: all that the grammar can say, sensible or not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from estero.language.tree import distances as d
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree import query as q
from estero.language.tree.durations import Duration, TimeUnit
from estero.language.tree.functions import AGGREGATES, CASTS, PREVIOUS, SCALAR_FUNCTIONS, SET_PREDICATES
from estero.language.tree.paths import column_of, element_of, field_of, variable_in
from estero.language.tree.selection import bound_names
from estero.language.tree.words import KEYWORDS

names = st.one_of(
    st.sampled_from(
        ["a", "b", "SELL", "x1", "_", "größe", "none", "events", "timestamp", "start", "max", "NOT", "İN"]
    ),
    st.sampled_from(KEYWORDS),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4),
)
integers = st.integers(-(2**63), 2**63 - 1)
constants = st.builds(
    e.Literal,
    st.one_of(
        st.none(),
        st.booleans(),
        integers,
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.datetimes(timezones=st.just(UTC)).map(lambda instant: instant.replace(fold=0)),
        st.just(datetime(1, 1, 1, tzinfo=UTC)),
        st.integers(0, 2**70).map(Duration),
    ),
)


@st.composite
def _paths(draw: st.DrawFn, columns: st.SearchStrategy[str] = names) -> str:
    """One or two steps into a column."""
    path = field_of(draw(columns), draw(names))
    if draw(st.booleans()):
        return path
    return draw(st.sampled_from([element_of(path, 7), field_of(path, "b"), element_of(column_of(path), 1)]))


paths = _paths()
attributes = st.builds(e.Attribute, names, st.none() | names) | st.builds(e.Attribute, paths, names)
_taken = (*AGGREGATES, *SCALAR_FUNCTIONS, *SET_PREDICATES, PREVIOUS)
set_names = names.filter(lambda name: name.lower() not in _taken)
_of_one_event = st.builds(e.Attribute, names | paths)
_operands = st.one_of(
    _of_one_event,
    st.builds(e.Arithmetic, st.sampled_from(["+", "*"]), _of_one_event, constants | _of_one_event),
    st.builds(lambda one, other: e.Call("coalesce", (one, other)), constants, _of_one_event),
)
aggregates = st.one_of(
    st.builds(e.Aggregate, st.sampled_from(list(AGGREGATES)), names, _operands),
    st.builds(e.Aggregate, st.just("count"), names, _operands, st.just(True)),
    st.builds(e.Aggregate, st.just("count"), names),
    st.builds(e.Previous, st.builds(e.Attribute, names | paths, names)),
)
set_predicates = st.builds(
    e.SetPredicate,
    set_names | st.sampled_from(list(SET_PREDICATES)),
    st.lists(
        st.builds(e.VariableReference, names) | st.builds(e.Attribute, names, names) | constants, max_size=3
    ).map(tuple),
)


def _of_one_event_only(condition: e.Node) -> e.Node:
    """In X[…] there are no variables: what looks like one is an attribute with a field or an element."""

    def change(part: e.Node) -> e.Node | None:
        match part:
            case e.Attribute(name, str(variable)):
                return e.Attribute(field_of(variable, name))
            case e.EventFilter(name, e.Literal(int() as place)) if not isinstance(place, bool):
                return e.Attribute(element_of(name, abs(place) % 5 + 1))
            case e.EventFilter() | e.Aggregate() | e.SetPredicate() | e.Previous():
                return part
            case _:
                return None

    return e.substituted(condition, change)


def _larger_conditions(parts: st.SearchStrategy[e.Node]) -> st.SearchStrategy[e.Node]:
    several = st.lists(parts, min_size=2, max_size=3).map(tuple)
    members = st.lists(constants | st.builds(e.Range, constants, constants), min_size=1, max_size=3).map(
        tuple
    )
    whens = st.builds(e.When, parts, parts)
    tests = st.one_of(
        st.builds(e.In, parts, members),
        st.builds(e.Between, parts, parts, parts),
        st.builds(e.Like, parts, st.text("a%_\\'", max_size=4)),
        st.builds(e.Ilike, parts, st.text("aB%_\\'", max_size=4)),
        st.builds(e.Matches, parts, st.text("a.*'\\", max_size=4)),
        st.builds(e.IsNull, parts),
    )
    return st.one_of(
        tests,
        tests.map(e.Not),
        st.builds(e.Not, parts),
        st.builds(e.Negative, parts),
        st.builds(e.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), parts, parts),
        st.builds(e.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), parts, parts),
        st.builds(e.Call, st.sampled_from(list(SCALAR_FUNCTIONS)), st.lists(parts, max_size=2).map(tuple)),
        st.builds(e.Case, st.lists(whens, min_size=1, max_size=2).map(tuple), st.none() | parts),
        st.builds(e.Cast, parts, st.sampled_from(sorted(CASTS))),
        st.builds(e.And, several),
        st.builds(e.Or, several),
        st.builds(e.EventFilter, names, parts.map(_of_one_event_only)),
    )


conditions = st.recursive(
    constants | attributes | aggregates | set_predicates, _larger_conditions, max_leaves=8
)
"""Expressions, predicates and filters, mixed as the grammar allows."""

event_types = st.builds(p.EventType, names, st.none() | names)
absent = st.recursive(
    event_types,
    lambda inner: st.builds(p.As, inner, names) | st.builds(p.Filter, inner, conditions),
    max_leaves=2,
)
keys = st.lists(st.builds(p.PartitionKey, names | paths), min_size=1, max_size=3).map(tuple)


def _partitioned(pattern: p.Pattern, keys: tuple[p.PartitionKey, ...]) -> p.PartitionBy:
    """The first name of a key is a variable where the pattern has such a label."""
    labels = bound_names(pattern)

    def told_apart(key: p.PartitionKey) -> p.PartitionKey:
        found = variable_in(key.attribute)
        return key if found is None or found[0] not in labels else p.PartitionKey(found[1], found[0])

    return p.PartitionBy(pattern, tuple(map(told_apart, keys)))


_units = st.sampled_from(TimeUnit)
windows = st.one_of(
    st.builds(d.EventWindow, integers),
    st.builds(d.DurationWindow, st.lists(st.tuples(integers, _units), min_size=1, max_size=3).map(tuple)),
    st.builds(d.AttributeWindow, integers, names),
)
distances = st.lists(
    st.one_of(
        st.builds(d.Apart, st.sampled_from(["<=", "<", ">=", ">"]), windows),
        st.builds(d.ApartBetween, windows, windows),
    ),
    max_size=2,
).map(tuple)


_deadlines = windows.filter(lambda window: not isinstance(window, d.EventWindow))


def _sequences(parts: st.SearchStrategy[p.Pattern]) -> st.SearchStrategy[p.Pattern]:
    several = st.lists(absent, max_size=2).map(tuple)
    links = st.one_of(
        st.builds(p.Link, st.booleans(), several),
        st.builds(p.Link, st.just(value=False), several, distances),
        st.builds(p.Link, st.just(value=True), st.just(()), distances),
    )
    lacking = st.lists(st.builds(p.Absence, absent, st.builds(d.Apart, st.just(">"), _deadlines)), max_size=2)
    absences = lacking.map(tuple)
    further = st.lists(
        st.tuples(links | st.builds(p.Link, st.just(value=False), several, lacking=absences), parts),
        max_size=3,
    )

    def sequence(
        first: p.Pattern,
        rest: list[tuple[p.Link, p.Pattern]],
        before: tuple[p.Absence, ...],
        after: tuple[p.Absence, ...],
    ) -> p.Pattern:
        whole = (first, *(part for _, part in rest)), tuple(link for link, _ in rest)
        return p.Sequence(*whole, before, after) if rest or before or after else first

    return st.builds(sequence, parts, further, absences, absences)


def _named(pattern: p.Pattern, name: str) -> p.Pattern:
    """``φ? AS x`` is an optional ``φ AS x``."""
    if isinstance(pattern, p.Optional):
        return p.Optional(_named(pattern.pattern, name))
    return p.As(pattern, name)


def _larger_patterns(parts: st.SearchStrategy[p.Pattern]) -> st.SearchStrategy[p.Pattern]:
    several = st.lists(parts, min_size=2, max_size=3).map(tuple)
    bounds = st.integers(1, 4)
    steps = st.builds(p.Step, st.lists(absent, max_size=2).map(tuple), distances)
    return st.one_of(
        _sequences(parts),
        st.builds(_named, parts, names),
        st.builds(p.Rename, parts, names, names),
        st.builds(p.Filter, parts, conditions),
        st.builds(p.Disjunction, several),
        st.builds(p.Conjunction, several),
        st.builds(p.All, several),
        st.builds(p.Unless, parts, parts),
        st.builds(p.Iteration, parts, st.booleans(), bounds, st.none() | bounds),
        st.builds(p.Iteration, parts, st.just(value=False), bounds, st.none() | bounds, steps),
        st.builds(
            p.Iteration, parts, st.just(value=True), bounds, st.none(), st.builds(p.Step, distances=distances)
        ),
        st.builds(p.Optional, parts),
        st.builds(p.Start, parts),
        st.builds(p.Strict, parts),
        st.builds(p.Keep, parts, st.lists(names, min_size=1, max_size=2).map(tuple)),
        st.builds(_partitioned, parts, keys),
    )


patterns = st.recursive(event_types, _larger_patterns, max_leaves=8)
"""Patterns with every operator."""

_some_names = st.lists(names, min_size=1, max_size=3).map(tuple)
_some_shown = st.lists(names | paths, min_size=1, max_size=3).map(tuple)
_some_keys = st.lists(names | _paths(st.just("process")), min_size=1, max_size=3).map(tuple)
_selected = st.one_of(
    st.builds(q.SelectItem, names.filter(lambda name: name != "*"), st.none() | _some_shown),
    st.builds(q.SelectExpression, conditions.filter(lambda each: not str(each).startswith("(")), names),
    st.just(q.EveryLabel()),
)


def _with_more(tree: q.QueryTree) -> st.SearchStrategy[q.QueryTree]:
    """The same with DISJOINT and PER where they may stand."""
    disjoint = st.booleans() if tree.strategy.one_for_each_start else st.just(False)
    per = st.none() | windows if tree.limit is not None else st.none()
    return st.one_of(
        st.builds(replace, st.just(tree), disjoint=disjoint, per=per),
        st.builds(replace, st.just(tree), disjoint=disjoint, ranking=_rankings),
    )


_rankings = st.builds(
    q.Ranking,
    st.one_of(
        names.map(e.Attribute),
        st.builds(e.Aggregate, st.sampled_from(["sum", "count"]), names, names.map(e.Attribute)),
    ),
    st.booleans(),
)


queries = st.builds(
    q.QueryTree,
    pattern=patterns,
    select=st.none()
    | st.lists(_selected, max_size=3).map(tuple).filter(lambda items: items != (q.EveryLabel(),)),
    strategy=st.sampled_from(q.Strategy),
    streams=st.just(()) | _some_names,
    partition_by=st.lists(st.builds(q.KeyBracket, _some_keys), max_size=2).map(tuple),
    window=st.none() | windows,
    consume=st.sampled_from(q.Consume),
    limit=st.none() | integers,
).flatmap(_with_more)
"""Queries with every clause."""
