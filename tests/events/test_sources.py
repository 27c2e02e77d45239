"""Whatever users have becomes the same stream: files, frames, iterators, a table for each type."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from estero.classify.column_names import MAPPED_TYPE
from estero.errors import DataError
from estero.events.sources import open_source
from estero.language.tree.durations import TimeUnit
from estero.language.tree.schema import EventLayout, Kind
from events.reading import TRADES, column, rows, write_csv
from waiting import FAR_OFF

# ------------------------------------------------------------------------------ the same, however given


def stored(form: str, directory: Path) -> Any:
    """TRADES in one of the forms that users have them in."""
    path = str(directory / f"trades.{form}")
    match form:
        case "parquet":
            pq.write_table(TRADES, path)
        case "csv":
            TRADES.to_pandas().to_csv(path, index=False)
        case "tsv":
            TRADES.to_pandas().to_csv(path, index=False, sep=";")
        case "csv.gz" | "jsonl":
            frame = TRADES.to_pandas()
            frame.to_csv(path, index=False) if form == "csv.gz" else frame.to_json(
                path, orient="records", lines=True
            )
        case "feather":
            pyarrow.feather.write_feather(TRADES, path)
        case "arrows":
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, TRADES.schema) as writer:
                writer.write_table(TRADES, max_chunksize=3)
        case _:
            return in_memory(form)
    return path


def in_memory(form: str) -> Any:
    match form:
        case "table":
            return TRADES
        case "dictionaries":
            return TRADES.set_column(0, "kind", TRADES["kind"].dictionary_encode())
        case "reader":
            return TRADES.to_reader(max_chunksize=2)
        case "iterator":
            return iter(TRADES.to_batches(max_chunksize=2))
        case "list":
            return TRADES.to_batches(max_chunksize=2)
        case "pandas":
            return TRADES.to_pandas()
        case "polars":
            return pl.DataFrame(TRADES)
        case "duckdb":
            return duckdb.connect().from_arrow(TRADES)
    raise AssertionError(form)


FORMS = [
    *("parquet", "csv", "tsv", "csv.gz", "jsonl", "feather", "arrows"),
    *("table", "dictionaries", "reader", "iterator", "list", "pandas", "polars", "duckdb"),
]


@pytest.mark.parametrize("form", FORMS)
def test_events_are_the_same_however_they_are_given(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), EventLayout.of(type="kind", time="at", time_unit="s"))
    assert source.schema.shared == {
        "kind": Kind.STRING,
        "name": Kind.STRING,
        "volume": Kind.INT,
        "price": Kind.FLOAT,
        "at": Kind.INT,
    }
    assert (source.schema.time, source.schema.time_unit) == ("at", TimeUnit.SECONDS)
    found = rows(source, "kind", "volume", "price")
    assert [tuple(row.values()) for row in found] == [
        (0, 0, "SELL", 10, 1.5),
        (1, 10, "BUY", 20, 2.5),
        (2, 10, "SELL", 30, None),
        (3, 30, "BUY", 40, 4.5),
    ]


@pytest.mark.parametrize("form", [form for form in FORMS if form not in {"reader", "iterator"}])
def test_all_but_iterators_can_be_read_again(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), EventLayout.of(type="kind", time="at"))
    assert rows(source, "name") == rows(source, "name")
    assert source.type_names() == ("BUY", "SELL")
    assert source.has_type("BUY")
    assert not source.has_type("HOLD")


@pytest.mark.parametrize("form", ["reader", "iterator"])
def test_an_iterator_passes_once(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), EventLayout.of(type="kind", time="at"))
    assert len(rows(source)) == 4
    assert source.one_shot
    assert source.has_type("anything")
    assert source.type_names() == ()
    with pytest.raises(DataError, match="come from an iterator that has already been read"):
        rows(source)


def test_several_files_follow_each_other_by_name(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        pq.write_table(pa.table({"n": [number, -number]}), tmp_path / f"part-{number}.parquet")
    assert column(open_source(str(tmp_path / "part-*.parquet")), "n") == [1, -1, 2, -2, 3, -3]
    assert column(open_source(tmp_path), "n") == [1, -1, 2, -2, 3, -3]


def test_options_say_how_a_csv_file_is_read(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bars.csv", "AAPL|200802010900|1,5", "AMZN|200802010901|2,5")
    options = {
        "header": False,
        "names": ["name", "minute", "price"],
        "delim": "|",
        "decimal_separator": ",",
        "types": {"minute": "TIMESTAMP"},
        "timestampformat": "%Y%m%d%H%M",
    }
    source = open_source(path, EventLayout.of(time="minute"), csv_options=options)
    assert source.schema.types["Event"] == {
        "name": Kind.STRING,
        "minute": Kind.TIMESTAMP,
        "price": Kind.FLOAT,
    }
    first = datetime(2008, 2, 1, 9, 0, tzinfo=UTC)
    assert rows(source, "price")[0] == {
        "__position": 0,
        "__time": int(first.timestamp()) * 1_000_000,
        "price": 1.5,
    }


def test_without_a_type_column_all_events_are_of_one_type() -> None:
    source = open_source(TRADES, EventLayout.of(only_type="Trade"))
    assert list(source.schema.types) == ["Trade"]
    assert source.schema.closed
    assert source.type_names() == ("Trade",)
    assert source.has_type("Trade")
    assert not source.has_type("Event")
    assert [row["__time"] for row in rows(source)] == [0, 1, 2, 3]


def test_no_events_are_a_stream_too(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "none.csv", "kind,at")
    assert rows(open_source(path, EventLayout.of(type="kind"))) == []
    assert rows(open_source(TRADES.slice(0, 0), EventLayout.of(type="kind", time="at"))) == []
    assert (
        rows(
            open_source(
                iter(TRADES.slice(0, 0).to_batches() or [TRADES.to_batches()[0].slice(0, 0)]),
                EventLayout.of(time="at"),
            )
        )
        == []
    )


def test_a_json_file_may_be_one_array(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text('[{"a": 1},\n {"a": 2}]', encoding="utf-8")
    assert column(open_source(path), "a") == [1, 2]


# ------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1], pa.int8()), Kind.INT),
        (pa.array([1], pa.uint32()), Kind.INT),
        (pa.array([2**63 - 1], pa.uint64()), Kind.INT),
        (pa.array([1.5], pa.float16()), Kind.FLOAT),
        (pa.array([1.5], pa.float32()), Kind.FLOAT),
        (pa.array([1.5]).cast(pa.decimal128(10, 2)), Kind.DECIMAL),
        (pa.array([True]), Kind.BOOL),
        (pa.array(["x"], pa.large_string()), Kind.STRING),
        (pa.array(["x"], pa.string_view()), Kind.STRING),
        (pa.array(["x"]).dictionary_encode(), Kind.STRING),
        (pa.array([date(2020, 1, 1)]), Kind.TIMESTAMP),
        (pa.array([1], pa.timestamp("ns", "Asia/Tokyo")), Kind.TIMESTAMP),
        (pa.array([b"x"]), Kind.OPAQUE),
        (pa.array([[1]]), Kind.OPAQUE),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_column_has_a_kind_and_can_be_shown(values: pa.Array, kind: Kind) -> None:
    source = open_source(pa.table({"a": values}))
    assert source.schema.types["Event"]["a"] is kind
    assert column(source, "a") == values.to_pylist()


@pytest.mark.parametrize(
    ("unit", "zone", "ticks", "tick"),
    [
        ("s", None, 1_600_000_000_000_000, 1000),
        ("ms", None, 1_600_000_000_000_000, 1000),
        ("us", "Europe/Madrid", 1_600_000_000_000_000, 1000),
        ("ns", None, 1_600_000_000_000_000_000, 1),
        ("ns", "Asia/Tokyo", 1_600_000_000_000_000_000, 1),
    ],
)
def test_times_are_instants_in_ticks(unit: str, zone: str | None, ticks: int, tick: int) -> None:
    seconds = pa.array([1_600_000_000], pa.timestamp("s", "UTC"))
    source = open_source(
        pa.table({"t": seconds.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))}),
        EventLayout.of(time="t"),
    )
    assert [row["__time"] for row in rows(source)] == [ticks]
    assert source.layout.tick_ns == tick


def test_dates_and_integers_are_times() -> None:
    dates = open_source(pa.table({"t": [date(1970, 1, 2)]}), EventLayout.of(time="t"))
    assert [row["__time"] for row in rows(dates)] == [86_400_000_000]
    integers = open_source(TRADES, EventLayout.of(time="at", time_unit="ms"))
    assert [row["__time"] for row in rows(integers)] == [0, 10, 10, 30]
    assert integers.layout.tick_ns == 1_000_000
    assert open_source(TRADES, EventLayout.of(time="at")).layout.tick_ns is None


# ---------------------------------------------------------------------------------- one table a type


def test_each_type_may_have_its_own_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [2, 4], "x": [1, 2], "s": ["a", "b"]}), tmp_path / "a.parquet")
    tables = {"A": tmp_path / "a.parquet", "B": pl.DataFrame({"t": [1, 3], "x": [0.5, 1.5]})}
    source = open_source(tables, EventLayout.of(time="t"))
    assert source.type_column == MAPPED_TYPE
    assert source.schema.types == {
        "A": {"t": Kind.INT, "x": Kind.FLOAT, "s": Kind.STRING},
        "B": {"t": Kind.INT, "x": Kind.FLOAT},
    }
    assert source.schema.closed
    assert source.columns == ("t", "x", "s")
    assert source.type_names() == ("A", "B")
    assert source.has_type("A")
    assert not source.has_type("C")
    found = rows(source, MAPPED_TYPE, "x", "s")
    assert [tuple(row.values()) for row in found] == [
        (0, 1, "B", 0.5, None),
        (1, 2, "A", 1.0, "a"),
        (2, 3, "B", 1.5, None),
        (3, 4, "A", 2.0, "b"),
    ]


def test_an_attribute_of_two_kinds_in_two_tables_is_refused() -> None:
    tables = {"A": pa.table({"x": [1]}), "B": pa.table({"x": ["one"]})}
    with pytest.raises(DataError, match="'x' is an integer in the table of A and a string in that of B"):
        open_source(tables)


def test_the_time_must_be_in_every_table() -> None:
    tables = {"A": pa.table({"t": [1]}), "B": pa.table({"ts": [1]})}
    with pytest.raises(DataError, match="there is no time column 't' in the table of B") as error:
        open_source(tables, EventLayout.of(time="t"))
    assert "did you mean ts?" in str(error.value)


def test_instants_of_several_resolutions_meet() -> None:
    tables = {
        "A": pa.table({"t": pa.array([2_000_000_001], pa.timestamp("ns", "Asia/Tokyo"))}),
        "B": pa.table({"t": pa.array([2], pa.timestamp("s"))}),
        "C": pa.table({"t": pa.array([2000], pa.timestamp("ms", "UTC"))}),
    }
    source = open_source(tables, EventLayout.of(time="t"))
    assert [(row[MAPPED_TYPE], row["__time"]) for row in rows(source, MAPPED_TYPE)] == [
        ("B", 2_000_000_000),
        ("C", 2_000_000_000),
        ("A", 2_000_000_001),
    ]


FORKED = """
import multiprocessing
import pyarrow as pa
import estero

events = pa.table({"kind": ["A", "B"], "t": [1, 2]})


def count(_):
    return estero.query("SELECT * WHERE A ; B").run(events, type="kind", time="t").count()


print(count(0))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(count, range(2)).get(60))
"""


def test_a_forked_process_opens_events_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=FAR_OFF, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["1", "[1, 1]"]
