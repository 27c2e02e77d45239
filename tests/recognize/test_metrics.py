"""What recognizers count: numbers for a monitor, which are right wherever the stream is cut."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import cycle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

import estero
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event
from estero.testing import events
from laws.test_restart_laws import MOST, SIZES
from laws.test_rule_set_laws import endless, rule_sets
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import TABLE, streams, to_table

LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}
IN_SECONDS: dict[str, Any] = {**LAYOUT, "time_unit": "s"}
EXTENT = ("open_events", "partitions", "nodes", "waiting", "events", "late", "held_back")
ON_TIME = events("A(k=1)@0s A(k=2)@1s B(k=1)@5s x(k=1)@6s B(k=1)@7s A(k=5)@100s")
STREAM = pa.concat_tables([ON_TIME, events("B(k=2)@1s")])
QUERY = estero.query("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 1 MINUTE")


def extent(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: metrics[name] for name in EXTENT}


def test_of_one_query() -> None:
    recognizer = QUERY.recognizer(STREAM.schema, **LAYOUT)
    recognizer.push(STREAM.slice(0, 6))
    recognizer.push(STREAM.slice(6))
    metrics = recognizer.metrics()
    assert metrics.pop("seconds").keys() == {"classify", "recognize"}
    assert metrics.pop("state_bytes") > 0
    assert metrics == {
        "events": 7,
        "held_back": 0,
        "late": 1,
        "waiting": 0,
        "relevant": 5,
        "answers": 2,
        "open_events": 1,
        "partitions": 1,
        "nodes": 1,
        "states": 3,
        "compactions": 0,
        "shed_partitions": 0,
        "shed_events": 0,
    }


def test_of_events_that_come_alone_or_are_held_back() -> None:
    alone = QUERY.recognizer(STREAM.schema, **LAYOUT)
    for event in STREAM.slice(0, 6).to_pylist():
        alone.push(event)
    held = QUERY.recognizer(STREAM.schema, **LAYOUT, lateness="1 hour")
    held.push(STREAM)
    assert (alone.metrics()["relevant"], alone.metrics()["answers"]) == (5, 2)
    numbers = held.metrics()
    assert (numbers["events"], numbers["held_back"], numbers["relevant"]) == (7, 7, 0)
    assert numbers["state_bytes"] > alone.metrics()["state_bytes"]
    held.flush()
    assert (held.metrics()["held_back"], held.metrics()["answers"]) == (0, 3)


def test_with_partial_matches_rows_are_counted() -> None:
    recognizer = QUERY.recognizer(STREAM.schema, **LAYOUT, partials=True)
    rows = recognizer.push(STREAM.slice(0, 6)).count()
    assert recognizer.metrics()["answers"] == rows == 3


def test_of_a_set_whose_rules_change() -> None:
    rules = estero.rules({"near": QUERY, "x": "SELECT * WHERE x WITHIN 5 EVENTS"})
    recognizer = rules.recognizer(STREAM.schema, **LAYOUT)
    recognizer.push(STREAM.slice(0, 3))
    recognizer.remove("x")
    recognizer.add("late", "SELECT * WHERE A ; NOT(C) FOR 10 SECONDS")
    recognizer.push(STREAM.slice(3, 3))
    metrics = recognizer.metrics()
    assert metrics["answers_by_rule"] == {"near": 2, "late": 0}
    assert (metrics["rules"], metrics["waiting"], metrics["answers"]) == (2, 1, 2)


def test_windows_close_and_memory_is_given_back() -> None:
    recognizer = QUERY.recognizer(STREAM.schema, **LAYOUT)
    recognizer.push(STREAM.slice(0, 6))
    recognizer.advance("2000-01-01 00:00:00")
    metrics = recognizer.metrics()
    assert (metrics["open_events"], metrics["partitions"], metrics["nodes"]) == (0, 0, 0)


def test_a_closed_one_says_so() -> None:
    recognizer = QUERY.recognizer(STREAM.schema, **LAYOUT)
    recognizer.close()
    with pytest.raises(estero.EsteroError, match="closed"):
        recognizer.metrics()


@settings(max_examples=min(25, MOST))
@given(full_queries() | joined_queries(), streams(max_size=14), SIZES)
def test_numbers_are_those_of_the_answers_and_a_restart_changes_none(
    tree: QueryTree, stream: list[Event], sizes: list[int]
) -> None:
    query = estero.Query(str(tree))
    assume(endless(query))
    recognizer = query.recognizer(TABLE, **IN_SECONDS)
    other = query.recognizer(TABLE, **IN_SECONDS)
    table, first, turn, ends = to_table(stream), 0, cycle(sizes), 0
    while first < table.num_rows:
        batch = table.slice(first, next(turn))
        answer = recognizer.push(batch)
        ends += len({complex_event.end for complex_event in answer})
        before = recognizer.metrics()
        assert [*map(str, answer)] == [*map(str, other.push(batch))], "to ask changes nothing"
        assert before["events"] == first + batch.num_rows
        assert before["answers"] == ends or (recognizer._plan.sieved and before["answers"] > ends)
        after = estero.restore(query, recognizer.snapshot()).metrics()
        assert extent(after) == extent(before)
        assert abs(after["state_bytes"] - before["state_bytes"]) <= 64, "but for bitmaps of NULLs"
        first += batch.num_rows


@settings(max_examples=min(10, MOST))
@given(rule_sets(), streams(max_size=12), SIZES)
def test_of_each_rule_of_a_set(rules: dict[str, estero.Query], stream: list[Event], sizes: list[int]) -> None:
    rules = {name: query for name, query in rules.items() if "START" not in str(query) and endless(query)}
    assume(rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)
        recognizer = estero.rules(rules).recognizer(TABLE, **IN_SECONDS)
    alone = {name: rule.recognizer(TABLE, **IN_SECONDS) for name, rule in rules.items()}
    table, first, turn = to_table(stream), 0, cycle(sizes)
    while first < table.num_rows:
        batch = table.slice(first, next(turn))
        recognizer.push(batch)
        for single in alone.values():
            single.push(batch)
        first += batch.num_rows
    numbers = recognizer.metrics()
    by_rule = {name: single.metrics() for name, single in alone.items()}
    assert numbers["answers_by_rule"] == {name: each["answers"] for name, each in by_rule.items()}
    assert numbers["answers"] == Counter(numbers["answers_by_rule"]).total()
    assert numbers["nodes"] == sum(each["nodes"] for each in by_rule.values())
