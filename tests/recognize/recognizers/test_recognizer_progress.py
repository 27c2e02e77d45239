"""What is open in a recognizer: by steps, since when, and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import estero
from estero.errors import EsteroError
from estero.language.tree.query import QueryTree
from estero.testing import events
from laws.test_restart_laws import MOST, SIZES
from notebooks import shown_by
from recognize.partial_matches.test_levels import sequences
from strategies.patterns import TABLE, streams, to_table

LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}
STREAM = events("a(k=1)@0s a(k=2)@10s b(k=1)@20s a(k=1)@30s x(k=3)@40s")


def progress_of(where: str, stream: pa.Table = STREAM) -> Any:
    recognizer = estero.query(f"SELECT {where}").recognizer(stream.schema, **LAYOUT)
    recognizer.push(stream)
    return recognizer.progress()


@pytest.mark.parametrize(
    "where",
    [
        "* WHERE a ; b ; c PARTITION BY [k] WITHIN 1 MINUTE",
        "* WHERE a ;[<= 50 SECONDS] b ; c PARTITION BY [k] WITHIN 1 MINUTE",
        "* WHERE a ; b ; c FILTER a.k < c.k PARTITION BY [k] WITHIN 1 MINUTE",
        "* WHERE a ; b ; c ; NOT(d) FOR 1 SECOND PARTITION BY [k] WITHIN 1 MINUTE",
    ],
)
def test_runs_by_steps(where: str) -> None:
    progress = progress_of(where)
    assert (dict(progress.steps), progress.runs) == ({1: 2, 2: 1}, 3)
    assert (progress.position, progress.late, progress.held_back) == (5, 0, 0)
    assert (progress.oldest_start, progress.oldest_time.second) == (0, 0)
    assert (progress.expires - progress.oldest_time).seconds == 60


@pytest.mark.parametrize("strategy", ["MAX", "LAST", "NEXT", "LONGEST", "SHORTEST", "LONGEST DISJOINT"])
def test_of_each_strategy(strategy: str) -> None:
    progress = progress_of(f"{strategy} * WHERE a ; b ; c PARTITION BY [k] WITHIN 1 MINUTE")
    assert sorted(progress.steps) == [1, 2]
    assert progress.oldest_start == 0


def test_events_that_wait_in_an_index() -> None:
    progress = progress_of("* WHERE a ; b ; c FILTER a.k = b.k AND b.k < c.k WITHIN 1 MINUTE")
    assert sorted(progress.steps) == [1, 2]


def test_nothing_is_open() -> None:
    progress = progress_of("* WHERE x ; c WITHIN 5 SECONDS", events("x()@0s y()@10s"))
    assert (progress.steps, progress.oldest_start, progress.oldest_time, progress.expires) == (
        {},
        None,
        None,
        None,
    )
    assert str(progress) == "2 events read, 0 held back, 0 late\nnothing is open"


def test_in_words_and_by_name() -> None:
    progress = progress_of("* WHERE a ; b ; c WITHIN 9 EVENTS")
    assert str(progress).splitlines() == [
        "5 events read, 0 held back, 0 late",
        "1 run at step 1",
        "1 run at step 2",
        "the oldest start is event 0, at 1970-01-01 00:00:00; its window has passed after 9",
    ]
    assert progress.to_dict()["steps"] == {1: 1, 2: 1}
    numbers, steps = shown_by(progress).all("div", "scroll")
    assert numbers.rows() == [
        ["events read", "5"],
        ["held back", "0"],
        ["late", "0"],
        ["oldest start", "event 0, at 1970-01-01 00:00:00"],
        ["its window has passed after", "9"],
    ]
    assert steps.rows() == [["1", "1"], ["2", "1"]]
    waiting = shown_by(replace(progress, steps={}, waiting=3, oldest_start=None))
    assert waiting.texts("td") == ["5", "0", "0", "3"]
    assert waiting.texts("p") == ["Nothing is open."]


def test_what_waits_for_a_deadline() -> None:
    progress = progress_of("* WHERE a ; NOT(c) FOR 1 HOUR")
    assert (progress.waiting, progress.steps) == (3, {})
    assert "3 events wait for a deadline" in str(progress)


def test_of_partial_matches_and_of_a_closed_one() -> None:
    query = estero.query("SELECT * WHERE a ; b ; c WITHIN 1 MINUTE")
    recognizer = query.recognizer(STREAM.schema, **LAYOUT, partials=True)
    recognizer.push(STREAM)
    assert recognizer.progress().steps == {1: 1, 2: 1}
    plain = query.recognizer(STREAM.schema, **LAYOUT)
    plain.close()
    with pytest.raises(EsteroError, match="closed"):
        plain.progress()


@settings(max_examples=max(40, MOST))
@given(sequences(), streams(), SIZES)
def test_asking_changes_nothing_and_a_restart_neither(
    tree: QueryTree, stream: list[Any], sizes: list[int]
) -> None:

    query = estero.query(str(tree))
    how: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
    asked, other = (query.recognizer(TABLE, **how) for _ in range(2))
    table, first, turn = to_table(stream), 0, 0
    while first < table.num_rows:
        batch = table.slice(first, sizes[turn % len(sizes)])
        found = asked.push(batch).to_arrow()
        assert str(found.to_pylist()) == str(other.push(batch).to_arrow().to_pylist())
        before = asked.progress()
        asked = estero.restore(query, asked.snapshot())
        assert asked.progress() == before
        assert before.position == first + batch.num_rows
        first, turn = first + batch.num_rows, turn + 1
    left = [str(each.close().to_arrow().to_pylist()) for each in (asked, other)]
    assert left[0] == left[1]
