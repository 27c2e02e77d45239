"""A stream is read in its order: times, ties, positions; reading can be stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from estero.automata.cea import EventPredicate
from estero.errors import DataError
from estero.events.sources import open_source
from estero.language.tree.expressions import Arithmetic, Attribute, Comparison, Literal
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification
from events.reading import TRADES, column, everything, rows
from waiting import FAR_OFF


def test_a_sorted_stream_is_not_sorted_again() -> None:
    assert open_source(TRADES, EventLayout.of(time="at")).is_sorted()
    assert not open_source(TRADES, EventLayout.of(time="at", order=["name"])).is_sorted()
    assert open_source(TRADES).is_sorted()


@pytest.mark.parametrize("form", ["table", "parquet"])
def test_an_unsorted_stream_is_sorted_by_time_and_ties_keep_arrival(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    times = rng.integers(0, 50, 5000)
    table = pa.table({"t": times, "arrival": np.arange(5000)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    source = open_source(table if form == "table" else tmp_path / "t.parquet", EventLayout.of(time="t"))
    assert not source.is_sorted()
    found = rows(source, "arrival")
    assert [row["__position"] for row in found] == list(range(5000))
    assert [row["arrival"] for row in found] == np.argsort(times, kind="stable").tolist()


@pytest.mark.parametrize("form", ["table", "parquet"])
def test_order_breaks_ties_of_the_time(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 1, 0, 1], "id": ["c", "a", "z", "b"], "n": [0, 1, 2, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(
        table if form == "table" else tmp_path / "t.parquet", EventLayout.of(time="t", order=["id"])
    )
    assert column(source, "n") == [2, 1, 3, 0]


def test_an_unsorted_iterator_is_refused_where_it_goes_back() -> None:
    table = pa.table({"t": [1, 2, 3, 1]})
    source = open_source(iter(table.to_batches(max_chunksize=3)), EventLayout.of(time="t"))
    with pytest.raises(DataError, match=r"row 4: the event is earlier than the one before it") as error:
        rows(source)
    assert "collect it into a table first" in str(error.value)


def test_positions_count_the_stream_across_batches_and_threads() -> None:
    size = 700_000
    batches = (
        pa.record_batch({"n": np.arange(start, min(start + 1000, size))}) for start in range(0, size, 1000)
    )
    source = open_source(batches)
    predicate = EventPredicate(
        ("Event",), Comparison("!=", Arithmetic("%", Attribute("n"), Literal(3)), Literal(0))
    )
    found = list(source.read(Classification((predicate,), source.schema, payload=("n",))))
    positions = np.concatenate([batch.column(0).to_numpy() for batch in found])
    numbers = np.concatenate([batch.column("n").to_numpy() for batch in found])
    assert (positions == numbers).all()
    assert (positions == np.flatnonzero(np.arange(size) % 3)).all()


def test_a_failure_of_the_iterator_itself_is_passed_on() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield TRADES.to_batches()[0]
        raise ZeroDivisionError("the feed broke")

    with pytest.raises(ZeroDivisionError, match="the feed broke"):
        rows(open_source(batches()))


def test_the_interrupt_key_ends_a_long_query() -> None:
    program = """
import os, signal, sys, threading
import pyarrow as pa
from estero.automata.cea import EventPredicate
from estero.language.tree.expressions import Attribute, Comparison, Literal
from estero.events.sources import open_source
from estero.plan.plan import Classification
signal.signal(signal.SIGINT, signal.default_int_handler)  # what started the tests may ignore it
def batches():
    batch = pa.record_batch({"n": [0] * 100_000})
    yield batch
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    while True:
        yield batch
source = open_source(batches())
never = EventPredicate(("Event",), Comparison("=", Attribute("n"), Literal(1)))
try:
    list(source.read(Classification((never,), source.schema)))
except KeyboardInterrupt:
    sys.exit(7)
"""
    finished = subprocess.run([sys.executable, "-c", program], timeout=FAR_OFF, check=False)
    assert finished.returncode == 7


def test_a_reading_can_be_given_up(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": np.arange(1_000_000)}), tmp_path / "n.parquet")
    source = open_source(tmp_path / "n.parquet")
    reading = source.read(everything(source, "n"))
    assert next(iter(reading)).num_rows > 0
    reading.close()  # type: ignore[attr-defined]
    assert len(rows(source)) == 1_000_000


def test_an_overflow_in_events_of_another_type_is_none() -> None:
    source = open_source(pa.table({"kind": ["A", "B"], "n": [1, 2**63 - 1]}), EventLayout.of(type="kind"))
    predicate = EventPredicate(
        ("A",), Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    )
    found = list(source.read(Classification((predicate,), source.schema, type_column="kind")))
    assert [row["__position"] for batch in found for row in batch.to_pylist()] == [0]
