"""Partial matches: of each start that was not completed in time, what NEXT would choose of its level."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

import estero
from estero.answers.answer import Answer
from estero.errors import QueryError
from estero.language.tree.query import QueryTree
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.reference.partial_matches import evaluate_partials
from estero.reference.queries import Event
from estero.testing import events
from laws.evaluators import by_end
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST
from recognize.test_levels import sequences
from strategies import TICK, streams

SHOP = events(
    "visit(user=ann)@0s visit(user=bob)@10s basket(user=ann)@60s visit(user=cy)@2m basket(user=bob)@3m "
    "basket(user=bob)@4m pay(user=ann)@5m pay(user=bob)@2h"
)
BOUGHT = "SELECT * WHERE visit ; basket ; pay PARTITION BY [user] WITHIN 1 HOUR"


def partials(tree: QueryTree, stream: list[Event]) -> dict[int, tuple[int, object]]:
    run = InProcessRun(plan_of(tree, layout_of()), source_of(stream))
    found: dict[int, tuple[int, object]] = {}
    for batch in Answer(run).partials().batches():
        for place, row in enumerate(batch.to_pylist()):
            ((complex_event,),) = by_end([batch.slice(place, 1)]).values()
            assert row["start"] not in found
            found[row["start"]] = row["steps"], complex_event
    return found


@settings(max_examples=max(60, MOST))
@given(sequences(), streams())
def test_one_for_each_start_that_came_so_far(tree: QueryTree, stream: list[Event]) -> None:
    tree = replace(tree, select=None)
    try:
        right = evaluate_partials(tree, stream, tick=TICK)
    except QueryError:
        with pytest.raises(QueryError, match="depends on a later part"):
            partials(tree, stream)
        return
    found = partials(tree, stream)
    assert found.keys() == right.keys()
    for start, (level, complex_event) in found.items():
        assert level == right[start][0]
        assert complex_event in right[start][1]


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
        ("SELECT * WHERE visit AND pay WITHIN 5 EVENTS", "only a sequence comes some of the way"),
    ):
        with pytest.raises(QueryError, match=message):
            estero.query(text).run(SHOP, type="type", time="time").partials()
    recognizer = estero.query(BOUGHT).recognizer(SHOP.schema, type="type", time="time")
    with pytest.raises(ValueError, match="of a whole stream"):
        recognizer.push(SHOP).partials()
