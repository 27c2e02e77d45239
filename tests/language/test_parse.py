"""Text to tree: precedence, flat chains, literals, names, and long texts."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from estero.errors import QueryError
from estero.language.syntax.parser import parse_condition, parse_pattern, parse_query
from estero.language.tree.durations import TimeUnit
from estero.language.tree.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    EventFilter,
    Literal,
    Negative,
    Not,
    SetPredicate,
    VariableReference,
)
from estero.language.tree.pattern import As, EventType, Filter, Link, PartitionBy, PartitionKey, Sequence
from estero.language.tree.query import Consume, KeyBracket, SelectItem, Strategy

A, B, C = EventType("a"), EventType("b"), EventType("c")


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a ; b+", "a ; (b+)"),
        ("a ; b AS x", "a ; (b AS x)"),
        ("a ALL b ; c", "a ALL (b ; c)"),
        ("a AND b ALL c", "a AND (b ALL c)"),
        ("a UNLESS b AND c", "a UNLESS (b AND c)"),
        ("a UNLESS b UNLESS c", "(a UNLESS b) UNLESS c"),
        ("a OR b UNLESS c", "a OR (b UNLESS c)"),
        ("a OR b FILTER a[x]", "(a OR b) FILTER a[x]"),
        ("a ; b FILTER a[x] OR b[y]", "(a ; b) FILTER (a[x] OR b[y])"),
        ("a FILTER a[x] KEEP [a] FILTER a[y]", "((a FILTER a[x]) KEEP [a]) FILTER a[y]"),
        ("a AS x+ {2}?", "(((a AS x)+){2})?"),
        ("s>a : b", "(s>a) : b"),
    ],
)
def test_operators_of_patterns_bind_as_documented(text: str, grouped: str) -> None:
    assert parse_pattern(text) == parse_pattern(grouped)
    assert str(parse_pattern(grouped)) == str(parse_pattern(text))


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("x OR y AND z", "x OR (y AND z)"),
        ("NOT x AND y", "(NOT x) AND y"),
        ("NOT x = y", "NOT (x = y)"),
        ("x = y + 1", "x = (y + 1)"),
        ("x + y * z", "x + (y * z)"),
        ("x - y - z", "(x - y) - z"),
        ("x / y % z", "(x / y) % z"),
        ("-x * y", "(-x) * y"),
        ("x BETWEEN 1 AND 2 AND y", "(x BETWEEN 1 AND 2) AND y"),
        ("x NOT IN {1}", "NOT (x IN {1})"),
        ("x IS NOT NULL", "NOT (x IS NULL)"),
        ("x NOT LIKE 'a' OR y", "(NOT x LIKE 'a') OR y"),
    ],
)
def test_operators_of_conditions_bind_as_documented(text: str, grouped: str) -> None:
    assert parse_condition(text) == parse_condition(grouped)
    assert str(parse_condition(grouped)) == text


def test_a_parenthesised_chain_stays_a_node_of_its_own() -> None:
    assert parse_pattern("a ; b : c") == Sequence((A, B, C), (Link(), Link(contiguous=True)))
    assert parse_pattern("a ; (b : c)") == Sequence(
        (A, Sequence((B, C), (Link(contiguous=True),))), (Link(),)
    )


def test_what_must_be_absent_belongs_to_the_link() -> None:
    found = parse_pattern("a ; NOT(b) ; NOT(c AS x) ; a : NOT(b) : c")
    links = (Link(absent=(B, As(C, "x"))), Link(contiguous=True, absent=(B,)))
    assert found == Sequence((A, A, C), links)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-9223372036854775808", -(2**63)),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        ("'--no comment'", "--no comment"),
        ("true", True),
        ("NULL", None),
        ("TIMESTAMP '2024-02-29'", datetime(2024, 2, 29, tzinfo=UTC)),
        ("timestamp '2024-02-29 12:30+02:00'", datetime(2024, 2, 29, 10, 30, tzinfo=UTC)),
        ("TIMESTAMP '2024-02-29T12:30:15.000001Z'", datetime(2024, 2, 29, 12, 30, 15, 1, tzinfo=UTC)),
    ],
)
def test_constants_are_read_exactly(text: str, value: object) -> None:
    literal = parse_condition(text)
    assert isinstance(literal, Literal)
    assert literal.value == value
    assert type(literal.value) is type(value)
    assert parse_condition(str(literal)) == literal


def test_a_minus_belongs_to_the_number_after_it_unless_parentheses_say_otherwise() -> None:
    assert parse_condition("-5") == Literal(-5)
    assert parse_condition("-(5)") == Negative(Literal(5))
    assert parse_condition("x - -5") == Arithmetic("-", Attribute("x"), Literal(-5))
    assert parse_condition("x --5\n- 5") == Arithmetic("-", Attribute("x"), Literal(5))


def test_constants_of_different_types_differ() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3
    assert Literal(1) != Literal(1.0)
    assert Literal(1) == parse_condition("1")


def test_names_are_quoted_where_they_need_it() -> None:
    text = 'SELECT "none", "select" FROM "a b" WHERE "a b">x AS "say ""hi""" ; größe AS `from`'
    tree = parse_query(text)
    assert tree.select == (SelectItem("none"), SelectItem("select"))
    assert str(tree) == ('SELECT "none", "select" FROM "a b" WHERE "a b">x AS "say ""hi""" ; größe AS "from"')


def test_words_with_a_meaning_in_one_place_only_are_names_elsewhere() -> None:
    text = "SELECT max, last[day, hour] WHERE start AS last ; strict AS max FILTER last[timestamp > events]"
    assert str(parse_query(text)) == text


