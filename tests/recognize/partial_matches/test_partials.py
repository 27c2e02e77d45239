"""Partial matches: of each start that was not completed in time, what NEXT would choose of its level."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import estero
from estero.errors import QueryError
from estero.testing import events

SHOP = events(
    "visit(user=ann)@0s visit(user=bob)@10s basket(user=ann)@60s visit(user=cy)@2m basket(user=bob)@3m "
    "basket(user=bob)@4m pay(user=ann)@5m pay(user=bob)@2h"
)
BOUGHT = "SELECT * WHERE visit ; basket ; pay PARTITION BY [user] WITHIN 1 HOUR"


def test_what_was_not_bought() -> None:
    answer = estero.query(BOUGHT).run(SHOP, type="type", time="time").partials()
    rows = [(each.partition["user"], each.steps, each.positions, each.expired_time) for each in answer]
    assert [(*row[:3], row[3].replace(tzinfo=UTC)) for row in rows] == [
        ("cy", 1, {"visit": (3,), "basket": (), "pay": ()}, datetime(1970, 1, 1, 1, 2, tzinfo=UTC)),
        ("bob", 2, {"visit": (1,), "basket": (4,), "pay": ()}, datetime(1970, 1, 1, 1, 0, 10, tzinfo=UTC)),
    ]
    assert answer.count() == 2
    assert answer[0] == next(iter(answer))
    assert [each.steps for each in answer[1:]] == [2]
    rows_of_events = answer.rows().to_arrow()
    assert rows_of_events.column_names == ["match", "label", "position", "user", "type", "time"]
    assert rows_of_events.num_rows == 3


def test_windows_that_are_open_are_not_told() -> None:
    early = SHOP.slice(0, 7)
    assert estero.query(BOUGHT).run(early, type="type", time="time").partials().count() == 0
    counted = estero.query("SELECT visit WHERE visit ; basket ; pay PARTITION BY [user] WITHIN 5 EVENTS")
    found = counted.run(SHOP, type="type", time="time").partials()
    assert [(each.start, each.steps, each.expired_time) for each in found] == [
        (0, 2, None),
        (1, 2, None),
    ]


def test_where_partial_matches_mean_nothing() -> None:
    for text, message in (
        ("SELECT * WHERE visit ; pay", "has none"),
        ("SELECT * WHERE visit AND pay WITHIN 5 EVENTS", "only a sequence can be matched in part"),
    ):
        with pytest.raises(QueryError, match=message):
            estero.query(text).run(SHOP, type="type", time="time").partials()
    recognizer = estero.query(BOUGHT).recognizer(SHOP.schema, type="type", time="time")
    with pytest.raises(ValueError, match="of a whole stream"):
        recognizer.push(SHOP).partials()


CHOICES = ["", "SHORTEST", "LONGEST", "SHORTEST DISJOINT", "NEXT", "LAST", "MAX", "STRICT"]


@pytest.mark.parametrize("strategy", CHOICES)
@pytest.mark.parametrize("limit", ["", " LIMIT 1", " LIMIT 1 PER 1 HOUR"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_was_completed_is_not_told_to_have_stopped(strategy: str, limit: str, size: int) -> None:
    """Whether a row is given later, or never: two starts are completed, and one is not."""
    stream = events("a(k=1)@0s a(k=1)@1m b(k=1)@2m a(k=2)@3m z(k=2)@30m30s z(k=2)@33m30s")
    query = estero.query(f"SELECT {strategy} a, b WHERE a ; b PARTITION BY [k] WITHIN 30 MINUTES{limit}")
    answer = query.run(stream, type="type", time="time")
    assert [(each.start, each.steps) for each in answer.partials()] == [(3, 1)]
    recognizer = query.recognizer(stream.schema, type="type", time="time", partials=True)
    rows = [each for first in range(0, 6, size) for each in recognizer.push(stream.slice(first, size))]
    rows += recognizer.close()
    assert [(each.start, each.steps) for each in rows if not each.complete] == [(3, 1)]
    complete = {(each.start, each.end) for each in rows if each.complete}
    assert complete == {(each.start, each.end) for each in answer}


@pytest.mark.parametrize(
    ("query", "levels"),
    [
        ("SELECT * WHERE a ; b ; c WITHIN 9 EVENTS CONSUME BY ANY", {2: 1, 3: 1}),
        ("SELECT NEXT * WHERE a ; b ; c WITHIN 9 EVENTS CONSUME BY ANY LIMIT 1", {2: 1, 3: 1}),
        ("SELECT * WHERE a ; b ; c PARTITION BY [k] WITHIN 9 EVENTS CONSUME BY PARTITION", {2: 1}),
        ("SELECT * WHERE a ; b+ ; c FILTER last(b.n) > a.n WITHIN 9 EVENTS CONSUME BY ANY", {2: 1, 3: 1}),
        ("SELECT * WHERE a ; b ; c WITHIN 9 EVENTS", {}),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 30])
def test_what_is_consumed_is_seen_by_nothing_behind_it(query: str, levels: dict[int, int], size: int) -> None:
    """The answer at event 4 forgets the starts 2 and 3, or with partitions only 2."""
    stream = events(
        "a(k=1, n=1) b(k=1, n=2) a(k=1, n=1) a(k=2, n=1) c(k=1, n=1) a(k=2, n=1) b(k=2, n=2) c(k=2, n=1) "
        "b(k=1, n=2) c(k=1, n=2) x(k=1, n=1) x(k=1, n=1) x(k=1, n=1) x(k=1, n=1) x(k=1, n=1)"
    )
    asked = estero.query(query)
    found = asked.run(stream, type="type").partials()
    recognizer = asked.recognizer(stream.schema, type="type", partials=True)
    rows: list[estero.ComplexEvent] = []
    for first in range(0, stream.num_rows, size):
        rows += recognizer.push(stream.slice(first, size))
        recognizer = estero.restore(asked, recognizer.snapshot(), partials=True)
    assert {each.start: each.steps for each in rows if not each.complete} == levels
    assert {each.start: each.steps for each in found} == levels
