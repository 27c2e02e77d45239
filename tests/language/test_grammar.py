"""Each production of the grammar: a text that it reads, and a near one that nothing reads."""

from __future__ import annotations

import pytest
from lark import Token, Tree

from estero.errors import QueryError
from estero.language.syntax.parser import parse_condition, parse_pattern, parse_query, parser
from estero.language.syntax.queries import PRODUCTIONS

QUERIES = {
    "query": ("SELECT * WHERE a", "SELECT * WHERE a b"),
    "strategy_and_list": ("SELECT LONGEST DISJOINT * WHERE a", "SELECT MAX DISJOINT * WHERE a"),
    "select_list": ("SELECT a, b WHERE a ; b", "SELECT a b c WHERE a ; b"),
    "select_item": ("SELECT a[x, y] WHERE a", "SELECT a[] WHERE a"),
    "select_expression": ("SELECT count(a) AS n, a.x * 2 AS twice WHERE a", "SELECT count(a) AS WHERE a"),
    "every_label": ("SELECT *, count(a) AS n WHERE a", "SELECT * AS n WHERE a"),
    "from_clause": ("SELECT * FROM s, t WHERE a", "SELECT * FROM WHERE a"),
    "where": ("SELECT * WHERE a FILTER a[x = 1]", "SELECT * WHERE FILTER a[x = 1]"),
    "whole_number": ("SELECT * WHERE a LIMIT 5", "SELECT * WHERE a LIMIT 5.0"),
    "within_clause": ("SELECT * WHERE a WITHIN 1 EVENTS", "SELECT * WHERE a WITHIN"),
    "span_window": ("SELECT * WHERE a WITHIN 2 HOURS 30 MINUTES", "SELECT * WHERE a WITHIN 2 HOURS 30"),
    "open_window": ("SELECT * WHERE a WITHIN $length", "SELECT * WHERE a WITHIN $length 5"),
    "attribute_window": ("SELECT * WHERE a WITHIN 5 [ts]", "SELECT * WHERE a WITHIN [ts]"),
    "order_clause": (
        "SELECT * WHERE a ORDER BY count(a) DESC LIMIT 3",
        "SELECT * WHERE a ORDER BY count(a) DOWN LIMIT 3",
    ),
    "consume_clause": ("SELECT * WHERE a CONSUME BY ANY", "SELECT * WHERE a CONSUME BY MOST"),
    "limit_clause": ("SELECT * WHERE a LIMIT 1", "SELECT * WHERE a LIMIT one"),
    "per": ("SELECT * WHERE a LIMIT 1 PER 1 HOUR", "SELECT * WHERE a LIMIT 1 PER HOUR"),
    "partition_tail": ("SELECT * WHERE a PARTITION BY [k], [l]", "SELECT * WHERE a PARTITION BY (k)"),
    "bracket": ("SELECT * WHERE a PARTITION BY [k, l]", "SELECT * WHERE a PARTITION BY []"),
    "lone_key": ("SELECT * WHERE a PARTITION BY ip, user", "SELECT * WHERE a PARTITION BY a.ip, b.ip"),
    "key": ("SELECT * WHERE a PARTITION BY [k]", "SELECT * WHERE a PARTITION BY [1]"),
    "field_of_key": ("SELECT * WHERE (a PARTITION BY [a.k.l])", "SELECT * WHERE a PARTITION BY [k.]"),
    "element_of_key": ("SELECT * WHERE a PARTITION BY [k[1]]", "SELECT * WHERE a PARTITION BY [k[l]]"),
}
PATTERNS = {
    "tailed": ("a ; b FILTER a[x = 1] KEEP [a]", "a FILTER a[x = 1] ; b"),
    "filter_tail": ("a FILTER a[x = 1]", "a FILTER"),
    "keep_tail": ("a KEEP [a, b]", "a KEEP a"),
    "disjunction": ("a OR b OR c", "a OR OR b"),
    "unless": ("a UNLESS b", "UNLESS b"),
    "conjunction": ("a AND b", "a AND"),
    "all": ("a ALL b ALL c", "ALL a"),
    "absent": ("a ; NOT(b AS y FILTER y[x = 1]) ; c", "a ; NOT(b ; c) ; d"),
    "link": ("a ;[<= 5 MINUTES] b", "a [<= 5 MINUTES]; b"),
    "step": ("a ;[<= 5 MINUTES, NOT c] b", "a ;[] b"),
    "stepped": ("a+[<= 5 MINUTES]", "a[<= 5 MINUTES]"),
    "apart": ("a ;[> 2 EVENTS] b", "a ;[= 2 EVENTS] b"),
    "apart_between": ("a ;[1 SECOND .. 5 MINUTES] b", "a ;[1 SECOND, 5 MINUTES] b"),
    "nothing": ("a ;[NOT c] b", "a ;[NOT c OR d] b"),
    "sequence": ("a ; b : c", "a ; : b"),
    "plus": ("a+", "+a"),
    "contiguous_plus": ("a :+", "a : + b"),
    "iteration": ("a{2}", "a{}"),
    "contiguous_iteration": ("a :{2,3}", "a :{2,3"),
    "exactly": ("a{3}", "a{x}"),
    "at_least": ("a{3,}", "a{,3}"),
    "star": ("a* ; b", "a ; * b"),
    "from_to": ("a{3,4}", "a{3;4}"),
    "optional": ("a ; b?", "a ; ?"),
    "as": ("(a ; b) AS x", "a AS (x)"),
    "rename": ("a [a -> b]", "a [a - b]"),
    "lacking": ("NOT(c) FOR 1 HOUR ; a ; NOT(b AS x) FOR 5 [ts]", "a ; NOT(b) FORM 1 HOUR"),
    "event_type": ("a", "1"),
    "modified": ("START(a ; STRICT(b))", "BEGIN(a)"),
    "group": ("(a)", "(a"),
}
CONDITIONS = {
    "or": ("x OR y OR z", "x OR"),
    "and": ("x AND y", "AND x"),
    "not": ("NOT x = 1", "x NOT"),
    "comparison": ("x <> 1", "x = = 1"),
    "in": ("x IN {1, -5..9, 'a'}", "x IN {y}"),
    "not_in": ("x NOT IN {1}", "x IN NOT {1}"),
    "in_list": ("x IN $names", "x IN $names, 5"),
    "not_in_list": ("x NOT IN $names", "x IN NOT $names"),
    "range": ("x IN {1..2}", "x IN {1..2..3}"),
    "negative_constant": ("x IN {-1.5, TIMESTAMP '2024-01-01', NULL}", "x IN {-y}"),
    "between": ("x BETWEEN 1 AND 2 + 3", "x BETWEEN 1"),
    "not_between": ("x NOT BETWEEN 1 AND 2", "x BETWEEN NOT 1 AND 2"),
    "like": ("x LIKE 'a%'", "x LIKE y"),
    "ilike": ("x ILIKE 'a%'", "x ILIKE y"),
    "not_ilike": ("x NOT ILIKE 'a%'", "x ILIKE NOT 'a%'"),
    "not_like": ("x NOT LIKE 'a%'", "x LIKE NOT 'a%'"),
    "matches": ("x ~ 'a.b'", "x ~ y"),
    "is_null": ("x IS NULL", "x IS 1"),
    "not_is_null": ("x IS NOT NULL", "x NOT IS NULL"),
    "arithmetic": ("x + 1 * 2 % 3", "x + * 2"),
    "negative": ("-x", "x-"),
    "typed_literal": ("ts < TIMESTAMP '2024-01-01T12:00:00Z'", "ts < TIMESTAMP '2024-13-01'"),
    "attribute": ('"two words" = 1', '"" = 1'),
    "duration": ("y.ts - x.ts < 1 HOUR 30 MINUTES", "y.ts - x.ts < 1 HOUR 30"),
    "call": ("coalesce(x, 1) = 1", "abs(x"),
    "distinct": ("count(DISTINCT x.a) > 1", "count(DISTINCT) > DISTINCT 1"),
    "cast": ("CAST(x AS INTEGER) = 1", "CAST(x AS) = 1"),
    "case": ("CASE WHEN x THEN 1 ELSE 2 END = 1", "CASE x WHEN 1 THEN 2 END = 1"),
    "when": ("CASE WHEN x > 1 THEN y WHEN z THEN end END = 1", "CASE WHEN x = 1 END = 1"),
    "event_filter": ("x[a > 1]", "x[]"),
    "field": ("x.a.b = 1", "x.a.1 = 1"),
    "element": ("x.a[1] = 1", "x.a[0] = 1"),
    "group": ("(x OR y) AND z", "()"),
}
CASES = [
    (production, reader, accepted, rejected)
    for table, reader in ((QUERIES, "query"), (PATTERNS, "pattern"), (CONDITIONS, "condition"))
    for production, (accepted, rejected) in table.items()
]
CASES += [("event_type", "pattern", "s>a", "s>t>a"), ("attribute", "condition", "x.a = y.b", "x.a. = 1")]
READERS = {"query": parse_query, "pattern": parse_pattern, "condition": parse_condition}


@pytest.mark.parametrize(("production", "reader", "accepted", "rejected"), CASES)
def test_a_production_reads_what_it_should_and_no_more(
    production: str, reader: str, accepted: str, rejected: str
) -> None:
    tree = parser().parse(accepted, start=reader)
    assert production in _used(tree)
    READERS[reader](accepted)
    with pytest.raises(QueryError) as caught:
        READERS[reader](rejected)
    assert caught.value.text == rejected


def test_every_production_that_builds_something_has_its_examples() -> None:
    built = {str(rule.alias or rule.origin.name) for rule in parser().rules}
    assert {production for production, *_ in CASES} == set(PRODUCTIONS) & built


def _used(tree: Tree[Token]) -> set[str]:
    return {str(each.data) for each in tree.iter_subtrees()}
