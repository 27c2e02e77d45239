"""Times in every kind of input: what has a zone keeps it, what has none gets none, nanoseconds stay."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import estero
from engines import Engine, InProcess, PushedOneByOne
from estero.errors import DataError

PAIRS = estero.query("SELECT * WHERE A AS a ; B AS b")
ZONES = [None, "UTC", "Europe/Berlin", "America/Santiago"]
TICKS = 1_711_849_499_123_456_789
"""In the hour that clocks are put forward by in Berlin."""


def timed(zone: str | None, unit: str) -> pa.Table:
    ticks = TICKS if unit == "ns" else TICKS // 1000
    times = pa.array([ticks, ticks + 1], pa.timestamp(unit, zone))
    return pa.table({"kind": ["A", "B"], "t": times, "in": pa.StructArray.from_arrays([times], ["t"])})


MIXED = (
    "b[coalesce({one}, {other}) = {one}]",
    "b[greatest({one}, {other}) >= {one}]",
    "b[least({other}, {one}) < {one}]",
    "b[nullif({one}, {other}) IS NULL]",
    "b[CASE WHEN n = 1 THEN {one} ELSE {other} END > {one}]",
    "b[{one} = {other}]",
    "b[{one} BETWEEN {other} AND {other}]",
    "coalesce(b.{one}, a.{other}) > a.{other}",
    "greatest(b.{one}, a.{other}, a.{one}) = a.{other}",
    "nullif(b.{one}, a.{other}) IS NULL",
    "CASE WHEN a.n = 1 THEN b.{one} ELSE a.{other} END > a.{other}",
    "max(b.{one}) > min(a.{other})",
    "b.{one} - a.{other} > 1 NANOSECOND",
)
"""What times of two columns are compared in and chosen by."""


@pytest.mark.parametrize("other", ["plain", "berlin"])
@pytest.mark.parametrize("condition", MIXED)
def test_nanoseconds_with_and_without_a_zone_go_together(
    local_engine: Engine, condition: str, other: str
) -> None:
    ticks = pa.array([TICKS, TICKS + 1, TICKS, TICKS + 60, None])
    later = pa.array([TICKS, TICKS, TICKS + 1, TICKS + 2, TICKS])
    zones = {"plain": None, "utc": "UTC", "berlin": "Europe/Berlin"}
    times = {name: ticks.cast(pa.timestamp("ns", zone)) for name, zone in zones.items()}
    others = {f"{name}_later": later.cast(pa.timestamp("ns", zone)) for name, zone in zones.items()}
    kinds = {"type": list("ABABB"), "n": [1, 2, 2, 1, 1]}
    found = [
        local_engine.rows(
            "SELECT NONE WHERE A AS a ; B AS b FILTER " + condition.format(one=one, other=f"{two}_later"),
            pa.table({**kinds, **times, **others}),
            {"type": "type"},
        )
        for one, two in ((other, other), ("utc", other), (other, "utc"))
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT NONE WHERE A ; B AS b FILTER b[coalesce(early, precise) < precise]",
        "SELECT NONE WHERE A ; B AS b FILTER b[CASE WHEN TRUE THEN early ELSE precise END < precise]",
        "SELECT NONE WHERE A AS a ; B AS b FILTER greatest(b.early, a.precise) = a.precise",
        "SELECT greatest(b.early, a.precise) AS latest WHERE A AS a ; B AS b",
    ],
)
def test_a_time_beyond_nanoseconds_says_so(query: str) -> None:
    early = pa.array([0, -62_000_000_000 * 10**6], pa.timestamp("us"))
    events = pa.table({"type": ["A", "B"], "early": early, "precise": pa.array([1, 2], pa.timestamp("ns"))})
    for rows in (InProcess().rows, PushedOneByOne().rows):
        with pytest.raises(DataError, match="before 1677 or after 2262") as caught:
            rows(query, events, {"type": "type"})
        assert caught.value.hint == "convert one of them"


def in_parquet(events: pa.Table, place: Path) -> object:
    pa.parquet.write_table(events, place / "events.parquet")
    return str(place / "events.parquet")


def in_parquet_of_polars(events: pa.Table, place: Path) -> object:
    frame = pl.from_arrow(events)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(place / "events.parquet")
    return str(place / "events.parquet")


def in_parquet_files(events: pa.Table, place: Path) -> object:
    for number in range(2):
        pa.parquet.write_table(events[number : number + 1], place / f"{number}.parquet")
    return str(place)


def in_arrow_file(events: pa.Table, place: Path) -> object:
    pa.feather.write_feather(events, place / "events.arrow", compression="uncompressed")
    return str(place / "events.arrow")


INPUTS: dict[str, Callable[[pa.Table, Path], object]] = {
    "Arrow": lambda events, _: events,
    "pandas": lambda events, _: events.drop_columns(["in"]).to_pandas(),
    "Polars": lambda events, _: pl.from_arrow(events),
    "Parquet": in_parquet,
    "Parquet of Polars": in_parquet_of_polars,
    "Parquet files": in_parquet_files,
    "an Arrow file": in_arrow_file,
}


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_zones_and_nanoseconds_are_kept(given: str, zone: str | None, unit: str, tmp_path: Path) -> None:
    events = timed(zone, unit)
    answer = PAIRS.run(INPUTS[given](events, tmp_path), type="kind", time="t")
    written = io.BytesIO()
    answer.write(written, format="parquet")
    wanted = pa.timestamp(unit, zone)
    for found in (answer.to_arrow(), pa.parquet.read_table(written)):
        shown = found.schema.field("a").type.value_type
        assert [found.schema.field(name).type for name in ("start_time", "end_time")] == [wanted] * 2
        assert shown.field("t").type == wanted
        if "in" in {field.name for field in shown}:
            assert shown.field("in").type == pa.struct([("t", wanted)])
        assert found.column("end_time").to_pylist() == events.column("t")[1:].to_pylist()


@pytest.mark.parametrize("given", ["duckdb", "csv", "json"])
@pytest.mark.parametrize("zoned", [False, True])
def test_what_names_no_zone_is_in_utc_or_in_none(given: str, *, zoned: bool, tmp_path: Path) -> None:
    text = "2024-03-31 01:44:59.123456" + ("+02:00" if zoned else "")
    events: object
    connection = duckdb.connect()
    if given == "duckdb":
        kind = "TIMESTAMPTZ" if zoned else "TIMESTAMP"
        events = connection.sql(
            f"SELECT 'A' AS kind, {kind} '{text}' AS t UNION ALL SELECT 'B', {kind} '{text}'"
        )
    elif given == "csv":
        events = str(tmp_path / "events.csv")
        (tmp_path / "events.csv").write_text(f"kind,t\nA,{text}\nB,{text}\n")
    else:
        events = str(tmp_path / "events.jsonl")
        (tmp_path / "events.jsonl").write_text(
            "".join(f'{{"kind": "{kind}", "t": "{text}"}}\n' for kind in "AB")
        )
    found = PAIRS.run(events, type="kind", time="t").to_arrow()
    connection.close()
    time = found.schema.field("start_time").type
    assert (time.tz is not None) is zoned
    if given != "duckdb":
        assert time == pa.timestamp("us", "UTC" if zoned else None)


def test_parquet_files_of_several_zones_are_shown_in_that_of_the_first(tmp_path: Path) -> None:
    for number, zone in enumerate(["Europe/Berlin", "Asia/Tokyo"]):
        pa.parquet.write_table(timed(zone, "us")[number : number + 1], tmp_path / f"{number}.parquet")
    found = PAIRS.run(str(tmp_path), type="kind", time="t").to_arrow()
    assert found.schema.field("end_time").type == pa.timestamp("us", "Europe/Berlin")
    assert found["end_time"].cast(pa.int64()).to_pylist() == [TICKS // 1000 + 1]
