"""Streams cut anywhere, in and out of order: their buckets find what the reference semantics say."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.tree.query import Consume, QueryTree
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event, is_answer
from laws.evaluators import by_end, planned
from spark.frames import in_any_order, without_positions
from spark.simulated import Simulation
from strategies.full import full_queries
from strategies.patterns import TICK, from_table, queries, streams, to_table
from strategies.steps import stepped_queries

ANY = st.one_of(queries(), full_queries(), stepped_queries())
SIZES = st.lists(st.integers(1, 6), min_size=2, max_size=4)
some = settings(max_examples=15)
"""Each cut of a stream is classified anew, so an example takes longer than elsewhere."""
BUCKETS = st.sampled_from([1, 2, 7])


def cut(table: pa.Table, sizes: Sequence[int]) -> Iterator[pa.Table]:
    """The table in pieces of these sizes, over and over."""
    first = number = 0
    while first < table.num_rows:
        size = sizes[number % len(sizes)]
        yield table.slice(first, size)
        first, number = first + size, number + 1


def out_of_order(events: Sequence[Event], lateness: int, seed: int) -> list[Event]:
    """The events as they may arrive without any being later than `lateness`."""
    draw = random.Random(seed)
    return sorted(events, key=lambda event: (event.time or 0) + draw.uniform(0, lateness))


def in_stream_order(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.time or 0)


def after_all(time: int = 10**6) -> pa.Table:
    """An event that no query of these wants, long after all others."""
    return to_table([Event("Z", {"time": time, "n": None, "x": None, "s": None, "k": None}, time)])


@some
@given(ANY, streams(min_size=3, max_size=12), SIZES, st.integers(0, 6), st.integers(0, 2**32), st.booleans())
def test_cut_anywhere_it_finds_what_the_reference_says(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, seed: int, own: bool
) -> None:
    tree = replace(tree, partition_by=())
    arrived = out_of_order(events, lateness, seed)
    table = to_table(arrived)
    stream = Simulation(planned(tree, table), lateness=lateness, own=own, counted=True)
    found = [*stream.answers([*cut(table, sizes), after_all()])]
    positioned = from_table(to_table(in_stream_order(arrived)))
    assert is_answer(tree, positioned, by_end(found), tick=TICK)
    assert stream.counts["late"] == 0


@some
@given(ANY, streams(min_size=3, max_size=14), SIZES, st.integers(0, 6), st.integers(0, 2**32), BUCKETS)
def test_keys_in_buckets_find_the_same_rows(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, seed: int, buckets: int
) -> None:
    table = to_table(out_of_order(events, lateness, seed))
    run = planned(replace(tree, limit=None), table)
    assume(not run.plan.needs_positions)
    one_order = run.plan.consume is Consume.ANY
    stream = Simulation(run, buckets=1 if one_order else buckets, lateness=lateness)
    check(stream, table, sizes, Answer(run))


@some
@given(
    queries(),
    streams(min_size=3, max_size=14),
    SIZES,
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_late_events_are_counted_and_left_out(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, own: bool, seed: int
) -> None:
    random.Random(seed).shuffle(events)
    table = to_table(events)
    batches = list(cut(table, sizes))
    in_time, late = divided(batches, lateness)
    run = planned(replace(tree, limit=None, consume=Consume.NONE), in_time)
    assume(not run.plan.needs_positions)
    stream = Simulation(run, lateness=lateness, own=own)
    found = rows(stream.answers([*batches, after_all()]))
    assert in_any_order(found) == in_any_order(without_positions(Answer(run).to_arrow().to_pylist()))
    assert stream.counts["late"] == sum(batch.num_rows for batch in stream.classified(late))


def divided(batches: Sequence[pa.Table], lateness: int) -> tuple[pa.Table, pa.Table]:
    """The events in time, and those that are before the watermark when they come: of the batches before."""
    newest: int | None = None
    kept, late = [], []
    for batch in batches:
        times = batch.column("time").to_pylist()
        # Spark's watermark begins at 0, and until it has passed that there is none.
        watermark = newest - lateness if newest is not None and newest > lateness else -1
        mask = pa.array([time < watermark for time in times])
        late.append(batch.filter(mask))
        kept.append(batch.filter(pa.compute.invert(mask)))
        newest = max([*times, *([] if newest is None else [newest])])
    return pa.concat_tables(kept), pa.concat_tables(late)


def check(stream: Simulation, table: pa.Table, sizes: Sequence[int], answer: Answer) -> None:
    found = rows(stream.answers([*cut(table, sizes), after_all()]))
    assert in_any_order(found) == in_any_order(without_positions(answer.to_arrow().to_pylist()))
    assert stream.counts["late"] == 0


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.k = b.k AND b.n < c.n WITHIN 6 [time]",
        "SELECT * WHERE (A AS a ; B AS b) FILTER a.n < b.n PARTITION BY [k] WITHIN 6 [time]",
        "SELECT * WHERE A AS a ; (B AS b)+ FILTER a.k = b.k",
        "SELECT * WHERE (A AS a ALL B AS b ALL C AS c) FILTER a.k = b.k AND b.k = c.k WITHIN 6 [time]",
        "SELECT NEXT * WHERE A AS a ; (B AS b)+ PARTITION BY [k] WITHIN 6 [time]",
        "SELECT MAX * WHERE (A AS a)+ PARTITION BY [k] WITHIN 4 [time]",
        "SELECT * WHERE A AS a ; B AS b CONSUME BY ANY",
        "SELECT * WHERE A AS a : B AS b PARTITION BY [k]",
        "SELECT * WHERE START(A AS a ; B AS b) PARTITION BY [k]",
    ],
)
@settings(max_examples=4)
@given(events=streams(min_size=8, max_size=16), sizes=SIZES, lateness=st.integers(0, 4), seed=st.integers(0))
def test_every_kind_of_plan_goes_on(
    query: str, events: list[Event], sizes: list[int], lateness: int, seed: int
) -> None:
    table = to_table(out_of_order(events, lateness, seed))
    types = ("A", "B", "C")
    answer = estero.query(query).run(table, type="type", time="time", time_unit="s", types=types)
    run = answer._run
    assert isinstance(run, InProcessRun)
    check(Simulation(run, buckets=1 if "ANY" in query else 3, lateness=lateness), table, sizes, answer)


def test_what_is_idle_is_forgotten_and_begins_anew() -> None:
    rows_of = [
        ("A", 1, 0),
        ("B", 2, 0),
        ("A", 3, 1),
        ("C", 50, None),
        ("C", 51, None),
        ("B", 52, 0),
        ("C", 99, None),
    ]
    events = [Event(name, {"time": at, "n": 0, "x": 0.0, "s": "", "k": k}, at) for name, at, k in rows_of]
    table = to_table(events)
    run = planned(
        estero.query("SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 20 [time]").tree, table
    )
    stream = Simulation(run, buckets=7)
    sizes = []
    for batch in cut(table, [1]):
        list(stream.micro_batch(batch))
        list(stream.micro_batch(None))
        sizes.append(len(stream.held))
    assert sizes == [1, 1, 2, 0, 0, 1, 0]
