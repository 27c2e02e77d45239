from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.workloads import (
    BLOCK,
    DENSE,
    LENGTHS,
    STOCK,
    TAXI,
    WORKLOADS,
    Workload,
    dense_text,
)
from estero.language.syntax.parser import parse_query

every_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


@every_workload
def test_a_seed_makes_the_same_events_twice(workload: Workload) -> None:
    assert workload.table(2_000).equals(workload.table(2_000))


@every_workload
def test_a_longer_stream_begins_with_the_shorter_one(workload: Workload) -> None:
    longer = workload.table(BLOCK + 500)
    assert longer.slice(0, 1_000).equals(workload.table(1_000))
    assert longer.slice(BLOCK).num_rows == 500


@every_workload
def test_dictionary_encoded_strings_are_the_plain_ones(workload: Workload) -> None:
    encoded = workload.table(1_000, dictionary=True)
    assert encoded.cast(workload.schema()).equals(workload.table(1_000))
    assert any(pa.types.is_dictionary(field.type) for field in encoded.schema) == any(
        pa.types.is_string(field.type) for field in workload.schema()
    )


@every_workload
def test_time_never_runs_backwards(workload: Workload) -> None:
    if workload.time is None:
        assert workload.name == "dense"
        return
    times = workload.table(BLOCK + 2_000)[workload.time].to_numpy()
    assert np.all(np.diff(times) >= 0)


def test_a_step_of_the_stock_sequences_is_one_event_in_two_hundred() -> None:
    table = STOCK.table(50_000)
    step = pc.and_(pc.equal(table["type"], "SELL"), pc.equal(table["name"], "INTC"))
    assert 150 <= pc.sum(step).as_py() <= 350


def test_an_event_that_never_occurs_does_not() -> None:
    assert not pc.any(pc.equal(STOCK.table(10_000)["name"], "NEVER")).as_py()
    assert not pc.any(pc.equal(TAXI.table(10_000)["pickup_zone"], "NEVER")).as_py()
    assert not pc.any(pc.equal(DENSE.table(10_000)["type"], "NEVER")).as_py()


def test_every_event_of_the_dense_stream_is_of_a_type_that_every_query_names() -> None:
    assert set(DENSE.table(1_000)["type"].unique().to_pylist()) == {"A", "B", "C"}
    for query in DENSE.queries:
        assert all(f"{name}" in query.text for name in "ABC")


@every_workload
def test_every_query_is_in_the_language_and_named_once(workload: Workload) -> None:
    assert len({query.name for query in workload.queries}) == len(workload.queries)
    for query in workload.queries:
        parse_query(query.text)
        parse_query(query.check)


def test_sequences_come_in_all_lengths_with_both_ends() -> None:
    assert [query.answers for query in STOCK.queries] == ["some", "none"] * len(LENGTHS)


def test_a_dense_query_carries_its_window_and_limit() -> None:
    assert dense_text("Kleene", 100, limit=1).endswith("WHERE A ; B+ ; C WITHIN 100 EVENTS LIMIT 1")


def test_the_codes_for_core_hold_the_same_events(tmp_path: Path) -> None:
    STOCK.save_codes(tmp_path / "events.npz", 500)
    table = STOCK.table(500)
    with np.load(tmp_path / "events.npz", allow_pickle=False) as saved:
        assert saved["name_words"][saved["name"]].tolist() == table["name"].to_pylist()
        assert saved["stock_time"].tolist() == table["stock_time"].to_pylist()
