"""Frames as people have them: indexes, kinds of columns, missing values, zones and nanoseconds."""

from __future__ import annotations

import io
import itertools
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.cli.terminal import short
from estero.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EACH = estero.query("SELECT * WHERE Event AS e")
OVER_ONE = estero.query("SELECT * WHERE Event AS e FILTER e[v > 1]")
PAIRS = estero.query("SELECT a, b WHERE A AS a ; B AS b WITHIN 2 SECONDS")
NOON = datetime(2024, 3, 30, 12, tzinfo=UTC)
NANOSECOND = 1_711_800_000_123_456_789
ZONES = (None, "UTC", "Europe/Berlin", "+05:30")


def frame(**columns: Any) -> pd.DataFrame:
    """Three events a second apart."""
    kinds = {"kind": ["A", "B", "B"]}
    return pd.DataFrame(kinds | columns, index=pd.date_range("2024-03-30 12:00", periods=3, freq="s"))


def refusal(events: object, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        EACH.run(events, **options).count()
    return str(caught.value)


# ------------------------------------------------------------------------------------------- indexes


def test_an_index_with_a_name_is_a_column() -> None:
    answer = PAIRS.run(frame().rename_axis("ts"), type="kind", time="ts")
    assert [ce.positions["b"] for ce in answer] == [(1,), (2,)]
    assert next(iter(answer))["a"][0]["ts"] == pd.Timestamp("2024-03-30 12:00")


def test_levels_of_an_index_are_columns_and_a_column_goes_before_one() -> None:
    levels = frame(v=[1, 2, 3]).rename_axis("ts").set_index("kind", append=True)
    assert PAIRS.run(levels, type="kind", time="ts").count() == 2
    both = frame(v=[1, 2, 3]).rename_axis("v")
    assert [ce["e"][0]["v"] for ce in EACH.run(both)] == [1, 2, 3]


def test_an_index_without_a_name_is_hinted_at() -> None:
    assert refusal(frame(v=[1, 2, 3]), time="ts") == (
        "there is no time column 'ts'\n  hint: the columns are kind, v; "
        "the index of the frame has no name: frame.rename_axis('name') makes it a column"
    )


def test_a_frame_with_an_index_is_pushed() -> None:
    events = frame().rename_axis("ts")
    recognizer = PAIRS.recognizer(events, type="kind", time="ts")
    assert [recognizer.push(events.iloc[i : i + 1]).count() for i in range(3)] == [0, 1, 1]


# ------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "x"], "row 2, column 'v': 'x' is a string, but the value above it is a number"),
        ([None, 1.5, True], "row 3, column 'v': True is a truth value, but the value above it is a number"),
        (["x", None, b"y"], "row 3, column 'v': b'y' is bytes, but the value above it is a string"),
        ([date(2024, 1, 1), NOON], "a time with a zone, but the value above it is a date"),
        (
            [NOON, NOON.replace(tzinfo=None)],
            (
                "row 2, column 'v': datetime.datetime(2024, 3, 30, 12, 0) is a time without a zone, "
                "but the value above it is a time with a zone"
            ),
        ),
        ([2, 2**64], "row 2, column 'v': 18446744073709551616 does not fit into 64 bits"),
        ([0.5, 2**53 + 1], "row 2, column 'v': 9007199254740993 is not exact as a float"),
        (
            [[1], ["x"]],
            "row 2, column 'v': ['x'] cannot be read with the values above it: it is a list\n",
        ),
        ([1j], "row 1, column 'v': 1j cannot be read"),
    ],
)
def test_the_first_value_that_does_not_fit_is_named(values: list[object], message: str) -> None:
    assert message in refusal(pd.DataFrame({"v": pd.Series(values, dtype=object)}))


