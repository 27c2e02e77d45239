"""Several threads give what one gives, in the same order, wherever the stream is divided among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.errors import QueryError
from estero.events.sources import Source
from estero.language.check.queries import check_query
from estero.language.tree.query import QueryTree
from estero.plan.plan import Classification
from estero.plan.reach import Reach
from estero.queries.texts import query
from estero.recognize.in_process import InProcessRun
from estero.recognize.threads import ranges
from estero.reference.queries import Event
from laws.test_correlated_laws import WINDOWS
from laws.test_restart_laws import picked
from laws.test_whole_queries import FORMS, MOST, asked, check
from strategies.correlated import correlated
from strategies.joined import any_joined_queries
from strategies.partials import queries_with_levels
from strategies.patterns import SCHEMA, streams
from strategies.whole import whole_queries

pytestmark = pytest.mark.long

THREADS = st.sampled_from([2, 3, 8])
LENGTHS = st.integers(1, 4)
"""Rows of the shortest range, and of a batch."""


@contextmanager
def divided(shortest: int, batch: int) -> Iterator[None]:
    """Ranges may be as short as `shortest`, and batches have `batch` rows."""
    whole = Source.read

    def in_pieces(
        source: Source, classification: Classification, threads: int = 1, reach: Reach | None = None
    ) -> Iterator[pa.RecordBatch]:
        for rows in whole(source, classification, threads, reach):
            yield from (rows.slice(first, batch) for first in range(0, rows.num_rows, batch))

    with patch.object(ranges, "SHORTEST", shortest), patch.object(Source, "read", in_pieces):
        yield


def check_same(run: InProcessRun, threads: int, shortest: int, batch: int) -> None:
    """Rows, and their numbers at each end, are those of one thread."""
    one, several = run, replace(run, threads=threads)
    rows = Answer(one).to_arrow().to_pylist()
    counts = list(one.counts())
    with divided(shortest, batch):
        assert repr(Answer(several).to_arrow().to_pylist()) == repr(rows)  # a NaN is not equal to itself
        assert several.count() == len(rows)
        assert several.count(enough=1) >= min(1, len(rows))
        assert list(several.counts()) == counts
        assert several.ends().tolist() == one.ends().tolist()


@settings(max_examples=3 * MOST)
@given(whole_queries(), streams(max_size=12), FORMS, THREADS, LENGTHS, LENGTHS)
def test_several_threads_find_what_one_finds(
    tree: QueryTree, events: list[Event], form: str, threads: int, shortest: int, batch: int
) -> None:
    tree, events, run = asked(tree, events, form)
    check_same(run, threads, shortest, batch)


@given(whole_queries(), streams(max_size=9), THREADS, LENGTHS, LENGTHS)
def test_several_threads_find_what_the_reference_says(
    tree: QueryTree, events: list[Event], threads: int, shortest: int, batch: int
) -> None:
    run = replace(picked(tree, events), threads=threads)
    with divided(shortest, batch):
        check(tree, events, list(Answer(run).batches()))


@settings(max_examples=2 * MOST, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(correlated(), st.sampled_from(WINDOWS), streams(min_size=2, max_size=12), THREADS, LENGTHS, LENGTHS)
def test_chains_too(
    pattern: str, window: str, events: list[Event], threads: int, shortest: int, batch: int
) -> None:
    tree = query(f"SELECT * WHERE {pattern}{window}").tree
    assume(not check_query(tree, SCHEMA))
    check_same(picked(tree, events), threads, shortest, batch)


@settings(max_examples=2 * MOST)
@given(any_joined_queries(), streams(max_size=12), THREADS, LENGTHS, LENGTHS)
def test_joins_too(tree: QueryTree, events: list[Event], threads: int, shortest: int, batch: int) -> None:
    check_same(picked(tree, events), threads, shortest, batch)


@settings(max_examples=2 * MOST)
@given(queries_with_levels(), streams(max_size=12), st.booleans(), THREADS, LENGTHS)
def test_partial_matches_and_funnels_too(
    tree: QueryTree, events: list[Event], chosen: bool, threads: int, batch: int
) -> None:
    one = picked(tree, events)
    several = replace(one, threads=threads)
    try:
        rows = one.partials(chosen=chosen).table
    except QueryError:  # an absence that depends on a later part
        reject()
    steps = one.funnel(by_partition=True, chosen=chosen)
    with divided(1, batch):
        assert repr(several.partials(chosen=chosen).table.to_pylist()) == repr(rows.to_pylist())
        assert repr(several.funnel(by_partition=True, chosen=chosen).to_pylist()) == repr(steps.to_pylist())
