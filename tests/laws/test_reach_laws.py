"""Leaving out events that no complex event can span changes no answer, whatever the batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.classify.vectors import within_reach
from estero.events import screening, sources
from estero.events.small_tables import is_small
from estero.language.check.queries import check_query
from estero.language.tree.query import QueryTree
from estero.queries.texts import query
from estero.recognize import source_run
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from laws.test_correlated_laws import WINDOWS
from laws.test_restart_laws import picked
from laws.test_whole_queries import FORMS, MOST, asked, check
from strategies.correlated import correlated
from strategies.joined import any_joined_queries
from strategies.patterns import SCHEMA, streams
from strategies.whole import whole_queries

pytestmark = pytest.mark.long

ROWS = st.integers(1, 6)
"""Of a batch, which is looked at alone."""


@contextmanager
def left_out(rows: int, *, screened: bool) -> Iterator[None]:
    """Events are left out of any stream, however many there are and however little that saves."""
    small = (lambda _: False) if screened else is_small
    with (
        patch.object(source_run, "_MANY", 0),
        patch.object(within_reach, "_RARE", 10**9),
        patch.object(screening, "ROWS", rows),
        patch.object(sources, "is_small", small),
    ):
        yield


def check_same(run: InProcessRun, rows: int, *, screened: bool) -> None:
    """Rows, and their numbers at each end, are those that the whole stream has."""
    table = Answer(run).to_arrow().to_pylist()
    counts = list(run.counts())
    with left_out(rows, screened=screened):
        assert repr(Answer(run).to_arrow().to_pylist()) == repr(table)  # a NaN is not equal to itself
        assert list(run.counts()) == counts


@settings(max_examples=4 * MOST, suppress_health_check=[HealthCheck.filter_too_much])
@given(whole_queries(), streams(max_size=20), FORMS, ROWS, st.booleans())
def test_the_answer_is_that_of_the_whole_stream(
    tree: QueryTree, events: list[Event], form: str, rows: int, screened: bool
) -> None:
    assume(tree.window is not None)
    _, _, run = asked(tree, events, form)
    check_same(run, rows, screened=screened)


@given(whole_queries(), streams(max_size=10), ROWS)
def test_it_is_what_the_reference_says(tree: QueryTree, events: list[Event], rows: int) -> None:
    run = picked(tree, events)
    with left_out(rows, screened=False):
        check(tree, events, list(Answer(run).batches()))


@settings(max_examples=2 * MOST, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(correlated(), st.sampled_from(WINDOWS), streams(min_size=2, max_size=16), ROWS, st.booleans())
def test_chains_too(pattern: str, window: str, events: list[Event], rows: int, screened: bool) -> None:
    tree = query(f"SELECT * WHERE {pattern}{window}").tree
    assume(not check_query(tree, SCHEMA))
    check_same(picked(tree, events), rows, screened=screened)


@settings(max_examples=2 * MOST)
@given(any_joined_queries(), streams(max_size=16), ROWS, st.booleans())
def test_joins_too(tree: QueryTree, events: list[Event], rows: int, screened: bool) -> None:
    check_same(picked(tree, events), rows, screened=screened)
