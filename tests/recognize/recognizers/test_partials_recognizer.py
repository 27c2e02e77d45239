"""Partial matches of events that are pushed: when they are given, and with what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError, EsteroError, QueryError
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.levels import partials_plan
from estero.recognize.recognizers.partials_recognizer import plan_of_one_stream
from estero.testing import events

SHOP = events(
    "visit(user=ann)@0s visit(user=bob)@10s basket(user=ann)@60s visit(user=cy)@2m basket(user=bob)@3m "
    "pay(user=ann)@5m other(user=x)@59m other(user=x)@61m other(user=x)@63m"
)
BOUGHT = estero.query("SELECT * WHERE visit ; basket ; pay PARTITION BY [user] WITHIN 1 HOUR")
LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}


def said(answer: estero.Answer) -> list[tuple[str, int | None, bool]]:
    return [(each.partition["user"], each.steps, each.complete) for each in answer]


def test_they_come_when_their_windows_have_passed() -> None:
    recognizer = BOUGHT.recognizer(SHOP.schema, **LAYOUT, partials=True)
    pushed = [said(recognizer.push(SHOP.slice(row, 1))) for row in range(SHOP.num_rows)]
    assert pushed == [
        *([] for _ in range(5)),
        [("ann", 3, True)],
        [],
        [("bob", 2, False)],
        [("cy", 1, False)],
    ]
    assert not recognizer.close()


def test_the_columns_of_both_kinds_of_rows() -> None:
    recognizer = BOUGHT.recognizer(SHOP.schema, **LAYOUT, partials=True)
    table = recognizer.push(SHOP).to_arrow()
    assert table.schema == recognizer.schema
    assert table.column_names[-3:] == ["steps", "expired_time", "complete"]
    by_user = {row["user"]: row for row in table.to_pylist()}
    assert by_user["ann"]["expired_time"] is None
    assert by_user["bob"]["expired_time"] == by_user["bob"]["start_time"] + timedelta(hours=1)
    assert by_user["bob"]["pay"] == []
    assert [each["position"] for each in by_user["bob"]["basket"]] == [4]


def test_values_that_select_computes_are_there_if_the_steps_that_they_ask_for_came() -> None:
    asked = "count(basket) AS n, pay.time AS paid, 1 + 1 AS two, duration AS lasted, visit"
    query = estero.query(str(BOUGHT).replace("*", asked, 1))
    table = query.recognizer(SHOP.schema, **LAYOUT, partials=True).push(SHOP).to_arrow().select(MEASURED)
    rows = {row.pop("user"): tuple(row.values()) for row in table.to_pylist()}
    none, paid = timedelta(), SHOP["time"][5].as_py()
    assert rows == {
        "ann": (1, paid, 2, timedelta(minutes=5)),
        "bob": (1, None, 2, timedelta(seconds=170)),
        "cy": (None, None, 2, none),
    }
    of_batch = query.run(SHOP, **LAYOUT).partials().to_arrow().select(MEASURED).to_pylist()
    assert {row.pop("user"): tuple(row.values()) for row in of_batch} == {
        user: row for user, row in rows.items() if user != "ann"
    }


MEASURED = ["user", "n", "paid", "two", "lasted"]


@pytest.mark.filterwarnings("ignore:the key suppressed is shown as suppressed_")
def test_a_key_that_is_called_like_a_column_of_complex_events_stays_the_key() -> None:
    stream = events("a(suppressed=7)@0s b(suppressed=8)@2h")
    query = estero.query("SELECT * WHERE a ; b PARTITION BY [suppressed] WITHIN 1 HOUR LIMIT 1 PER 1 DAY")
    found = query.recognizer(stream.schema, **LAYOUT, partials=True).push(stream).to_arrow()
    assert (found["suppressed_"].to_pylist(), found["suppressed"].to_pylist()) == ([7], [None])
    assert query.run(stream, **LAYOUT).partials().to_arrow()["suppressed"].to_pylist() == [7]


def test_what_may_still_be_completed_by_an_absence_waits() -> None:
    query = estero.query("SELECT * WHERE a ; b ; NOT(c) FOR 1 HOUR WITHIN 1 MINUTE")
    stream = events("a()@0s b()@30s x()@2m x()@61m")
    recognizer = query.recognizer(stream.schema, **LAYOUT, partials=True)
    found = [
        [(each.steps, each.complete) for each in recognizer.push(stream.slice(row, 1))] for row in range(4)
    ]
    assert found == [[], [], [], [(2, True)]]
    broken = events("a()@0s b()@30s c()@40s x()@2m x()@62m")
    recognizer = query.recognizer(broken.schema, **LAYOUT, partials=True)
    found = [
        [(each.steps, each.complete) for each in recognizer.push(broken.slice(row, 1))] for row in range(5)
    ]
    assert found == [[], [], [], [], [(1, False)]]


def test_windows_of_events() -> None:
    query = estero.query("SELECT * WHERE a ; b WITHIN 2 EVENTS")
    stream = pa.table({"type": list("axxxab")})
    recognizer = query.recognizer(stream.schema, type="type", partials=True)
    found = [
        [(each.start, each.complete) for each in recognizer.push(stream.slice(row, 1))] for row in range(6)
    ]
    assert found == [[], [], [], [(0, False)], [], [(4, True)]]
    assert "expired_time" not in recognizer.schema.names


def test_a_snapshot_is_restored_with_partials_and_not_without() -> None:
    recognizer = BOUGHT.recognizer(SHOP.schema, **LAYOUT, partials=True)
    recognizer.push(SHOP.slice(0, 6))
    state = recognizer.snapshot()
    other = estero.restore(BOUGHT, state, partials=True)
    assert (other.position, other.late, other.held_back) == (6, 0, 0)
    assert said(other.push(SHOP.slice(6))) == [("cy", 1, False), ("bob", 2, False)]
    with pytest.raises(DataError, match="of a recognizer of partial matches, and a recognizer was expected"):
        estero.restore(BOUGHT, state)
    plain = BOUGHT.recognizer(SHOP.schema, **LAYOUT).snapshot()
    with pytest.raises(DataError, match="a recognizer of partial matches was expected"):
        estero.restore(BOUGHT, plain, partials=True)


def test_late_events_are_counted_and_a_closed_one_takes_none() -> None:
    recognizer = BOUGHT.recognizer(SHOP.schema, **LAYOUT, partials=True)
    recognizer.push(SHOP.slice(3))
    recognizer.push(SHOP.slice(0, 1))
    assert recognizer.late == recognizer.late_events().num_rows == 1
    assert recognizer.flush().count() == 0
    assert "PartialsRecognizer(6 events, 1 late" in repr(recognizer)
    recognizer.close()
    with pytest.raises(EsteroError, match="closed"):
        recognizer.push(SHOP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * WHERE visit ; pay", "depends on its window"),
        ("SELECT * WHERE visit OR pay WITHIN 1 HOUR", "only a sequence"),
    ],
)
def test_what_has_no_partial_matches(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        estero.query(text).recognizer(SHOP.schema, **LAYOUT, partials=True)


def test_until_says_which_windows_have_passed() -> None:
    short = SHOP.slice(0, 6)
    assert BOUGHT.run(short, **LAYOUT).partials().count() == 0
    known = BOUGHT.run(short, **LAYOUT, until="end")
    assert sorted(each.partition["user"] for each in known.partials()) == ["bob", "cy"]
    assert [each.partition["user"] for each in known] == ["ann"]
    an_hour_later = SHOP["time"][1].as_py() + timedelta(hours=1, seconds=1)
    (found,) = BOUGHT.run(short, **LAYOUT, until=an_hour_later).partials()
    assert found.partition["user"] == "bob"
    recognizer = BOUGHT.recognizer(SHOP.schema, **LAYOUT, partials=True)
    recognizer.push(short)
    assert sorted(each.partition["user"] for each in recognizer.close(until="end")) == ["bob", "cy"]
    with pytest.raises(DataError, match="until is before the last event"):
        BOUGHT.run(short, **LAYOUT, until=SHOP["time"][0].as_py()).partials().count()
    with pytest.raises(QueryError, match="does not ask what comes after an end"):
        estero.query("SELECT * WHERE visit ; pay WITHIN 9 EVENTS").run(short, **LAYOUT, until="end")


def test_labels_that_are_called_so_keep_their_names() -> None:
    query = estero.query(
        "SELECT * WHERE visit AS steps ; pay AS complete AS expired_time PARTITION BY [user] WITHIN 1 HOUR"
    )
    answer = query.run(SHOP, **LAYOUT)
    table = answer.partials().to_arrow()
    assert table.column_names[-2:] == ["steps_", "expired_time_"]
    assert [(each.steps, each.positions["steps"]) for each in answer.partials()] == [(1, (1,)), (1, (3,))]
    found = query.recognizer(SHOP.schema, **LAYOUT, partials=True).push(SHOP)
    assert found.to_arrow().column_names[-3:] == ["steps_", "expired_time_", "complete_"]
    assert [(each.steps, each.complete) for each in found] == [(1, False), (1, False), (2, True)]


@pytest.mark.parametrize(
    "filters",
    [
        "a.x = b.x AND b.x = c.x",  # one key
        "a.x = b.x AND b.y = c.y",  # none that all share
        "b.y = c.y",  # one that the first steps do not have
        "a.x = b.x AND a.y = b.y AND b.y = c.y AND c.y = d.y",  # other keys at each step
        "a.x = b.x AND a.y < c.y",
    ],
)
def test_steps_whose_equalities_give_other_keys_read_one_stream(filters: str) -> None:
    pattern = "a ; b ; c ; d" if "d.y" in filters else "a ; b ; c"
    query = estero.query(f"SELECT * WHERE {pattern} FILTER {filters} WITHIN 30 SECONDS")
    matching = "a(x=1, y=1)@1s b(x=1, y=1)@2s b(x=1, y=7)@3s c(x=1, y=7)@4s c(x=1, y=1)@5s d(x=3, y=1)@6s"
    others = "a(x=2, y=2)@7s b(x=2, y=8)@8s b(x=2, y=2)@9s c(x=3, y=5)@10s c(x=3, y=1)@11s a(x=3, y=3)@30s"
    stream = events(f"{matching} {others} other(x=0, y=0)@90s")
    expected = query.run(stream, **LAYOUT, partials=True).to_arrow().to_pylist()
    assert {row["complete"] for row in expected} == {True, False}
    for size in (1, 3, stream.num_rows):
        recognizer = query.recognizer(stream.schema, **LAYOUT, partials=True)
        answers = [recognizer.push(stream.slice(row, size)) for row in range(0, stream.num_rows, size)]
        rows = [row for answer in answers for row in answer.to_arrow().to_pylist()]
        rows += recognizer.close().to_arrow().to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_plans_with_several_keys_have_those_that_are_written() -> None:
    filters = "a.x = b.x AND a.y = b.y AND b.y = c.y AND c.y = d.y"
    query = estero.query(f"SELECT * WHERE a ; b ; c ; d FILTER {filters} WITHIN 30 SECONDS")
    layout = open_source(events("a(x=1, y=1)@0s"), EventLayout.of("type", "time")).layout
    apart = {part.classification.keys for part in partials_plan(query.tree, layout).plans} - {()}
    assert len(apart) > 1
    assert {part.classification.keys for part in plan_of_one_stream(query.tree, layout).plans} == {()}


def test_an_event_without_a_key_is_seen_by_steps_that_have_none() -> None:
    query = estero.query("SELECT * WHERE a ; b ; c FILTER a.k = b.k AND b.k = c.k WITHIN 30 SECONDS")
    stream = pa.table({"type": ["a", "a", "b", "x"], "time": [0, 1, 2, 40], "k": [None, 1, 1, 1]})
    how: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
    recognizer = query.recognizer(stream.schema, **how, partials=True)
    rows = [(each.start, each.steps) for each in recognizer.push(stream)]
    assert sorted(rows) == [(0, 1), (1, 2)]
