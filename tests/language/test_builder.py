"""The builder says the same as text."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from estero.language.builder.conditions import Condition, Expression, attribute, closed, constant, var
from estero.language.builder.functions import aggregate, call, count, decreasing, holds, increasing, outside
from estero.language.builder.queries import PatternBuilder, QueryBuilder, absent, event, select, tree_of
from estero.language.syntax.parser import parse_condition, parse_pattern, parse_query
from estero.language.tree.durations import TimeUnit

a, b, c = event("a"), event("b"), event("c")
x, y = var("x"), var("y")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (event("R", stream="S").named("x"), "S>R AS x"),
        (a.then(b).then(c), "a ; b ; c"),
        (a.then(b, c), "a ; b ; c"),
        (a.then(b.then(c)), "a ; (b ; c)"),
        (a.followed_directly_by(b).then(c), "a : b ; c"),
        (a.then(b, without=c), "a ; NOT(c) ; b"),
        (a.followed_directly_by(b, without=[c, c.named("x")]), "a : NOT(c) : NOT(c AS x) : b"),
        (a.or_(b).or_(c), "a OR b OR c"),
        (a.and_(b, c), "a AND b AND c"),
        (a.all_with(b).all_with(c), "a ALL b ALL c"),
        (a.unless(b), "a UNLESS b"),
        (a.or_(b).grouped().or_(c), "(a OR b) OR c"),
        (a.then(b).grouped().followed_directly_by(c), "(a ; b) : c"),
        (a.repeated(), "a+"),
        (a.repeated(directly=True), "a :+"),
        (a.repeated(2, 3), "a{2,3}"),
        (a.then(b).repeated(2, 2), "(a ; b){2}"),
        (a.then(b.optional()), "a ; b?"),
        (a.renamed("a", "z"), "a [a -> z]"),
        (a.then(b).keep("a"), "a ; b KEEP [a]"),
        (a.then(b).partitioned_by("k", var("a").l), "a ; b PARTITION BY [k, a.l]"),
        (a.at_start(), "START(a)"),
        (a.then(b).strict(), "STRICT(a ; b)"),
        (a.named("x").where(x.v > 1), "a AS x FILTER x[v > 1]"),
        (a.named("x").where(x.v > 1, x.w.is_null()), "a AS x FILTER x[v > 1] AND x[w IS NULL]"),
    ],
)
def test_a_built_pattern_is_that_of_its_text(built: PatternBuilder, text: str) -> None:
    assert built.tree == parse_pattern(text)
    assert str(built) == text


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (x.name == "INTC", "x[name = 'INTC']"),
        (x.v != None, "x[v != NULL]"),  # noqa: E711  it builds a comparison
        (x.v > 5, "x[v > 5]"),
        (x["unit price"] >= 1.5, 'x["unit price" >= 1.5]'),
        (x.v + 1 - x.w * 2 <= -x.u / 3 % 4, "x[v + 1 - w * 2 <= -u / 3 % 4]"),
        (1 + x.v * 2 > 2 / x.v, "x[1 + v * 2 > 2 / v]"),
        (abs(x.v) < 3, "x[abs(v) < 3]"),
        (call("length", x.s) == 3, "x[length(s) = 3]"),
        (x.v.is_in(1, "a", range(3, 6)), "x[v IN {1, 'a', 3..5}]"),
        (x.v.between(1, x.w), "x[v BETWEEN 1 AND w]"),
        (x.s.like("a%"), "x[s LIKE 'a%']"),
        (x.s.matches("a.b"), "x[s ~ 'a.b']"),
        (x.s.is_not_null(), "x[s IS NOT NULL]"),
        (x.ts < datetime(2024, 1, 31, tzinfo=UTC), "x[ts < TIMESTAMP '2024-01-31T00:00:00Z']"),
        ((x.v > 1) & (y.v > 2) & (y.w > 3), "x[v > 1] AND y[v > 2] AND y[w > 3]"),
        ((x.v > 1) | ~(y.v > 2), "x[v > 1] OR NOT y[v > 2]"),
        ((x.v > 1) & x.ok, "x[v > 1] AND x[ok]"),
        (x[(attribute("v") > 1) | (attribute("w") > 2)], "x[v > 1 OR w > 2]"),
        (x.v > y.v, "x.v > y.v"),
        (aggregate("avg", x.v) > 5, "avg(x.v) > 5"),
        (aggregate("count", x) >= 3, "count(x) >= 3"),
        (increasing(x.v), "increasing(x.v)"),
        (decreasing(x.v) | ~increasing(y.v), "decreasing(x.v) OR NOT increasing(y.v)"),
        (holds("near", x, y.v, 0.5, "k"), "near(x, y.v, 0.5, 'k')"),
        (outside((x.v > 1) & ~(x.s.is_null() | (x.w == 2))), "x.v > 1 AND NOT (x.s IS NULL OR x.w = 2)"),
        (outside(x.ok), "x.ok"),
        (x.v.is_in(closed(1, 5), closed("a", "c")), "x[v IN {1..5, 'a'..'c'}]"),
        (constant(1) < constant(2), "1 < 2"),
        (x[(attribute("v") > 1).as_value() == attribute("ok")], "x[(v > 1) = ok]"),
        (x.v + 1 == (y.v > 1).as_value(), "x.v + 1 = y[v > 1]"),
        (x.ok & ~x.up | y.ok, "x[ok] AND NOT x[up] OR y[ok]"),
        ((x.ok & x.up).grouped() & x.v, "(x[ok] AND x[up]) AND x[v]"),
        ((x.ok | x.up).grouped() | x.v, "(x[ok] OR x[up]) OR x[v]"),
    ],
)
def test_a_built_condition_is_that_of_its_text(built: Condition, text: str) -> None:
    assert built.tree == parse_condition(text)
    assert str(built) == text


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (select(a), "SELECT * WHERE a"),
        (select(a).show(), "SELECT NONE WHERE a"),
        (select(a.then(b)).show("a", b=["v", "w"]), "SELECT a, b[v, w] WHERE a ; b"),
        (select(a.then(b)).show(("b", ["v"]), "a"), "SELECT b[v], a WHERE a ; b"),
        (select(a).within((2, "hours"), (3, TimeUnit.HOURS)), "SELECT * WHERE a WITHIN 2 HOURS 3 HOURS"),
        (select(a).strategy("max"), "SELECT MAX * WHERE a"),
        (select(a).from_streams("s", "t"), "SELECT * FROM s, t WHERE a"),
        (select(a).partition_by("k", ("l", "m")), "SELECT * WHERE a PARTITION BY [k], [l, m]"),
        (select(a).within(events=100), "SELECT * WHERE a WITHIN 100 EVENTS"),
        (select(a).within(hours=2, minutes=30), "SELECT * WHERE a WITHIN 2 HOURS 30 MINUTES"),
        (select(a).within(ticks=5, attribute="ts"), "SELECT * WHERE a WITHIN 5 [ts]"),
        (select(a).consume_by("any").limit(3), "SELECT * WHERE a CONSUME BY ANY LIMIT 3 PER END"),
        (select(a).limit(3, per="90 min"), "SELECT * WHERE a LIMIT 3 PER 90 MINUTES"),
        (select(a).limit(3, ticks=5, attribute="t"), "SELECT * WHERE a LIMIT 3 PER 5 [t]"),
        (select(a).longest(), "SELECT LONGEST * WHERE a"),
        (select(a).shortest(disjoint=True), "SELECT SHORTEST DISJOINT * WHERE a"),
        (select(a).shortest(disjoint=True).strategy("max"), "SELECT MAX * WHERE a"),
        (select(a.partitioned_by("k")), "SELECT * WHERE (a PARTITION BY [k])"),
    ],
)
def test_a_built_query_is_that_of_its_text(built: QueryBuilder, text: str) -> None:
    assert built.tree == parse_query(text)
    assert str(built) == text


def test_anything_that_was_built_has_a_query() -> None:
    expected = parse_query("SELECT * WHERE a")
    assert [tree_of(each) for each in (a, a.tree, select(a), select(a).tree)] == [expected] * 4


def test_a_value_of_events_is_not_true_or_false_in_python() -> None:
    with pytest.raises(TypeError, match="join conditions with &"):
        bool(x.v)
    with pytest.raises(TypeError, match="join conditions with &"):
        bool(1 < x.v < 5)


def test_what_cannot_be_said_is_refused_at_once() -> None:
    value: Expression = x.v
    with pytest.raises(ValueError, match="NaN has no literal"):
        value.between(0.0, math.nan)
    with pytest.raises(TypeError, match="is not a truth value, a number"):
        _ = value == [1]
    with pytest.raises(ValueError, match="is empty or skips numbers"):
        value.is_in(range(5, 1))
    with pytest.raises(ValueError, match="unknown function reverse"):
        call("reverse", value)
    with pytest.raises(ValueError, match="unknown aggregate mode"):
        aggregate("mode", value)
    with pytest.raises(TypeError, match="an aggregate takes a variable"):
        aggregate("avg", value + var("another").price)
    with pytest.raises(ValueError, match="only count takes distinct values"):
        aggregate("sum", value, distinct=True)
    with pytest.raises(ValueError, match="a set needs at least one member"):
        value.is_in()
    with pytest.raises(TypeError, match="a predicate over sets takes variables"):
        holds("near", value + 1)
    with pytest.raises(TypeError, match="cannot be a key"):
        a.partitioned_by(value + 1)


def test_a_window_is_one_of_three_kinds() -> None:
    query = select(a)
    for wrong in ({}, {"events": 5, "hours": 1}, {"ticks": 5}, {"attribute": "ts"}):
        with pytest.raises(ValueError, match="a window is events="):
            query.within(**wrong)
    with pytest.raises(ValueError, match="unknown unit moons; the units are nanoseconds"):
        query.within(moons=1)


@pytest.mark.parametrize("length", ["1h 30 min", timedelta(minutes=90), pd.Timedelta("90min")])
def test_a_duration_in_a_condition_may_be_a_text_or_a_timedelta(length: Any) -> None:
    x, y = var("x"), var("y")
    said = [
        (y.time - x.time <= length, "y.time - x.time <= 1 HOUR 30 MINUTES"),
        (y.time >= x.time + length, "y.time >= x.time + 1 HOUR 30 MINUTES"),
        ((y.time - x.time).between("1 s", length), "y.time - x.time BETWEEN 1 SECOND AND 1 HOUR 30 MINUTES"),
    ]
    assert [str(each) for each, _ in said] == [text for _, text in said]


def test_what_is_computed_is_compared_with_no_other_text() -> None:
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        _ = var("y").time - var("x").time < "soon"
    assert str(var("x").name == "90 min") == "x[name = '90 min']"


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        ("30 minutes", "30 MINUTES"),
        ("1h30m", "1 HOURS 30 MINUTES"),
        (" 2 weeks 500 ms ", "2 WEEKS 500 MILLISECONDS"),
        (timedelta(days=8, minutes=90), "8 DAYS 1 HOURS 30 MINUTES"),
        (pd.Timedelta("1min 5us 7ns"), "1 MINUTES 5 MICROSECONDS 7 NANOSECONDS"),
        (timedelta(0), "0 SECONDS"),
    ],
)
def test_a_window_may_be_a_text_or_a_timedelta(duration: str | timedelta, said: str) -> None:
    query = select(a).within(duration)
    assert str(query) == f"SELECT * WHERE a WITHIN {said}"
    assert parse_query(str(query)) == query.tree


def test_values_of_the_whole_are_attributes_without_a_variable() -> None:
    waiting = event("paid").then(absent("shipped").within("1 hour"))
    late = attribute("decided_time") - var("paid").ts > timedelta(minutes=30)
    query = select(waiting.where(late)).select(known=attribute("decided_time"), ended=attribute("end_time"))
    assert query.tree == parse_query(
        "SELECT decided_time AS known, end_time AS ended WHERE paid ; NOT(shipped) FOR 1 HOUR "
        "FILTER decided_time - paid.ts > 30 MINUTES"
    )


@pytest.mark.parametrize("duration", ["soon", "5", "minutes", 5, pd.NaT, ""])
def test_what_is_not_a_duration_is_refused(duration: object) -> None:
    with pytest.raises(ValueError, match="is not a duration: write hours=2"):
        select(a).within(duration)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a window cannot be negative"):
        select(a).within(timedelta(seconds=-1))


def test_empty_chains_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one more pattern"):
        a.then()
    with pytest.raises(ValueError, match="at least one more pattern"):
        a.or_()
    with pytest.raises(ValueError, match="a filter needs a condition"):
        a.where()
    with pytest.raises(ValueError, match="a list of at least one name"):
        select(a).show(a="name")


@pytest.mark.parametrize(
    "function", ["count", "sum", "avg", "stddev", "median", "min", "max", "first", "last", "list"]
)
def test_aggregates_are_methods_of_values(function: str) -> None:
    assert str(getattr(x.price, function)()) == f"{function}(x.price)"
    assert str(getattr(x.price * 2, function)()) == f"{function}(x.price * 2)"


def test_events_and_different_values_are_counted() -> None:
    assert str(count(x)) == "count(x)"
    assert str(count(x.user, distinct=True)) == str(x.user.count(distinct=True)) == "count(DISTINCT x.user)"


def test_columns_of_values_are_selected() -> None:
    query = select(a.named("x").repeated()).select("x", n=count(x), total=(x.price * x.volume).sum())
    assert str(query) == "SELECT x, count(x) AS n, sum(x.price * x.volume) AS total WHERE a AS x+"


def test_fields_and_elements_are_reached_by_dots_and_brackets() -> None:
    assert str(x.process.name == "sh") == "x[process.name = 'sh']"
    assert str(x.process["sum"] > y.args[2].value) == "x.process.sum > y.args[2].value"
    assert (
        str(select(a).partition_by(attribute("process").name))
        == "SELECT * WHERE a PARTITION BY [process.name]"
    )
    assert str(select(a).show(a=["pid", attribute("tags")[1]])) == "SELECT a[pid, tags[1]] WHERE a"


def test_what_is_no_field_or_element_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no element 0: the first one is x.tags\[1\]"):
        x.tags[0]
    with pytest.raises(TypeError, match="a field has a name and an element a number"):
        x.tags[1.5]  # type: ignore[index]
    with pytest.raises(TypeError, match="is not an attribute, so it has no field or element 'name'"):
        (x.price + 1).name  # noqa: B018
    with pytest.raises(TypeError, match="not a method; the methods are count, sum, avg"):
        x.price.mean()
    with pytest.raises(TypeError, match="speaks of one variable"):
        select(a).partition_by(x.process)
    with pytest.raises(TypeError, match="not iterable"):
        list(x.tags)  # type: ignore[call-overload]
