"""The store of relevant events, and the public table made from matches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import estero
from estero.answers.answer_schema import answer_schema, label_of, positions_schema
from estero.answers.event_store import EventStore
from estero.answers.report import Reporter, with_positions
from estero.engine.walk.matches import Matches
from estero.language.tree.selection import Shown

MakeStore = Callable[[pa.RecordBatch], EventStore]
NAMES = ["INTC", "RIMM", "QQQ", "INTC", "QQQ", "RIMM"]
PRICES = [20.5, None, 30.0, 20.75, 31.0, 9.0]
LABEL_SETS = [frozenset({"SELL", "a"}), frozenset({"BUY", "b"}), frozenset({"BUY"})]


def classified(name_type: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "__position": pa.array([3, 5, 6, 10, 11, 20], pa.int64()),
            "__time": pa.array([30, 50, 60, 100, 110, 200], pa.int64()),
            "__key0": pa.array([7, 8, 7, 8, 7, 8], pa.uint64()),
            "__bits0": pa.array([1, 2, 4, 1, 2, 4], pa.int64()),
            "name": pa.array(NAMES).cast(name_type or pa.string()),
            "price": pa.array(PRICES, pa.float64()),
        }
    )


def store_of(*batches: pa.RecordBatch) -> EventStore:
    store = EventStore(batches[0].schema)
    for batch in batches:
        store.append(batch)
    return store


def positions(store: EventStore, sequence: NDArray[np.int64]) -> list[int]:
    found: list[int] = store.take(sequence, ["__position"]).column(0).to_pylist()
    return found


def one_by_one(batch: pa.RecordBatch) -> EventStore:
    return store_of(*(batch.slice(i, 1) for i in range(batch.num_rows)))


def matches_of(*rows: list[tuple[int, int]]) -> Matches:
    """Each row lists (sequence number, label set id); it starts and ends at its first and last event."""
    items = [item for row in rows for item in row]
    return Matches(
        np.array([row[0][0] for row in rows], np.int64),
        np.array([row[-1][0] for row in rows], np.int64),
        np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64),
        np.array([event for event, _ in items], np.int64),
        np.array([mark for _, mark in items], np.int32),
    )


TWO_MATCHES = matches_of([(0, 0), (2, 1), (4, 2)], [(0, 0), (3, 0), (5, 1)])


def table(reporter: Reporter, store: EventStore, matches: Matches = TWO_MATCHES) -> list[dict[str, object]]:
    batch = reporter.table(matches, store)
    batch.validate(full=True)
    rows: list[dict[str, object]] = batch.to_pylist()
    return rows


@pytest.mark.parametrize("make", [store_of, one_by_one])
def test_taken_events_come_in_the_order_asked_and_may_repeat(make: MakeStore) -> None:
    store = make(classified())
    taken = store.take(np.array([4, 0, 4]))
    assert taken.schema.names == ["__position", "__time", "name", "price"]
    assert taken.column("name").to_pylist() == ["QQQ", "INTC", "QQQ"]
    assert positions(store, np.array([5, 1])) == [20, 5]
    assert store.take(np.array([5, 1]), ["__time"]).column(0).to_pylist() == [200, 50]
    assert store.take(np.array([], np.int64)).num_rows == 0


def test_events_far_apart_in_many_batches_are_taken_without_joining_what_is_between() -> None:
    rng = np.random.default_rng(3)
    n = 40_000
    batch = pa.record_batch({"__position": np.arange(n) * 2, "__time": np.arange(n), "v": rng.random(n)})
    store = store_of(*(batch.slice(i, 100) for i in range(0, n, 100)))
    sequence = rng.integers(0, n, 500)
    assert store.take(sequence).equals(batch.take(pa.array(sequence)))


def test_trimming_drops_whole_batches_before_the_first_needed_event() -> None:
    store = store_of(classified(), classified(), classified())
    store.trim(11)
    assert (store.first, store.next) == (6, 18)
    store.trim(12)
    assert store.first == 12
    with pytest.raises(IndexError, match="events 11 to 12 were asked for, but 12 to 17 are kept"):
        store.take(np.array([11, 12]))
    with pytest.raises(IndexError, match="events 18 to 18 were asked for"):
        store.take(np.array([18]))
    store.trim(18)
    assert (store.first, store.next) == (18, 18)
    assert store._chunks == []
    store.append(classified())
    assert positions(store, np.array([18])) == [3]


def test_batches_with_different_dictionaries_are_shown_as_plain_strings() -> None:
    batch = classified()
    place = batch.schema.names.index("name")
    encoded = [
        part.set_column(place, "name", part.column("name").dictionary_encode())
        for part in (batch.slice(0, 3), batch.slice(3))
    ]
    taken = store_of(*encoded).take(np.arange(6), ["name"])
    assert taken.schema.field("name").type == pa.string()
    assert taken.column("name").to_pylist() == NAMES
    assert store_of(encoded[0]).take(np.array([1]), ["name"]).column("name").to_pylist() == ["RIMM"]


def test_string_views_are_shown_as_plain_strings() -> None:
    taken = store_of(classified(pa.string_view())).take(np.array([2]), ["name"])
    assert taken.to_pylist() == [{"name": "QQQ"}]


@pytest.mark.parametrize("make", [store_of, one_by_one])
def test_one_row_per_match_with_a_list_of_events_per_label(make: MakeStore) -> None:
    store = make(classified())
    shown = [Shown("a", ("name", "price")), Shown("b", ("price",))]
    rows = table(Reporter(shown, LABEL_SETS, classified().schema), store)
    assert rows == [
        {
            "start": 3,
            "end": 11,
            "a": [{"name": "INTC", "price": 20.5, "position": 3}],
            "b": [{"price": 30.0, "position": 6}],
        },
        {
            "start": 3,
            "end": 20,
            "a": [
                {"name": "INTC", "price": 20.5, "position": 3},
                {"name": "INTC", "price": 20.75, "position": 10},
            ],
            "b": [{"price": 9.0, "position": 20}],
        },
    ]


def test_a_label_of_no_event_is_an_empty_list() -> None:
    rows = table(
        Reporter([Shown("b", ())], LABEL_SETS, classified().schema),
        store_of(classified()),
        matches_of([(1, 0)]),
    )
    assert rows == [{"start": 5, "end": 5, "b": []}]


def test_one_event_can_carry_several_labels() -> None:
    shown = [Shown("BUY", ()), Shown("b", ())]
    rows = table(Reporter(shown, LABEL_SETS, classified().schema), store_of(classified()))
    assert rows[0]["BUY"] == [{"position": 6}, {"position": 11}]
    assert rows[0]["b"] == [{"position": 6}]


def test_labels_of_the_same_events_are_shown_alike() -> None:
    shown = [Shown("SELL", ("name",)), Shown("b", ()), Shown("a", ("name",)), Shown("SELL", ())]
    rows = table(Reporter(shown, LABEL_SETS, classified().schema), store_of(classified()))
    assert (
        rows[1]["SELL"] == rows[1]["a"] == [{"name": "INTC", "position": 3}, {"name": "INTC", "position": 10}]
    )
    assert rows[1]["b"] == [{"position": 20}]
    assert rows[1]["SELL_"] == [{"position": 3}, {"position": 10}]


def test_select_none_shows_start_and_end_only() -> None:
    rows = table(Reporter([], LABEL_SETS, classified().schema), store_of(classified()))
    assert rows == [{"start": 3, "end": 11}, {"start": 3, "end": 20}]


def test_positions_can_stand_in_place_of_events() -> None:
    reporter = Reporter([Shown("a", ("name",))], LABEL_SETS, classified().schema)
    schema = positions_schema(reporter.schema)
    batch = with_positions(reporter.table(TWO_MATCHES, store_of(classified())), schema)
    batch.validate(full=True)
    assert batch.column("a").to_pylist() == [[3], [3, 10]]
    assert label_of(batch.schema.field("a")) == "a"


def test_timestamps_come_in_their_own_unit_with_or_without_their_zone() -> None:
    first = datetime(1970, 1, 1, microsecond=30_000, tzinfo=UTC)
    for zone, expected in ((None, first.replace(tzinfo=None)), ("UTC", first)):
        reporter = Reporter([], LABEL_SETS, classified().schema, time=pa.timestamp("ms", zone))
        rows = table(reporter, store_of(classified()))
        assert reporter.schema.field("end_time").type == pa.timestamp("ms", zone)
        assert rows[0]["start_time"] == expected
        assert rows[1]["end_time"] == expected.replace(microsecond=200_000)


def test_an_integer_time_keeps_its_type() -> None:
    reporter = Reporter([], LABEL_SETS, classified().schema, time=pa.int32())
    assert reporter.schema.field("start_time").type == pa.int32()
    assert table(reporter, store_of(classified()))[0]["end_time"] == 110


def test_partition_columns_take_their_value_from_the_last_event() -> None:
    reporter = Reporter([], LABEL_SETS, classified().schema, keys=[["name"]])
    assert [row["name"] for row in table(reporter, store_of(classified()))] == ["QQQ", "RIMM"]


def test_alternatives_of_a_key_are_one_column_named_after_the_first() -> None:
    batch = classified().append_column("code", pa.array([1, 2, 3, 4, 5, 6], pa.int32()))
    reporter = Reporter([], LABEL_SETS, batch.schema, keys=[["price", "code"]])
    rows = table(reporter, store_of(batch), matches_of([(1, 0)], [(2, 0)]))
    assert [row["price"] for row in rows] == [2.0, 30.0]
    mixed = Reporter([], LABEL_SETS, batch.schema, keys=[["code", "name"]])
    assert table(mixed, store_of(batch))[0]["code"] == "5"


def test_names_that_are_taken_get_an_underscore_and_the_field_remembers_the_label() -> None:
    batch = classified().append_column("position", pa.array(range(6), pa.int64()))
    shown = [Shown("start", ("position",)), Shown("name", ())]
    schema = answer_schema(shown, batch.schema, keys=[["name"]])
    assert schema.names == ["start", "end", "name", "start_", "name_"]
    assert [label_of(field) for field in schema] == [None, None, None, "start", "name"]
    reporter = Reporter(shown, [frozenset({"start"})], batch.schema, keys=[["name"]])
    assert table(reporter, store_of(batch), matches_of([(2, 0)]))[0]["start_"] == [
        {"position": 2, "position_": 6}
    ]


def test_no_matches_make_an_empty_table_of_the_same_schema() -> None:
    reporter = Reporter(
        [Shown("a", ("name",))], LABEL_SETS, classified().schema, time=pa.timestamp("us"), keys=[["name"]]
    )
    batch = reporter.table(matches_of(), store_of(classified()))
    assert batch.num_rows == 0
    assert batch.schema.equals(reporter.schema)


def test_events_appended_one_by_one_are_joined_so_that_there_are_few_batches() -> None:
    store = EventStore(pa.schema([("__position", pa.int64()), ("n", pa.int64())]))
    for number in range(5_000):
        store.append(pa.record_batch({"__position": [number], "n": [number % 7]}))
    assert len(store._chunks) < 64
    wanted = np.array([0, 31, 32, 33, 1000, 4998, 4999])
    assert positions(store, wanted) == wanted.tolist()
    assert store.take(wanted, ["n"]).column(0).to_pylist() == (wanted % 7).tolist()
    store.trim(4_999)
    assert store.first > 0
    assert positions(store, np.array([4_999])) == [4_999]


def test_lists_of_nothing_but_null_are_shown() -> None:
    events = [{"type": "A", "l": [None, None]}, {"type": "A", "l": []}]
    rows = estero.query("SELECT * WHERE A").run(events, type="type").to_dicts()
    assert [row["A"][0]["l"] for row in rows] == [[None, None], []]