def test_functions_are_told_apart_by_their_name() -> None:
    assert parse_condition("ABS(x)") == Call("abs", (Attribute("x"),))
    assert parse_condition("Count(x)") == Aggregate("count", "x")
    assert parse_condition("max(x.a)") == Aggregate("max", "x", Attribute("a"))
    assert parse_condition("INCREASING(x.a)") == SetPredicate("increasing", (Attribute("a", "x"),))
    assert parse_condition("near(x, y.a, 5)") == SetPredicate(
        "near", (VariableReference("x"), Attribute("a", "y"), Literal(5))
    )


def test_keywords_stand_in_any_case_and_comments_anywhere() -> None:
    tree = parse_query(
        "select next x from s -- the rest of the line\nwhere a as x /* not; this */ ; b "
        "partition by [k, l], [m] within 1 day consume by partition limit 2"
    )
    assert tree.strategy is Strategy.NEXT
    assert tree.partition_by == (KeyBracket(("k", "l")), KeyBracket(("m",)))
    assert tree.consume is Consume.PARTITION
    assert tree.window is not None
    assert tree.limit == 2


@pytest.mark.parametrize("unit", TimeUnit)
def test_every_unit_has_a_singular(unit: TimeUnit) -> None:
    one, many = (
        parse_query(f"SELECT * WHERE a WITHIN 1 {name}").window for name in (unit.name[:-1], unit.name)
    )
    assert one == many


def test_partition_by_after_the_pattern_belongs_to_the_query() -> None:
    tree = parse_query("SELECT * WHERE a ; b FILTER a[x] PARTITION BY [k]")
    assert tree.partition_by == (KeyBracket(("k",)),)
    assert isinstance(tree.pattern, Filter)


@pytest.mark.parametrize(
    "text",
    ["(a ; b PARTITION BY [k])", "(a ; b PARTITION BY [k]) FILTER a[x = 1]", "a ; b PARTITION BY [a.k, b.l]"],
)
def test_partition_by_in_parentheses_or_with_variables_belongs_to_the_pattern(text: str) -> None:
    tree = parse_query(f"SELECT * WHERE {text}")
    assert tree.partition_by == ()
    assert any(isinstance(node, PartitionBy) for node in tree.pattern.walk())
    assert parse_query(str(tree)) == tree


def test_a_pattern_of_its_own_has_its_partition_by() -> None:
    found = parse_pattern("a ; b PARTITION BY [k]")
    assert found == PartitionBy(Sequence((A, B), (Link(),)), (PartitionKey("k"),))


def test_clauses_know_their_places() -> None:
    text = "SELECT MAX a FROM s WHERE a PARTITION BY [k] WITHIN 5 EVENTS CONSUME BY ANY LIMIT 3"
    tree = parse_query(text)
    assert {name: text[span.start : span.end] for name, span in tree.places.items()} == {
        "STRATEGY": "MAX",
        "LIST": "a",
        "FROM": "FROM s",
        "WHERE": "a PARTITION BY [k]",
        "PARTITION BY": "PARTITION BY [k]",
        "WITHIN": "WITHIN 5 EVENTS",
        "CONSUME BY": "CONSUME BY ANY",
        "LIMIT": "LIMIT 3",
    }


def test_a_filter_may_stand_in_the_middle_in_parentheses() -> None:
    found = parse_pattern("(a FILTER a[x = 1]) ; b")
    condition = EventFilter("a", Comparison("=", Attribute("x"), Literal(1)))
    assert found == Sequence((Filter(A, condition), B), (Link(),))


@pytest.mark.parametrize(
    "text",
    [
        " ; ".join(f"a AS x{i}" for i in range(1000)),
        " OR ".join("a" for _ in range(1000)),
        "a FILTER a[" + " AND ".join(f"x != {i}" for i in range(1000)) + "]",
        "(" * 1000 + "a" + ")" * 1000,
        "a FILTER a[x IN {" + ", ".join(map(str, range(1000))) + "}]",
    ],
)
def test_long_chains_are_no_trouble(text: str) -> None:
    pattern = parse_pattern(text)
    assert parse_pattern(str(pattern)) == pattern
    assert hash(pattern) == hash(parse_pattern(text))


@pytest.mark.parametrize(
    "text", ["a FILTER a[" + " + ".join("x" for _ in range(200)) + " = 1]", "a" + "+" * 200]
)
def test_a_tree_too_deep_to_walk_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="nested more than 100 levels"):
        parse_pattern(text)


def test_nothing_of_the_parser_is_loaded_before_the_first_text() -> None:
    rooms = ("syntax.parser", "check.queries", "check.conjunctive", "builder.queries", "regex.java")
    modules = ", ".join(f"estero.language.{name}" for name in rooms)
    code = f"import sys, {modules}; print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_not_applies_to_what_follows() -> None:
    assert parse_condition("NOT NOT x") == Not(Not(Attribute("x")))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a* ; b", "(a+)? ; b"),
        ("a{0,3} ; b", "(a{1,3})? ; b"),
        ("a ; b{0,} ; c", "a ; (b+)? ; c"),
        ("a ; b:{0,2}", "a ; (b:{1,2})?"),
        ("a ; b* AS x", "a ; (b+ AS x)?"),
        ("a ; b? AS x ; c", "a ; (b AS x)? ; c"),
    ],
)
def test_what_may_be_missing_is_optional(text: str, meaning: str) -> None:
    assert parse_pattern(text) == parse_pattern(meaning)


def test_a_sum_of_too_many_terms_behind_select_is_refused_as_one_in_a_filter_is() -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(f"SELECT {' + '.join(['x.v'] * 200)} AS c WHERE A AS x")
    assert caught.value.message == "this is nested more than 100 levels deep"