MANY = 2_000
"""Rows of a frame whose strings are looked at for how few of them differ."""


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_few_strings_in_many_rows_are_those_strings(missing: object) -> None:
    events = pd.DataFrame({"kind": ["A", "B", missing, "é"] * (MANY // 4), "n": range(MANY)})
    answer = estero.query("SELECT * WHERE é AS e").run(events, type="kind")
    assert answer.to_arrow().column("e").combine_chunks().flatten().to_pylist() == [
        {"kind": "é", "n": n, "position": n} for n in range(3, MANY, 4)
    ]
    shown = EACH.run(events).to_arrow().column("e").combine_chunks().flatten().field("kind")
    assert shown.type == pa.string()
    assert shown.to_pylist() == ["A", "B", None, "é"] * (MANY // 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "True is a truth value, but the value above it is a string"),
        (["A"], "['A'] is a list, but the value above it is a string"),
        ("\ud800", "'\\ud800' cannot be read with the values above it: it is a string"),
    ],
)
def test_below_few_strings_the_first_value_that_does_not_fit_is_named(value: object, message: str) -> None:
    events = pd.DataFrame({"v": pd.Series([*["A", "B"] * (MANY // 2), value, "A"], dtype=object)})
    assert f"row {MANY + 1}, column 'v': {message}" in refusal(events)


def test_strings_that_differ_only_below_are_all_there() -> None:
    names = ["A"] * MANY + [f"n{number}" for number in range(MANY)]
    assert (
        EACH.run(pd.DataFrame({"v": names}))
        .to_arrow()
        .column("e")
        .combine_chunks()
        .flatten()
        .field("v")
        .to_pylist()
        == names
    )


def test_frames_of_few_and_of_many_rows_are_pushed_alike() -> None:
    query = estero.query("SELECT a, b WHERE A AS a ; B AS b WITHIN 1 EVENTS")
    events = pd.DataFrame({"kind": ["A", "B"] * MANY})
    recognizer = query.recognizer(events.iloc[:10], type="kind")
    cuts = [0, 10, MANY + 11, 2 * MANY]
    found = [recognizer.push(events.iloc[a:b]).count() for a, b in itertools.pairwise(cuts)]
    assert sum(found) == query.run(events, type="kind").count() == MANY


def test_a_category_of_several_kinds_names_the_row() -> None:
    assert refusal(pd.DataFrame({"v": pd.Categorical(["x", "x", 1])})).startswith(
        "row 3, column 'v': 1 is a number, but the value above it is a string\n"
        "  hint: give the column values of one kind, such as frame['v'].astype(str)"
    )


@pytest.mark.parametrize("names", [["v", "v"], ["0", 0]])
def test_two_columns_of_one_name_are_named(names: list[Any]) -> None:
    assert refusal(pd.DataFrame([[1, 2]], columns=names)) == (
        f"two columns are named {names[0]!r}\n  hint: rename one of them"
    )


def test_names_of_several_levels_say_how_to_make_one() -> None:
    levels = pd.MultiIndex.from_tuples([("v", "low"), ("v", "high")])
    assert refusal(pd.DataFrame([[1, 2]], columns=levels)) == (
        "the columns of this frame have names of 2 levels\n"
        "  hint: give each one name: frame.columns = ['_'.join(map(str, each)) for each in frame.columns]"
    )


def test_a_frame_without_columns_says_so() -> None:
    assert refusal(pd.DataFrame()) == "the events have no columns"


@pytest.mark.parametrize(
    "values",
    [
        pd.arrays.SparseArray([0, 0, 2]),
        pd.Categorical([0, 0, 2]),
        pd.array([0, None, 2], dtype="Int64"),
        pd.array([0, None, 2], dtype="int64[pyarrow]"),
        pd.Series([0, None, 2], dtype=object),
        np.array([0, 1, 2], np.float16),
    ],
    ids=lambda values: str(values.dtype),
)
def test_columns_of_any_dtype_are_read(values: Any) -> None:
    assert [ce.start for ce in OVER_ONE.run(pd.DataFrame({"v": values}))] == [2]


# ------------------------------------------------------------------------------------------- missing values


def test_what_pandas_calls_missing_is_null_in_every_library() -> None:
    events = frame(v=[0.5, np.nan, 2.5], s=["x", np.nan, None], b=[True, np.nan, False])
    events = events.reset_index(drop=True)
    for same in (events, pl.from_pandas(events), pa.Table.from_pandas(events)):
        assert [ce.start for ce in OVER_ONE.run(same)] == [2]
        missing = estero.query("SELECT * WHERE Event AS e FILTER e[v IS NULL AND s IS NULL AND b IS NULL]")
        assert [ce.start for ce in missing.run(same)] == [1]


@pytest.mark.parametrize(
    "events",
    [
        pl.DataFrame({"v": [0.5, float("nan"), None]}),
        pa.table({"v": [0.5, float("nan"), None]}),
        pd.DataFrame({"v": pd.arrays.ArrowExtensionArray(pa.array([0.5, float("nan"), None]))}),
    ],
    ids=["polars", "arrow", "pandas"],
)
def test_nan_beside_null_is_the_largest_number(events: object) -> None:
    assert [ce.start for ce in OVER_ONE.run(events)] == [1]


# ------------------------------------------------------------------------------------------- times


def timed(zone: str | None, unit: str = "ns") -> pa.Table:
    ticks = NANOSECOND if unit == "ns" else NANOSECOND // 1000
    times = pa.array([ticks, ticks + 1], pa.timestamp(unit, zone))
    nested = pa.StructArray.from_arrays([times], ["t"])
    lists = pa.array([[None], []], pa.list_(times.type))
    return pa.table({"kind": ["A", "B"], "t": times, "in": nested, "all": lists})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_zones_and_units_are_kept_in_every_type(zone: str | None, unit: str) -> None:
    events = timed(zone, unit)
    found = PAIRS.run(events, type="kind", time="t").to_arrow()
    wanted = pa.timestamp(unit, zone)
    assert [found.schema.field(name).type for name in ("start_time", "end_time")] == [wanted] * 2
    shown = found.schema.field("a").type.value_type
    assert [shown.field(name).type for name in ("t", "in", "all")] == events.schema.types[1:]
    assert found.column("end_time").to_pylist() == events.column("t")[1:].to_pylist()


@pytest.mark.parametrize("zone", ZONES)
def test_nanoseconds_and_zones_are_in_every_output(zone: str | None) -> None:
    answer = PAIRS.run(timed(zone), type="kind", time="t")
    time = pd.Timestamp(NANOSECOND, tz="UTC").tz_convert(zone)
    written = {name: io.BytesIO() for name in ("csv", "jsonl", "parquet")}
    for name, file in written.items():
        answer.write(file, format=name)
    (line,) = map(json.loads, written["jsonl"].getvalue().splitlines())
    row = answer.to_pandas().iloc[0]
    for found in (next(iter(answer)).start_time, next(iter(answer))["a"][0]["t"], row["start_time"]):
        assert (found, found.nanosecond, found.utcoffset()) == (time, 789, time.utcoffset())
    event = {"kind": "A", "t": time, "in": {"t": time}, "all": [None], "position": 0}
    assert row["a"].tolist() == [event]
    assert line["start_time"] == line["labels"]["a"][0]["in"]["t"] == time.isoformat()
    digits = time.strftime("%Y-%m-%d %H:%M:%S.123456789")
    assert digits in written["csv"].getvalue().decode()
    assert pa.parquet.read_table(written["parquet"]).equals(answer.to_arrow())
    if zone != "+05:30":  # Polars has no zones that are offsets
        assert answer.to_polars()["start_time"].dtype == pl.Datetime("ns", zone)
    assert str(time) in answer._repr_html_()
    assert short(time).startswith(digits)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("zone", "shown"), [("+05:30", "+05:30"), ("UTC", "Z"), ("Asia/Tokyo", "+0900"), (None, "")]
)
def test_nanoseconds_and_offsets_are_read_from_text_files(
    zone: str | None, shown: str, suffix: str, tmp_path: Path
) -> None:
    moment = pd.Timestamp(NANOSECOND, tz="UTC").tz_convert(zone)
    text = f"{moment.strftime('%Y-%m-%dT%H:%M:%S')}.123456789{shown}"
    path = tmp_path / f"events.{suffix}"
    if suffix == "csv":
        path.write_text(f"kind,t\nA,{text}\nB,2024-03-30 12:00:01\n", encoding="utf-8")
    else:
        rows = [{"kind": "A", "t": text}, {"kind": "B", "t": "2024-03-30 12:00:01"}]
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    (found,) = PAIRS.run(path, type="kind", time="t")
    assert found.start_time == (moment if zone is None else moment.tz_convert("UTC"))
    assert found.start_time.nanosecond == 789


@pytest.mark.parametrize("zone", ZONES)
def test_recognizers_keep_zones_and_nanoseconds_past_a_snapshot(zone: str | None) -> None:
    events = timed(zone)
    recognizer = PAIRS.recognizer(events.schema, type="kind", time="t", lateness="1 second")
    recognizer.push(events[:1])
    restored = estero.restore(PAIRS, recognizer.snapshot())
    restored.push(events[1:])
    found = restored.flush().to_arrow()
    assert found.equals(PAIRS.run(events, type="kind", time="t").to_arrow())


def test_tables_of_types_with_different_zones_are_shown_in_utc() -> None:
    tables = {
        "A": pa.table({"t": pa.array([NOON], pa.timestamp("us", "Europe/Berlin"))}),
        "B": pa.table({"t": pa.array([NOON], pa.timestamp("us", "Asia/Tokyo"))}),
    }
    found = PAIRS.run(tables, time="t").to_arrow()
    assert found.schema.field("start_time").type == pa.timestamp("us", "UTC")
    assert found.to_pylist()[0]["b"] == [{"t": NOON, "position": 1}]
    same = PAIRS.run(dict.fromkeys("AB", tables["A"]), time="t")
    assert same.schema.field("start_time").type == pa.timestamp("us", "Europe/Berlin")


def test_times_that_stand_in_columns_as_objects_keep_their_nanoseconds() -> None:
    times = pd.Series([pd.Timestamp(NANOSECOND), None], dtype=object)
    assert EACH.run(pd.DataFrame({"t": times}))[0]["e"][0]["t"] == pd.Timestamp(NANOSECOND)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (NOON, "2024-03-30 12:00:00Z"),
        (NOON.replace(tzinfo=None, microsecond=120_000), "2024-03-30 12:00:00.12"),
        (pd.Timestamp(NOON).tz_convert("Europe/Berlin"), "2024-03-30 13:00:00+01:00"),
        (pd.Timestamp(NANOSECOND), "2024-03-30 12:00:00.123456789"),
    ],
)
def test_tables_show_times_as_they_came(time: datetime, text: str) -> None:
    assert short(time) == text


@pytest.mark.spark
def test_times_on_spark_have_a_zone_where_they_came_with_one(spark: SparkSession) -> None:
    from estero.spark import recognize

    rows = [
        (kind, NOON.replace(tzinfo=None, second=n), NOON.replace(second=n)) for n, kind in enumerate("AB")
    ]
    df = spark.createDataFrame(rows, "kind string, n timestamp_ntz, z timestamp")
    kind, naive, zoned = zip(*rows, strict=True)
    times = {"n": pa.array(naive, pa.timestamp("us")), "z": pa.array(zoned, pa.timestamp("us", "UTC"))}
    for name, zone in (("n", None), ("z", "UTC")):
        found = recognize(df, PAIRS, type="kind", time=name, positions=True).toArrow()
        here = PAIRS.run(pa.table({"kind": kind, **times}), type="kind", time=name).to_arrow()
        assert found.schema.field("start_time").type == pa.timestamp("us", zone)
        assert found.to_pylist() == here.to_pylist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_stay_durations(unit: str) -> None:
    lasts = pa.array([1, None, -3], pa.duration("s")).cast(pa.duration(unit))
    events = pa.table({"lasts": lasts}).slice(1)
    found = EACH.run(events)
    assert found.schema.field("e").type.value_type.field("lasts").type == pa.duration(unit)
    assert [ce["e"][0]["lasts"] for ce in found] == events.column("lasts").to_pylist()
    assert found.to_pandas()["e"][1][0]["lasts"] == pd.Timedelta(-3, "s")
    assert found.to_polars()["e"][1][0]["lasts"] == timedelta(seconds=-3)
    recognizer = EACH.recognizer(events)
    assert recognizer.push(events).to_arrow().equals(found.to_arrow())


def test_intervals_of_months_are_not_for_polars() -> None:
    months = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    answer = EACH.run(pa.table({"lasts": months}))
    assert answer.to_arrow().num_rows == 1
    with pytest.raises(DataError) as caught:
        answer.to_polars()
    assert str(caught.value) == (
        "column 'Event': holds intervals of months, days and nanoseconds, which Polars does not have\n"
        "  hint: name the attributes to show, such as x[a, b], or use to_arrow()"
    )


# ------------------------------------------------------------------------------------------- no events

EMPTY = {
    "floats": pd.DataFrame({"kind": [], "v": [], "ts": [], "who": []}),
    "objects": pd.DataFrame(columns=["kind", "v", "ts", "who"]),
    "strings": pa.table({name: pa.array([], pa.string()) for name in ("kind", "v", "ts", "who")}),
    "structs": pa.table(
        {name: pa.array([], pa.struct({"x": pa.int8()})) for name in ("kind", "v", "ts", "who")}
    ),
    "polars": pl.DataFrame({"kind": [], "v": [], "ts": [], "who": []}),
}
ASKING = estero.query(
    "SELECT * WHERE A AS a ; B AS b FILTER a[v > 1 AND who = 'x'] AND a.v < b.v PARTITION BY [who] "
    "WITHIN 5 MINUTES"
)


@pytest.mark.parametrize("name", EMPTY)
def test_a_frame_without_rows_is_an_empty_stream_whatever_its_types(name: str) -> None:
    answer = ASKING.run(EMPTY[name], type="kind", time="ts")
    assert (answer.count(), list(answer), answer.to_arrow().num_rows) == (0, [], 0)
    mapped = ASKING.run({"A": EMPTY[name], "B": EMPTY[name]}, time="ts")
    assert mapped.count() == 0


@pytest.mark.parametrize("name", EMPTY)
def test_a_table_without_rows_stands_beside_one_with_events(name: str) -> None:
    times = pa.array([NOON, NOON], pa.timestamp("us", "Europe/Berlin"))
    some = pa.table({"v": [2, 3], "who": ["x", "y"], "ts": times})
    assert ASKING.run({"A": some, "B": EMPTY[name]}, time="ts").to_arrow().num_rows == 0
    either = estero.query("SELECT * WHERE (A AS x OR B AS x) FILTER x[v > 2 AND who = 'y']")
    (found,) = either.run({"A": some, "B": EMPTY[name]}, time="ts")
    assert (found["x"][0]["v"], found.end_time) == (3, NOON)
    assert found.end_time.utcoffset() == pd.Timestamp(NOON).tz_convert("Europe/Berlin").utcoffset()


def test_an_empty_file_of_pandas_is_an_empty_stream(tmp_path: Path) -> None:
    for name in ("floats", "objects"):
        EMPTY[name].to_parquet(tmp_path / f"{name}.parquet")
        assert ASKING.run(tmp_path / f"{name}.parquet", type="kind", time="ts").count() == 0


def test_an_empty_frame_is_pushed_where_types_were_declared() -> None:
    schema = pa.schema({"kind": pa.string(), "v": pa.int64(), "ts": pa.timestamp("us"), "who": pa.string()})
    recognizer = ASKING.recognizer(schema, type="kind", time="ts")
    assert [recognizer.push(nothing).count() for nothing in EMPTY.values()] == [0] * len(EMPTY)


def test_the_columns_of_an_answer_to_nothing_have_the_types_of_the_events() -> None:
    some = timed("Europe/Berlin")
    empty = PAIRS.run(some[:0], type="kind", time="t")
    assert empty.to_arrow().schema.equals(PAIRS.run(some, type="kind", time="t").schema)


def test_the_types_that_were_declared_for_events_to_come_are_checked() -> None:
    schema = pa.schema({"kind": pa.string(), "v": pa.string(), "ts": pa.timestamp("us"), "who": pa.string()})
    with pytest.raises(estero.QueryError, match="a string cannot be compared with an integer"):
        ASKING.recognizer(schema, type="kind", time="ts")
