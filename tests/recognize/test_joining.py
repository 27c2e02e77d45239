"""Conjunctive queries on tables: the same answers as the reference, however they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import ComplexEvent, Event
from strategies.conjunctive import hierarchical_queries, streams

ATTRIBUTES = pa.schema([("type", pa.string()), ("a", pa.int64()), ("b", pa.float64()), ("c", pa.int64())])


def table_of(events: Sequence[Event]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"type": event.type, **event.attributes} for event in events], schema=ATTRIBUTES
    )


def found_in(answer: Answer) -> list[ComplexEvent]:
    return [
        ComplexEvent(each.start, each.end, frozenset((k, frozenset(v)) for k, v in each.positions.items()))
        for each in answer
    ]


@given(hierarchical_queries(), streams(most=10))
@settings(max_examples=100)
def test_the_engine_finds_what_the_reference_finds(query: ConjunctiveTree, events: list[Event]) -> None:
    answer = estero.conjunctive(query).run(table_of(events), type="type", types=("T", "S", "R"))
    found = found_in(answer)
    assert len(found) == len(set(found))
    expected = evaluate_conjunctive(query, events)
    assert set(found) == {each for at_end in expected.values() for each in at_end}
    assert [each.end for each in found] == sorted(each.end for each in found)
    assert answer.count() == len(found)


@given(hierarchical_queries(most=3), streams(most=10), st.integers(1, 3))
def test_limit_keeps_any_so_many_at_each_end(query: ConjunctiveTree, events: list[Event], limit: int) -> None:
    text = f"{query} LIMIT {limit}"
    answer = estero.conjunctive(text).run(table_of(events), type="type", types=("T", "S", "R"))
    found = found_in(answer)
    for end, there in evaluate_conjunctive(query, events).items():
        at_end = [each for each in found if each.end == end]
        assert len(at_end) == len(set(at_end)) == min(limit, len(there))
        assert set(at_end) <= there
    assert answer.count() == len(found)
    assert [str(answer[i]) for i in range(len(found))] == [str(each) for each in answer]


def test_strings_and_truth_values_and_instants_join() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    table = pa.table(
        {
            "type": ["T", "S", "S", "R", "R"],
            "s": ["ä", "ä", "b", "ä", None],
            "ok": [True, True, True, False, True],
            "at": [noon, noon, noon, noon, noon],
        }
    )
    answer = estero.conjunctive("Q(x, y) <- T(x, y, _), S(x, y, _)").run(table, type="type")
    assert [each.positions for each in answer] == [{"T": (0,), "S": (1,)}]
    by_time = estero.conjunctive("Q(x, y) <- T(at: x), S(at: x), R(at: x, s: 'ä', ok: y)")
    assert {each.positions["S"] for each in by_time.run(table, type="type")} == {(1,), (2,)}


def test_integers_and_floats_join_as_numbers() -> None:
    big = 2**53
    types = {
        "T": pa.table({"k": [1, big + 1, 0, big]}),
        "S": pa.table({"x": [1.0, float(big), -0.0, 0.5, None], "y": [1, 2, 3, 4, 5]}),
    }
    found = estero.conjunctive("Q(x) <- T(x), S(x, _)").run(types)
    assert {(each["T"][0]["k"], each["S"][0]["x"]) for each in found} == {(1, 1.0), (0, -0.0), (big, big)}


def test_three_values_join_by_hashes() -> None:
    table = pa.table(
        {"type": list("TTSS"), "a": [1, 1, 1, 1], "s": ["u", "v", "u", "w"], "x": [1.5, 1.5, 1.5, 1.5]}
    )
    answer = estero.conjunctive("Q(a, b, c) <- T(a, b, c), S(a, b, c)").run(table, type="type")
    assert [each.positions for each in answer] == [{"T": (0,), "S": (2,)}]


def test_a_type_is_joined_with_itself_by_other_attributes() -> None:
    table = pa.table({"type": ["T"] * 3, "a": [1, 2, 3], "b": [2, 3, 3]})
    answer = estero.conjunctive("Q(x, y, z) <- T(x, y) AS first, T(y, z) AS second").run(table, type="type")
    assert {(each.positions["first"][0], each.positions["second"][0]) for each in answer} == {
        (0, 1),
        (1, 2),
        (2, 2),
    }


def test_events_of_one_table_without_a_type_column() -> None:
    table = pa.table({"k": [1, 2, 1]})
    answer = estero.conjunctive("Q(x) <- Event(x) AS a, Event(x) AS b WITHIN 5 EVENTS").run(table)
    assert answer.count() == 5  # each event with itself, and 0 with 2 in both orders


def test_a_window_in_time_is_inclusive() -> None:
    table = pa.table({"type": list("TSS"), "ts": [0, 10, 11], "k": [1, 1, 1]})
    query = estero.conjunctive("Q(x) <- T(x), S(x) WITHIN 10 [ts]")
    answer = query.run(table, type="type", time="ts")
    assert [(each.start_time, each.end_time) for each in answer] == [(0, 10)]
    seconds = estero.conjunctive("Q(x) <- T(x), S(x) WITHIN 1 MINUTE")
    assert seconds.run(table, type="type", time="ts", time_unit="min").count() == 0
    assert seconds.run(table, type="type", time="ts", time_unit="s").count() == 2


def test_events_from_a_file_are_sorted_and_answers_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": list("STR"), "ts": [3, 1, 2], "k": [7, 7, 7]}), path)
    answer = estero.conjunctive("Q(x) <- T(x), S(x), R(x)").run(path, type="type", time="ts")
    assert [each.positions for each in answer] == [{"T": (0,), "S": (2,), "R": (1,)}]
    answer.write(tmp_path / "matches.parquet")
    assert pq.read_table(tmp_path / "matches.parquet").num_rows == 1


def test_two_to_the_eightieth_answers_are_counted_and_begun() -> None:
    atoms = ", ".join(f"T{number}(x)" for number in range(8))
    types = [f"T{number}" for number in range(8) for _ in range(2**10)]
    table = pa.table({"type": types, "k": [1] * len(types)})
    answer = estero.conjunctive(f"Q(x) <- {atoms}").run(table, type="type")
    assert answer.count() == 2**80
    assert len(list(answer.limit(1000))) == 1000
    assert answer[2**70].positions["T7"] == (7 * 2**10 + 1,)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_cutting_the_stream_into_batches_changes_nothing(size: int) -> None:
    rows = [{"type": "TSR"[n % 3], "a": n % 5, "b": float(n % 2), "c": n % 4} for n in range(120)]
    table = pa.Table.from_pylist(rows, schema=ATTRIBUTES)
    query = estero.conjunctive("Q(x, y, z) <- T(x, y, _), S(x, y, z), R(x, _, _) WITHIN 40 EVENTS")
    cut = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))
    whole = query.run(table, type="type")
    assert [str(each) for each in query.run(cut, type="type")] == [str(each) for each in whole]
