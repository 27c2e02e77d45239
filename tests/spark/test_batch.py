"""`estero.spark.recognize` on batch DataFrames: its columns, its order, its tasks, and bad input."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError, EsteroWarning, QueryError
from estero.spark import count, recognize
from estero.spark.failures import jobs
from spark.frames import in_any_order, without_positions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SEQUENCE = "SELECT a, b WHERE A AS a ; B AS b"
PER_KEY = f"{SEQUENCE} PARTITION BY [k]"

Event = tuple[str, int | None, int | None]


def events(spark: SparkSession, rows: Iterable[Event]) -> DataFrame:
    """Events with a type, a time in seconds and a key, in this order of arrival."""
    return spark.createDataFrame(list(rows), "type string, t bigint, k bigint")


def pairs(found: DataFrame) -> list[tuple[int, int]]:
    """The times of the first and the last event of each complex event."""
    return sorted((row.start_time, row.end_time) for row in found.collect())


def as_dicts(found: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in found.collect()]


# ------------------------------------------------------------------------------------------ columns


def test_an_answer_has_times_keys_and_events(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 7), ("B", 2, 7)])
    found = recognize(df, PER_KEY, type="type", time="t")
    assert as_dicts(found) == [
        {
            "start_time": 1,
            "end_time": 2,
            "k": 7,
            "a": [{"type": "A", "t": 1, "k": 7}],
            "b": [{"type": "B", "t": 2, "k": 7}],
        }
    ]


def test_positions_are_shown_when_asked_for(spark: SparkSession) -> None:
    df = events(spark, [("C", 0, 7), ("A", 1, 7), ("C", 2, None), ("B", 3, 7)])
    found = recognize(df, PER_KEY, type="type", time="t", positions=True)
    assert found.columns == ["start", "end", "start_time", "end_time", "k", "a", "b"]
    (row,) = as_dicts(found)
    assert (row["start"], row["end"]) == (1, 3)
    assert [event["position"] for event in row["a"] + row["b"]] == [1, 3]


def test_a_column_says_which_label_it_shows(spark: SparkSession) -> None:
    df = events(spark, [])
    with pytest.warns(EsteroWarning, match="the label start is shown as start_: another column is called"):
        found = recognize(df, "SELECT start WHERE A AS start", type="type", positions=True)
    assert found.columns == ["start", "end", "start_"]
    assert found.schema["start_"].metadata == {"estero:label": "start"}


def test_without_a_time_or_a_key_there_are_only_events(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 1), ("B", 0, 1)])
    found = recognize(df, "SELECT a[t], b[t] WHERE A AS a ; B AS b", type="type")
    assert as_dicts(found) == [{"a": [{"t": 1}], "b": [{"t": 0}]}]


def test_nothing_to_show_is_an_error_that_says_what_to_ask_for(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 1)])
    with pytest.raises(QueryError, match="SELECT NONE without a time or a partition leaves no column"):
        recognize(df, "SELECT NONE WHERE A AS a", type="type")
    found = recognize(df, "SELECT NONE WHERE A AS a", type="type", positions=True)
    assert as_dicts(found) == [{"start": 0, "end": 0}]


def test_values_of_all_types_come_through(spark: SparkSession) -> None:
    values = {
        "small": 3,
        "price": Decimal("1.50"),
        "at": datetime(2024, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 (a timestamp without a zone)
        "day": date(2024, 1, 2),
        "blob": b"\x00\xff",
        "list": [1, 2],
        "inner": {"x": 1.5},
        "odd `name`.x": "é",
    }
    schema = (
        "small tinyint, price decimal(10,2), at timestamp_ntz, day date, blob binary, list array<int>,"
        " inner struct<x double>, `odd ``name``.x` string"
    )
    df = spark.createDataFrame([tuple(values.values())], schema)
    (row,) = as_dicts(recognize(df, "SELECT * WHERE Event AS e FILTER e[small = 3]", time="at"))
    assert row["e"] == [values | {"blob": bytearray(b"\x00\xff")}] == row["Event"]
    assert row["start_time"] == row["end_time"]


@pytest.mark.parametrize("zones", [("Europe/Berlin", "UTC"), ("UTC", "Europe/Berlin"), ("UTC", "UTC")])
@pytest.mark.parametrize("window", ["WITHIN 2 HOURS", ""])
def test_timestamps_are_instants_whatever_the_zone_of_the_session(
    spark: SparkSession, zones: tuple[str, str], window: str
) -> None:
    start = datetime(2024, 3, 31, 0, 30)  # noqa: DTZ001 (naive, as createDataFrame wants it)
    rows = [("A", start), ("B", start + timedelta(hours=2))]  # clocks in Berlin are put forward between
    df = spark.createDataFrame(rows, "type string, t timestamp_ntz")
    query = f"SELECT a WHERE A AS a ; B AS b FILTER a[t = TIMESTAMP '2024-03-31 00:30:00'] {window}"
    try:
        spark.conf.set("spark.sql.session.timeZone", zones[0])
        found = recognize(df, query, type="type", time="t")
        spark.conf.set("spark.sql.session.timeZone", zones[1])
        table = found.toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert table.column("start_time").cast(pa.int64()).to_pylist() == [1_711_845_000_000_000]


# -------------------------------------------------------------------------------------------- order


def test_unsorted_events_are_put_in_order_of_time(spark: SparkSession) -> None:
    df = events(spark, [("B", 4, 1), ("A", 3, 1), ("B", 2, 1), ("A", 1, 1)]).repartition(3)
    assert pairs(recognize(df, SEQUENCE, type="type", time="t")) == [(1, 2), (1, 4), (3, 4)]
    assert pairs(recognize(df, PER_KEY, type="type", time="t")) == [(1, 2), (1, 4), (3, 4)]


def test_ties_keep_the_order_of_arrival(spark: SparkSession) -> None:
    rows: list[Event] = [("A" if i % 2 else "B", 0, i) for i in range(20)]
    found = recognize(events(spark, rows), SEQUENCE, type="type", time="t", positions=True)
    expected = [(i, j) for i in range(1, 20, 2) for j in range(i + 1, 20, 2)]
    assert sorted((row.a[0].k, row.b[0].k) for row in found.collect()) == expected


def test_order_breaks_ties_of_time(spark: SparkSession) -> None:
    df = events(spark, [("B", 0, 2), ("A", 0, 1), ("A", 0, None), ("B", 0, 0)])
    found = recognize(df, SEQUENCE, type="type", time="t", order=["k"])
    assert [(row.a[0].k, row.b[0].k) for row in found.collect()] == [(1, 2)]


def test_windows_in_events_count_all_events_of_the_stream(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 1), ("C", 2, 1), ("C", 3, 2), ("B", 4, 1), ("A", 5, 1), ("B", 6, 1)])
    for text in (SEQUENCE, PER_KEY):
        found = recognize(df, f"{text} WITHIN 1 EVENTS", type="type", time="t")
        assert pairs(found) == [(5, 6)], text


def test_contiguity_counts_all_events_of_the_partition(spark: SparkSession) -> None:
    rows: list[Event] = [("A", 1, 1), ("A", 2, 2), ("C", 3, 2), ("B", 4, 1), ("B", 5, 2), ("C", 6, None)]
    query = "SELECT a, b WHERE A AS a : B AS b PARTITION BY [k]"
    for positions in (False, True):
        found = recognize(events(spark, rows), query, type="type", time="t", positions=positions)
        assert pairs(found) == [(1, 4)]


# -------------------------------------------------------------------------------------------- tasks


def test_events_without_a_key_are_in_no_partition(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, None), ("B", 2, None), ("A", 3, 1), ("B", 4, 1)])
    assert pairs(recognize(df, PER_KEY, type="type", time="t")) == [(3, 4)]


def test_partitions_is_the_number_of_tasks(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 1)])
    assert recognize(df, PER_KEY, type="type", time="t", partitions=5).rdd.getNumPartitions() == 5
    assert recognize(df, SEQUENCE, type="type", time="t", partitions=5).rdd.getNumPartitions() == 5
    one = recognize(df, f"{SEQUENCE} LIMIT 1", type="type", time="t", partitions=5)
    assert one.rdd.getNumPartitions() == 1


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_number_of_tasks_does_not_change_the_answer(spark: SparkSession, partitions: int) -> None:
    rows = [{"type": "AB"[i % 3 % 2], "t": i, "k": i * 7919 % 11} for i in range(300)]
    table = pa.Table.from_pylist(rows)
    df = spark.createDataFrame(table)
    query = f"{PER_KEY} WITHIN 40 [t]"
    found = recognize(df, query, type="type", time="t", partitions=partitions)
    expected = estero.query(query).run(table, type="type", time="t").to_arrow().to_pylist()
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(without_positions(expected))


def test_what_is_forgotten_everywhere_is_seen_in_one_order(spark: SparkSession) -> None:
    df = events(spark, [("A", 1, 1), ("A", 2, 2), ("B", 3, 1), ("B", 4, 2)])
    in_partition = recognize(df, f"{PER_KEY} CONSUME BY PARTITION", type="type", time="t")
    assert pairs(in_partition) == [(1, 3), (2, 4)]
    anywhere = recognize(df, f"{PER_KEY} CONSUME BY ANY", type="type", time="t", partitions=4)
    assert pairs(anywhere) == [(1, 3)]
    assert anywhere.rdd.getNumPartitions() == 1


def test_more_predicates_than_a_word_has_bits(spark: SparkSession) -> None:
    wanted = " OR ".join(f"a[t = {i}]" for i in range(0, 200, 2))
    df = events(spark, [("A", i, 1) for i in range(200)])
    query = f"SELECT a WHERE A AS a FILTER {wanted}"
    assert pairs(recognize(df, query, type="type", time="t")) == [(i, i) for i in range(0, 200, 2)]


def test_an_empty_input_has_no_complex_events(spark: SparkSession) -> None:
    for query in (SEQUENCE, PER_KEY):
        assert recognize(events(spark, []), query, type="type", time="t", positions=True).count() == 0


# ---------------------------------------------------------------------------------------- bad input


def test_a_wrong_query_is_refused_before_anything_runs(spark: SparkSession) -> None:
    df = events(spark, [])
    with pytest.raises(QueryError, match="n"):
        recognize(df, "SELECT * WHERE A AS a FILTER a[n > 3]", type="type", time="t")
    with pytest.raises(QueryError):
        recognize(df, "SELECT * WHERE A AS a ;", type="type", time="t")


def test_a_missing_column_is_named_with_the_nearest(spark: SparkSession) -> None:
    df = events(spark, [])
    with pytest.raises(DataError, match="there is no type column 'typ'"):
        recognize(df, SEQUENCE, type="typ")
    with pytest.raises(DataError, match="there is no time column 'time'"):
        recognize(df, SEQUENCE, type="type", time="time")


def test_columns_that_cannot_be_told_apart_are_refused(spark: SparkSession) -> None:
    df = events(spark, [])
    with pytest.raises(DataError, match="two columns are named 'k'"):
        recognize(df.join(df.select("k")), SEQUENCE, type="type")


def test_no_tasks_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="partitions is a whole number from 1 to 100,000, not 0"):
        recognize(events(spark, []), PER_KEY, type="type", partitions=0)


def test_a_streaming_frame_is_not_counted(spark: SparkSession) -> None:
    df = spark.readStream.format("rate").load()
    with pytest.raises(DataError, match="only batch DataFrames can be counted, but this one is streaming"):
        count(df, "SELECT * WHERE Event AS e", time="timestamp")


def test_a_type_that_cannot_cross_is_named(spark: SparkSession) -> None:
    df = spark.sql("SELECT 'A' AS type, INTERVAL 1 MONTH AS gap")
    with pytest.raises(DataError, match=r"column 'gap': values of type interval month cannot be shown"):
        recognize(df, "SELECT * WHERE A AS a", type="type", positions=True)
    assert recognize(df, "SELECT a[type] WHERE A AS a", type="type").count() == 1


def test_a_relevant_event_without_a_time_is_an_error_of_the_job(spark: SparkSession) -> None:
    df = events(spark, [("A", None, 1)])
    found = recognize(df, SEQUENCE, type="type", time="t", partitions=1)
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"), jobs():
        found.collect()
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"):
        recognize(df, SEQUENCE, type="type", time="t")  # asks the events how many tasks pay


def test_an_overflow_is_an_error_of_the_job(spark: SparkSession) -> None:
    df = events(spark, [("A", 2**62, 1)])
    found = recognize(df, "SELECT a WHERE A AS a FILTER a[t + t > 0]", type="type", time="t")
    with pytest.raises(DataError, match=r"^a number does not fit into 64 bits$"), jobs():
        found.collect()


def test_what_estero_raises_in_a_worker_comes_out_as_it_is(spark: SparkSession) -> None:
    def fail(batches: Any) -> Any:
        from estero.errors import LimitExceeded

        yield from ()
        raise LimitExceeded("more than 3 states: raise the cap")

    with pytest.raises(estero.LimitExceeded, match=r"^more than 3 states: raise the cap$"), jobs():
        spark.range(1).mapInArrow(fail, "id bigint").collect()
