"""ORDER BY … LIMIT: the best complex events of a whole answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.testing import events

SALES = events("buy(v=1)@0s buy(v=5)@1s sell(v=2)@2s sell(v=9)@5s")
LAYOUT = {"type": "type", "time": "time"}


def positions(text: str, **values: object) -> list[tuple[int, ...]]:
    answer = estero.query(text).bind(values).run(SALES, type="type", time="time")
    return [tuple(place for label in found.positions.values() for place in label) for found in answer]


def test_the_best_come_first() -> None:
    assert positions("SELECT * WHERE buy ; sell ORDER BY sum(buy.v) DESC LIMIT 2") == [(1, 2), (1, 3)]
    assert positions("SELECT * WHERE buy ; sell ORDER BY duration LIMIT 2") == [(1, 2), (0, 2)]
    assert positions("SELECT * WHERE buy ; sell ORDER BY duration DESC LIMIT 1") == [(0, 3)]


def test_what_select_computes_has_a_name() -> None:
    text = "SELECT buy, sell, sum(sell.v) AS total WHERE buy ; sell ORDER BY total DESC LIMIT $n"
    assert positions(text, n=1) == [(1, 3)]
    assert positions(text, n=100) == [(1, 3), (0, 3), (1, 2), (0, 2)]


def test_a_type_may_be_called_order() -> None:
    table = events("order(v=1)@0s order(v=2)@1s")
    answer = estero.query("SELECT * WHERE order ORDER BY sum(order.v) DESC LIMIT 1").run(table, **LAYOUT)  # type: ignore[arg-type]
    assert [found.start for found in answer] == [1]


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(["sum(x.v)", "count(x)", "duration"]),
)
def test_they_are_the_first_of_all_in_that_order(values: list[int], most: int, least: bool, by: str) -> None:
    table = events(" ".join(f"a(v={value})@{second}s" for second, value in enumerate(values)))
    listing = estero.query("SELECT * WHERE a+ AS x").run(table, **LAYOUT)  # type: ignore[arg-type]
    worths: dict[str, Callable[[estero.ComplexEvent], object]] = {
        "sum(x.v)": lambda found: sum(event["v"] for event in found["x"]),
        "count(x)": lambda found: len(found["x"]),
        "duration": lambda found: found.end - found.start,
    }
    worth: Any = worths[by]
    wanted = sorted(listing, key=worth, reverse=not least)[:most]
    text = f"SELECT * WHERE a+ AS x ORDER BY {by}{'' if least else ' DESC'} LIMIT {most}"
    best = estero.query(text).run(table, **LAYOUT)  # type: ignore[arg-type]
    assert [worth(found) for found in best] == [worth(found) for found in wanted]
    assert len({str(found.positions) for found in best}) == len(wanted)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ORDER BY v LIMIT 2", "not ordered by v"),
        ("ORDER BY sum(x.v) LIMIT 2", "no event is marked x"),
        ("ORDER BY avg(buy.v) LIMIT 2", "not ordered by avg"),
        ("ORDER BY sum(buy.v)", "ORDER BY needs LIMIT"),
        ("ORDER BY count(buy) LIMIT 3 PER 1 HOUR", "to the whole answer"),
        ("LIMIT 3 ORDER BY count(buy)", "comes too late"),
        ("ORDER BY count(buy) DOWN LIMIT 3", "DOWN is not an order"),
    ],
)
def test_other_orders_are_errors_of_the_query(clause: str, message: str) -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query(f"SELECT * WHERE buy {clause}")
    told = [caught.value.message, *(error.message for error in caught.value.others)]
    assert any(message in one for one in told)


def test_what_is_not_shown_is_not_ordered_by() -> None:
    with pytest.raises(estero.QueryError, match="no label sell"):
        positions("SELECT buy WHERE buy ; sell ORDER BY sum(sell.v) LIMIT 1")


def test_streams_rules_and_partial_matches_have_no_best_ones() -> None:
    query = estero.query("SELECT * WHERE buy WITHIN 1 HOUR ORDER BY count(buy) LIMIT 1")
    with pytest.raises(estero.QueryError, match="ranks the answer to all events"):
        query.recognizer(SALES.schema, type="type", time="time")
    with pytest.raises(estero.QueryError, match="ranks the answer to all events") as caught:
        estero.rules({"best": query}).run(SALES, type="type", time="time")
    assert caught.value.rule == "rule best"
    with pytest.raises(ValueError, match="partials"):
        query.run(SALES, type="type", time="time", partials=True)


def test_it_is_explained_as_the_query_of_all() -> None:
    text = "SELECT * WHERE buy ; sell"
    explained = estero.query(f"{text} ORDER BY duration LIMIT 3").explain()
    assert str(explained) == str(estero.query(text).explain())
