"""Subqueries in MEASURES: what they read of the match, and what is theirs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import estero
from estero import QueryError

PRICES = pa.table({"i": [1, 2, 3, 4, 5], "price": [12, 9, 7, 8, 11]})
NAMES = pa.table({"k": [7, 4, 10], "name": ["x", "y", "z"], "s0": [7, 8, 9], "matched": [1, 2, 3]})


def measured(measures: str, rows: str = "") -> list[dict[str, Any]]:
    text = f"""
        SELECT * FROM prices MATCH_RECOGNIZE (
            ORDER BY i MEASURES {measures} {rows} PATTERN (strt down+ up+)
            DEFINE down AS price < PREV(price), up AS price > PREV(price))"""
    found: list[dict[str, Any]] = estero.sql(text, prices=PRICES, names=NAMES).to_arrow().to_pylist()
    return found


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("(SELECT max(k) FROM names)", 10),
        ("(SELECT name FROM names WHERE k = down.price)", "x"),
        ("(SELECT name FROM names WHERE k = LAST(down.price))", "x"),
        ("(SELECT name FROM names WHERE k = PREV(LAST(up.price)) - 1)", "x"),
        ("(SELECT count(*) FROM names WHERE k < FIRST(price))", 3),
        ("(SELECT count(*) FROM names WHERE k < avg(down.price))", 2),
        ("(SELECT max(k) FROM names WHERE k > FINAL LAST(down.price))", 10),
        ("(SELECT count(*) FROM names WHERE matched <= count(up.*))", 2),
        ("(SELECT name FROM names WHERE matched = MATCH_NUMBER() AND CLASSIFIER() = 'up')", "x"),
        ("EXISTS (SELECT 1 FROM names WHERE k = down.price)", True),
        ("down.price NOT IN (SELECT k FROM names)", False),
        ("(SELECT name FROM names WHERE s0 = down.price)", "x"),
        ("(SELECT sum(down.k) FROM names AS down)", 21),
        ("(WITH down AS (SELECT * FROM names) SELECT min(down.k) FROM down)", 4),
        ("(SELECT max(n.k + down.price) FROM names AS n)", 17),
        ("(SELECT max(q.k) FROM (SELECT k FROM names WHERE k < strt.price) AS q)", 10),
    ],
)
def test_what_subqueries_read(measure: str, wanted: object) -> None:
    assert measured(f"{measure} AS x") == [{"x": wanted}]


def test_an_earlier_measure_is_read() -> None:
    found = measured("LAST(down.price) AS bottom, (SELECT name FROM names WHERE k = bottom) AS name")
    assert found == [{"bottom": 7, "name": "x"}]


def test_each_row_of_a_match_has_its_own() -> None:
    found = measured("(SELECT count(*) FROM names WHERE k >= LAST(price)) AS x", "ALL ROWS PER MATCH")
    assert [row["x"] for row in found] == [0, 1, 2, 1, 0]


def test_columns_of_the_match_need_a_variable() -> None:
    with pytest.raises(QueryError, match="price") as caught:
        measured("(SELECT name FROM names WHERE k = price) AS x")
    assert caught.value.hint == (
        "in a subquery, columns of the match have a variable before them, as in LAST(A.x)"
    )
