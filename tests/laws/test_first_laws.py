"""With LIMIT 1, runs keep only what leads to the first complex event of each end: the answer is the same."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.toys import tiny_pools
from estero.answers.answer import Answer
from estero.engine.runs.plain_runs import PlainRuns
from estero.language.tree.query import QueryTree
from estero.queries.texts import query
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognition import Recognition
from estero.reference.queries import Event
from laws.test_kernel_laws import interpreted
from laws.test_restart_laws import picked
from laws.test_steps import long_stream
from laws.test_whole_queries import FORMS, MOST, asked
from strategies.full import full_queries
from strategies.patterns import queries, streams
from strategies.whole import whole_queries

pytestmark = pytest.mark.long


def read(run: InProcessRun) -> list[object]:
    """All that can be read of an answer: rows, numbers, numbers by end, and rows by their indexes."""
    answer, number = Answer(run), run.count()
    at = [repr(table.to_pylist()) for table in run.at(range(number))]
    return [repr(answer.to_arrow().to_pylist()), number, list(run.counts()), at]


def whole(run: InProcessRun) -> list[object]:
    """The same where runs keep everything."""
    with patch.object(Recognition, "read_only", lambda self: self):
        return read(run)


@settings(max_examples=2 * MOST)
@given(st.one_of(whole_queries(), full_queries(), queries()), streams(max_size=16), FORMS)
def test_rows_and_numbers_are_those_of_complete_runs(tree: QueryTree, events: list[Event], form: str) -> None:
    assume(tree.per is None and tree.ranking is None)
    _, _, run = asked(replace(tree, limit=1), events, form)
    assert read(run) == whole(run)


@given(full_queries(), streams(max_size=10))
def test_python_says_the_same(tree: QueryTree, events: list[Event]) -> None:
    run = picked(replace(tree, limit=1), events)
    with interpreted():
        rows = repr(Answer(run).to_arrow().to_pylist())
    assert rows == repr(Answer(run).to_arrow().to_pylist())


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize(
    "pattern",
    ["A ; B ; A", "A ; B+ ; A", "(A OR B)+ ; B", "A : B ; A", "A ; B ; A PARTITION BY [k]", "A ALL B ALL A"],
)
def test_rows_are_the_same_where_every_pool_has_to_grow(pattern: str, python: bool) -> None:
    events = long_stream(7)
    run = picked(query(f"SELECT * WHERE {pattern} WITHIN 20 EVENTS LIMIT 1").tree, events)
    with patch.object(Recognition, "read_only", lambda self: self):
        expected = Answer(run).to_arrow().to_pylist()
    assert len(expected) > 50
    with tiny_pools(), interpreted() if python else nullcontext():
        assert Answer(run).to_arrow().to_pylist() == expected


def test_only_limit_1_of_all_complex_events_lets_runs_keep_less() -> None:
    def first_only(text: str) -> bool:
        run = picked(query(text).tree, [])
        runs = run._recognition(run.plan).recognizer.runs
        return isinstance(runs, PlainRuns) and runs.first_only

    assert first_only("SELECT * WHERE A ; B WITHIN 5 EVENTS LIMIT 1")
    assert not first_only("SELECT * WHERE A ; B WITHIN 5 EVENTS LIMIT 2")
    assert not first_only("SELECT * WHERE A ; B WITHIN 5 EVENTS")
    assert not first_only("SELECT LONGEST * WHERE A+ ; B WITHIN 5 EVENTS LIMIT 1")
