"""Funnels: numbers, shares and waits by step, in all and by partition, whatever finds them."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.errors import QueryError
from estero.testing import events
from notebooks import shown_by

SHOP = events(
    "visit(user=ann)@0s visit(user=bob)@10s basket(user=ann)@60s visit(user=cy)@2m basket(user=bob)@3m "
    "pay(user=ann)@5m pay(user=bob)@2h"
)
FUNNEL = "SELECT * WHERE visit ; basket ; pay PARTITION BY [user] WITHIN 1 HOUR"


def steps(query: str, table: pa.Table = SHOP, **options: Any) -> list[dict[str, object]]:
    answer = estero.query(query).run(table, type="type", time="time")
    rows: list[dict[str, object]] = answer.funnel(**options).to_arrow().to_pylist()
    return rows


def test_a_funnel_has_a_row_for_each_step() -> None:
    assert steps(FUNNEL) == [
        {"step": 1, "part": "visit", "starts": 3, "share": 1.0, "median_wait": None},
        {"step": 2, "part": "basket", "starts": 2, "share": 2 / 3, "median_wait": timedelta(seconds=115)},
        {"step": 3, "part": "pay", "starts": 1, "share": 1 / 3, "median_wait": timedelta(minutes=4)},
    ]


def test_a_funnel_by_partition_has_the_keys_in_front() -> None:
    rows = steps(FUNNEL, by_partition=True)
    assert [(row["user"], row["step"], row["starts"]) for row in rows] == [
        *(("ann", 1, 1), ("ann", 2, 1), ("ann", 3, 1)),
        *(("bob", 1, 1), ("bob", 2, 1), ("bob", 3, 0)),
        *(("cy", 1, 1), ("cy", 2, 0), ("cy", 3, 0)),
    ]


@pytest.mark.parametrize("compared", ["", " FILTER A.v <= B.v + 0.5"])
@pytest.mark.parametrize("key", [(0.0, -0.0), (math.nan, np.copysign(math.nan, -1))])
def test_equal_keys_with_other_bits_are_one_partition(key: tuple[float, float], compared: str) -> None:
    one, other = key
    table = pa.table(
        {
            "type": ["A", "B", "A", "B", "C"],
            "k": pa.array(np.array([one, other, other, one, other])),
            "v": [1, 1, 2, 2, 3],
            "time": range(5),
        }
    )
    query = f"SELECT * WHERE A ; B ; C{compared} PARTITION BY [k] WITHIN 4 [time] CONSUME BY PARTITION"
    for by_partition in (False, True):
        assert [row["starts"] for row in steps(query, table, by_partition=by_partition)] == [2, 2, 2]
    found = estero.query("SELECT * WHERE A ; B PARTITION BY [k]").run(table, type="type")
    assert len(found.aggregate(by_partition=True, n="count(*)")) == 1


@pytest.mark.parametrize("compared", ["", " FILTER a.t < b.t"])
def test_a_key_of_no_type_is_in_no_partition(compared: str) -> None:
    table = pa.table({"type": ["A", "B"], "t": [1, 2], "k": pa.nulls(2)})
    query = f"SELECT * WHERE A AS a ; B AS b{compared} PARTITION BY [k] WITHIN 4 [t]"
    answer = estero.query(query).run(table, type="type", time="t")
    assert [row["starts"] for row in answer.funnel().to_arrow().to_pylist()] == [0, 0]
    assert answer.partials().count() == 0


def test_a_funnel_has_the_figures_of_a_query_in_sql() -> None:
    with duckdb.connect() as connection:
        connection.register("shop", SHOP)
        by_hand = connection.execute("""
            WITH baskets AS (
                SELECT v.user, v.time AS began, min(b.time) AS basket
                FROM shop v JOIN shop b USING (user)
                WHERE v.type = 'visit' AND b.type = 'basket'
                AND b.time BETWEEN v.time AND v.time + INTERVAL 1 HOUR
                GROUP BY ALL
            )
            SELECT count(*) FROM shop WHERE type = 'visit'
            UNION ALL SELECT count(*) FROM baskets
            UNION ALL SELECT count(*) FROM baskets WHERE EXISTS (
                FROM shop p WHERE p.type = 'pay' AND p.user = baskets.user
                AND p.time BETWEEN basket AND began + INTERVAL 1 HOUR
            )
        """).fetchall()
    assert [row["starts"] for row in steps(FUNNEL)] == [number for (number,) in by_hand]


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ("SELECT * WHERE visit ; basket ; pay FILTER visit.user = basket.user WITHIN 1 HOUR", [3, 2, 2]),
        ("SELECT * WHERE visit ; basket WITHIN 1 HOUR", [3, 3]),
        ("SELECT * WHERE visit ; basket WITHIN 1 HOUR CONSUME BY ANY", [3, 3]),
        ("SELECT * WHERE visit ;[<= 1 MINUTE] basket WITHIN 1 HOUR", [3, 3]),
        ("SELECT * WHERE visit ;[NOT pay] basket WITHIN 1 HOUR", [3, 3]),
        ("SELECT * WHERE (visit ; basket KEEP [visit]) ; pay WITHIN 1 HOUR", [3, 3]),
        ("SELECT * WHERE START(visit) : visit : basket WITHIN 1 HOUR", [1, 1, 1]),
        ("SELECT * WHERE visit : visit : basket WITHIN 1 HOUR", [3, 1, 1]),
    ],
)
def test_what_compares_is_asked_of_complex_events(query: str, starts: list[int]) -> None:
    assert [row["starts"] for row in steps(query)] == starts


@pytest.mark.parametrize(
    ("query", "starts", "chosen"),
    [
        ("SELECT LAST * WHERE visit ; basket WITHIN 1 HOUR", 3, 2),
        ("SELECT LONGEST * WHERE visit ; basket WITHIN 1 HOUR", 3, 3),
        ("SELECT STRICT * WHERE visit ; basket WITHIN 1 HOUR", 3, 2),
        ("SELECT SHORTEST DISJOINT * WHERE visit ; basket WITHIN 1 HOUR", 3, 2),
        ("SELECT * WHERE visit ; basket WITHIN 1 HOUR LIMIT 1 PER 10 MINUTES", 3, 1),
        ("SELECT * WHERE visit ; basket FILTER visit.user = basket.user WITHIN 1 HOUR LIMIT 1", 2, 2),
        ("SELECT NEXT * WHERE visit ; basket FILTER visit.time < basket.time WITHIN 1 HOUR", 3, 1),
    ],
)
def test_what_is_chosen_matters_only_where_it_is_asked(query: str, starts: int, chosen: int) -> None:
    assert [row["starts"] for row in steps(query)] == [3, starts]
    assert [row["starts"] for row in steps(query, chosen=True)] == [3, chosen]


def test_nothing_comes_nowhere() -> None:
    assert steps(FUNNEL, SHOP.slice(0, 0)) == [
        {"step": step, "part": part, "starts": 0, "share": None, "median_wait": None}
        for step, part in enumerate(("visit", "basket", "pay"), 1)
    ]


def test_a_stream_without_time_has_no_waits() -> None:
    answer = estero.query("SELECT * WHERE A ; B WITHIN 2 EVENTS").run(events("A B A A A B"), type="type")
    assert answer.funnel().to_arrow().to_pylist() == [
        {"step": 1, "part": "A", "starts": 4, "share": 1.0},
        {"step": 2, "part": "B", "starts": 3, "share": 0.75},
    ]


def test_ticks_are_waited_as_numbers() -> None:
    rows = steps("SELECT * WHERE A ; B WITHIN 10 [time]", events("A@0 B@5 A@10 B@20"))
    assert [row["median_wait"] for row in rows] == [None, 7.5]


def test_a_funnel_shows_itself() -> None:
    funnel = estero.query(FUNNEL).run(SHOP, type="type", time="time").funnel()
    assert repr(funnel).splitlines()[:2] == [
        "step  part    starts  share  median_wait",
        "1     visit   3       1",
    ]
    assert [row[1:3] for row in shown_by(funnel).rows()][:2] == [["visit", "3"], ["basket", "2"]]
    assert funnel.to_pandas().shape == funnel.to_polars().shape == (3, 5)
    assert funnel.plot().svg() == funnel.plot().svg()
    assert pa.table(funnel) == funnel.to_arrow()


def test_only_a_whole_answer_of_a_sequence_with_a_window_has_a_funnel() -> None:
    answer = estero.query(FUNNEL).run(SHOP, type="type", time="time")
    with pytest.raises(ValueError, match="counts all starts"):
        answer.limit(1).funnel()
    with pytest.raises(QueryError, match="this query has none"):
        steps("SELECT * WHERE visit ; basket")
    with pytest.raises(QueryError, match="only a sequence can be matched in part"):
        steps("SELECT * WHERE visit+ WITHIN 1 HOUR")
    pushed = estero.query(FUNNEL).recognizer(SHOP.schema, type="type", time="time").push(SHOP)
    with pytest.raises(ValueError, match=r"ask the answer of query\.run"):
        pushed.funnel()


def test_a_step_counts_only_if_its_distance_is_kept() -> None:
    query = "SELECT * WHERE visit ;[<= 100 SECONDS] basket ;[NOT visit] pay PARTITION BY [user] WITHIN 1 HOUR"
    assert [row["starts"] for row in steps(query)] == [3, 1, 1]


def test_waits_are_shown_alike_whatever_the_unit_of_time_is() -> None:
    in_nanoseconds = SHOP.set_column(
        SHOP.column_names.index("time"), "time", SHOP["time"].cast(pa.timestamp("ns"))
    )
    shown = str(estero.query(FUNNEL).run(in_nanoseconds, type="type", time="time").funnel())
    assert shown == str(estero.query(FUNNEL).run(SHOP, type="type", time="time").funnel())


def test_a_funnel_by_attributes_is_of_those_of_the_first_event() -> None:
    shop = events(
        "visit(user=ann, variant=A, step=1)@0s visit(user=bob, variant=B, step=1)@10s "
        "basket(user=ann, variant=B, step=2)@60s visit(user=cy, variant=A, step=1)@2m "
        "visit(user=dan, step=1)@3m"
    )
    query = "SELECT * WHERE visit ; basket PARTITION BY [user] WITHIN 1 HOUR"
    rows = steps(query, shop, by=["variant"])
    assert [(row["variant"], row["step"], row["starts"]) for row in rows] == [
        *(("A", 1, 2), ("A", 2, 1), ("B", 1, 1), ("B", 2, 0), (None, 1, 1), (None, 2, 0))
    ]
    compared = "SELECT * WHERE visit ; basket FILTER visit.user = basket.user AND visit.time < basket.time"
    assert [row["starts"] for row in steps(f"{compared} WITHIN 1 HOUR", shop, by=["variant"])] == [
        *(2, 1, 1, 0, 1, 0)
    ]
    (first, *_) = steps(query, shop, by_partition=True, by=["step", "variant"])
    assert [*first][:3] == ["user", "step_", "variant"]
    assert [*first.values()][:5] == ["ann", 1, "A", 1, "visit"]
    answer = estero.query(query).run(shop, type="type", time="time")
    with pytest.raises(ValueError, match="the first step has an attribute varant: did you mean variant"):
        answer.funnel(by=["varant"])
    with pytest.raises(TypeError, match=r'by is a list of attributes: write by=\["variant"\]'):
        answer.funnel(by="variant")


def test_a_funnel_may_be_by_fields_of_structs() -> None:
    rows = [
        {"type": "visit", "user": "ann", "page": {"variant": "A", "place": {"shelf": 1}}},
        {"type": "visit", "user": "bob", "page": {"variant": "B", "place": None}},
        {"type": "basket", "user": "ann", "page": {"variant": "B", "place": {"shelf": 2}}},
    ]
    shop = pa.Table.from_pylist([{**row, "time": place} for place, row in enumerate(rows)])
    answer = estero.query("SELECT * WHERE visit ; basket PARTITION BY [user] WITHIN 9 [time]").run(
        shop, type="type", time="time"
    )
    by = ["page.variant", "page.place.shelf"]
    found = answer.funnel(by=by).to_arrow().select([*by, "step", "starts"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        *(("A", 1, 1, 1), ("A", 1, 2, 1), ("B", None, 1, 1), ("B", None, 2, 0))
    ]
    for wrong in ("page.varian", "user.name", "page.variant.x"):
        with pytest.raises(ValueError, match=f"the first step has an attribute {wrong}: "):
            answer.funnel(by=[wrong])
