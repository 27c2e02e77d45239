"""Statements with MATCH_RECOGNIZE as queries: their texts, what has no counterpart, and how they run."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import estero
from estero import QueryError

PRICES = pa.table(
    {
        "symbol": ["ACME"] * 7 + ["BETA"] * 4,
        "day": [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4],
        "price": [12, 9, 7, 8, 11, 10, 13, 5, 4, 4, 6],
    }
)


def statement(
    pattern: str,
    define: str,
    *,
    keys: str = "PARTITION BY symbol ORDER BY day",
    rows: str = "",
    more: str = "",
) -> str:
    return f"""SELECT * FROM prices MATCH_RECOGNIZE ({keys} MEASURES count(*) AS n {rows}
        PATTERN ({pattern}) {more} DEFINE {define})"""


def where(text: str) -> str:
    """The pattern of the query that a statement becomes, and what is behind it."""
    return str(estero.from_match_recognize(text)).partition(" WHERE ")[2]


@pytest.mark.parametrize(
    ("pattern", "define", "wanted"),
    [
        ("a b", "a AS price > 3", "(prices AS a FILTER a[price > 3]) : prices AS b"),
        ("a | b c", "a AS TRUE", "prices AS a OR prices AS b : prices AS c"),
        ("a+ b{2,3} c{4,}", "a AS TRUE", "prices AS a :+ : prices AS b :{2,3} : prices AS c :{4,}"),
        ("a* b c?", "a AS TRUE", "prices AS a :{0,} : prices AS b : prices? AS c"),
        ("(a b?)+? c", "a AS TRUE", "(prices AS a : prices? AS b) :+ : prices AS c"),
        ("{- a -} b", "a AS TRUE", "prices AS a : prices AS b"),
        ("a () b", "a AS TRUE", "prices AS a : prices AS b"),
        ("^ a b", "a AS TRUE", "START(prices AS a : prices AS b)"),
        ("PERMUTE(a, b)", "a AS TRUE", "prices AS a : prices AS b OR prices AS b : prices AS a"),
        (
            "a",
            "a AS price IN (1, -2) OR name LIKE 'x%'",
            "prices AS a FILTER a[price IN {1, -2} OR name LIKE 'x%']",
        ),
        ("a", "a AS NOT (price BETWEEN 1 AND 2)", "prices AS a FILTER a[NOT (price >= 1 AND price <= 2)]"),
        ("a", "a AS lower(name) = 'it''s'", "prices AS a FILTER a[lower(name) = 'it''s']"),
        ("a b", "b AS price < PREV(price)", "prices AS a : prices AS b FILTER b.price < a.price"),
        ("a b", "b AS price > a.price + 1", "prices AS a : prices AS b FILTER b.price > a.price + 1"),
        (
            "a b+",
            "b AS day - PREV(day) < 3",
            "prices AS a : (prices AS b :+ FILTER b.day - prev(b.day) < 3) FILTER first(b.day) - a.day < 3",
        ),
        (
            "a+ b c",
            "c AS price > LAST(a.price) OR price < FIRST(a.price)",
            "prices AS a :+ : prices AS b : prices AS c FILTER c.price > last(a.price) OR "  # noqa: ISC004
            "c.price < first(a.price)",
        ),
        (
            "a b? c",
            "b AS price > PREV(price)",
            "prices AS a : prices? AS b : prices AS c FILTER count(b) = 0 OR first(b.price) > a.price",
        ),
    ],
)
def test_patterns_and_conditions(pattern: str, define: str, wanted: str) -> None:
    assert where(statement(pattern, define)) == f"{wanted} PARTITION BY [symbol]"


def test_clauses_and_names() -> None:
    text = statement(
        'a "in"',
        "a AS TRUE",
        keys="PARTITION BY prices.symbol, venue ORDER BY at ASC NULLS LAST",
        more="WITHIN INTERVAL '90' MINUTE SUBSET u = (a, \"in\")",
    )
    query = estero.from_match_recognize(text)
    assert str(query) == (
        'SELECT a, "in", u FROM prices WHERE prices AS a AS u : prices AS "in" AS u '
        "PARTITION BY [symbol], [venue] WITHIN 90 MINUTES"
    )
    assert where(statement("a", "a AS TRUE", more="WITHIN 3")).endswith("WITHIN 3 [day]")
    assert where(statement("a", "a AS TRUE", more="WITHIN INTERVAL '1 hour 5 minutes'")).endswith(
        "WITHIN 1 HOURS 5 MINUTES"
    )


def test_the_matches_are_complex_events_of_the_query() -> None:
    text = """
        SELECT * FROM prices MATCH_RECOGNIZE (
            PARTITION BY symbol ORDER BY day
            MEASURES FIRST(day) AS since, LAST(day) AS until
            AFTER MATCH SKIP TO LAST up PATTERN (high down+ up+)
            DEFINE down AS price < PREV(price), up AS price > PREV(price)
        )"""
    found = estero.from_match_recognize(text).run(PRICES, time="day", order=["symbol"]).to_arrow().to_pylist()
    spans = {(row["symbol"], row["start_time"], row["end_time"]) for row in found}
    matches = estero.sql(text, prices=PRICES).to_arrow().to_pylist()
    assert matches
    assert {tuple(row.values()) for row in matches} <= spans


def test_durations_between_rows() -> None:
    noon = datetime(2024, 5, 1, 12)  # noqa: DTZ001 - the column has no zone
    clicks = pa.table({"at": [noon + timedelta(minutes=m) for m in (0, 10, 25, 90)], "n": [1, 2, 3, 4]})
    text = """
        SELECT * FROM clicks MATCH_RECOGNIZE (
            ORDER BY at MEASURES count(*) AS n PATTERN (a b+)
            DEFINE a AS at >= TIMESTAMP '2024-05-01 12:05:00', b AS at < PREV(at) + INTERVAL 30 MINUTES)"""
    answer = estero.from_match_recognize(text).run(clicks, time="at")
    assert [(found.start, found.end) for found in answer] == [(1, 2)]


@pytest.mark.parametrize(
    ("pattern", "define", "message", "marked"),
    [
        ("a*", "a AS TRUE", "PATTERN may match no row", "(a*)"),
        ("a $", "a AS TRUE", "$ in PATTERN", "(a $)"),
        ("a ^ b", "a AS TRUE", "^ in PATTERN", "(a ^ b)"),
        ("PERMUTE(a, b, c, d, e, f)", "a AS TRUE", "PERMUTE of 6 parts", "(PERMUTE(a, b, c, d, e, f))"),
        ("a b", "a AS price > PREV(price)", "PREV in the condition of a", "price > PREV(price)"),
        ("a (b | c)", "c AS price > PREV(price)", "PREV in the condition of c", "price > PREV(price)"),
        ("a b", "b AS price > PREV(price, 2)", "of b reads a row further back", "price > PREV(price, 2)"),
        ("a b", "a AS price > NEXT(price)", "of a reads NEXT", "price > NEXT(price)"),
        ("a b", "b AS count(*) > 2", "of b reads an aggregate of the match so far", "count(*) > 2"),
        ("a b", "b AS CLASSIFIER(a) = 'a'", "of b reads CLASSIFIER", "CLASSIFIER(a) = 'a'"),
        ("a b", "b AS MATCH_NUMBER() = 1", "of b reads MATCH_NUMBER", "MATCH_NUMBER() = 1"),
        ("a b", "b AS price > FIRST(price)", "of b reads the match so far by FIRST", "price > FIRST(price)"),
        ("a? b", "b AS price > a.price", "of b reads rows of a variable that is not", "price > a.price"),
        ("a b a", "b AS price > PREV(price)", "a stands more than once", "price > PREV(price)"),
        ("a b+", "b AS price > PREV(price) OR price = 1", "by OR or NOT", "price > PREV(price) OR price = 1"),
        ("a", "a AS sin(price) > 0", "of a has the function SIN", "sin(price) > 0"),
        ("a", "a AS odd(price)", "of a has the function ODD", "odd(price)"),
    ],
)
def test_what_has_no_counterpart_is_named(pattern: str, define: str, message: str, marked: str) -> None:
    with pytest.raises(QueryError) as caught:
        estero.from_match_recognize(statement(pattern, define))
    errors = {error.message: error for error in (caught.value, *caught.value.others)}
    named = [error for text, error in errors.items() if message in text]
    assert named, list(errors)
    assert "CEQL" in named[0].message or "written out" in named[0].message
    assert named[0].text[named[0].span.start : named[0].span.end] == marked


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keys": "PARTITION BY symbol || 'x' ORDER BY day"}, "PARTITION BY has an expression"),
        ({"keys": "ORDER BY day DESC"}, "ORDER BY … DESC has no counterpart"),
        ({"more": "WITHIN INTERVAL '1' MONTH"}, "WITHIN has INTERVAL '1' MONTH"),
        ({"more": "WITHIN 1 + 2"}, "WITHIN has 1 + 2"),
    ],
)
def test_clauses_that_have_no_counterpart(changed: dict[str, str], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        estero.from_match_recognize(statement("a", "a AS TRUE", **changed))
    assert message in caught.value.message
    assert "no counterpart in CEQL" in caught.value.message


def test_several_problems_are_told_together() -> None:
    with pytest.raises(QueryError) as caught:
        estero.from_match_recognize(
            statement("a* $", "a AS NEXT(day) > 1", keys="ORDER BY day DESC", rows="ALL ROWS PER MATCH")
        )
    assert len({error.message for error in (caught.value, *caught.value.others)}) == 4


def test_exclusions_are_refused_where_rows_are_shown() -> None:
    with pytest.raises(QueryError, match=r"the exclusion .* has no counterpart in CEQL"):
        estero.from_match_recognize(statement("a {- b -}", "a AS TRUE", rows="ALL ROWS PER MATCH"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", "one MATCH_RECOGNIZE, and the statement has none"),
        (
            f"{statement('a', 'a AS TRUE')} UNION ALL {statement('b', 'b AS TRUE')}",
            "one MATCH_RECOGNIZE, and the statement has 2",
        ),
        (
            statement("a", "a AS TRUE").replace("FROM prices", "FROM (SELECT * FROM prices)"),
            "a query reads the rows of a table",
        ),
        (statement("a b{3,2}", "a AS TRUE"), "the lower bound 3 is larger than the upper bound 2"),
    ],
)
def test_statements_that_are_no_query(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        estero.from_match_recognize(text)


def test_only_texts_are_taken() -> None:
    with pytest.raises(TypeError, match="from_match_recognize"):
        estero.from_match_recognize(3)  # type: ignore[arg-type]
