"""Fields of structs as the type, the time and the order of events, wherever events come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import estero
from estero.cli.commands import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[dict[str, Any]] = [
    {"event": {"outcome": kind, "at": {"t": 9 - i}}, "n": i} for i, kind in enumerate("BCBA")
]
EVENTS = pa.Table.from_pylist(ROWS)
QUERY = estero.query("SELECT x, y WHERE A AS x ; B AS y")
LAYOUT: dict[str, Any] = {"type": "event.outcome", "time": "event.at.t", "order": ["n"]}
FOUND = [(0, 1), (0, 3)]


def spans(answer: estero.Answer) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in answer]


def in_file(write: Callable[[Path], object], name: str) -> Callable[[Path], str]:
    def written(directory: Path) -> str:
        write(directory / name)
        return str(directory / name)

    return written


LINES = "\n".join(map(json.dumps, ROWS))
SOURCES: dict[str, Callable[[Path], object]] = {
    "a table": lambda _: EVENTS,
    "dicts": lambda _: ROWS,
    "pandas": lambda _: pd.DataFrame(ROWS),
    "Polars": lambda _: pl.from_arrow(EVENTS),
    "a lazy frame": lambda _: pl.DataFrame(EVENTS).lazy(),
    "a dataset": lambda _: pyarrow.dataset.dataset(EVENTS),
    "Parquet": in_file(lambda file: pyarrow.parquet.write_table(EVENTS, file), "e.parquet"),
    "Arrow": in_file(lambda file: pyarrow.feather.write_feather(EVENTS, file), "e.arrow"),
    "JSON lines": in_file(lambda file: file.write_text(LINES), "e.jsonl"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_path_names_a_field_wherever_events_come_from(tmp_path: Path, source: str) -> None:
    assert spans(QUERY.run(SOURCES[source](tmp_path), **LAYOUT)) == FOUND


def test_a_path_names_a_field_of_a_relation_which_its_connection_may_read() -> None:
    with duckdb.connect() as connection:
        connection.register("events", EVENTS)
        found = QUERY.run(connection.sql("FROM events"), **LAYOUT)  # noqa: F841  (DuckDB finds it by its name)
        assert connection.sql('SELECT start, "end" FROM found ORDER BY ALL').fetchall() == FOUND


def test_a_path_names_a_field_of_the_table_of_each_type() -> None:
    tables = {
        kind: pa.Table.from_pylist([row for row in ROWS if row["event"]["outcome"] == kind]) for kind in "AB"
    }
    assert spans(QUERY.run(tables, time="event.at.t")) == [(0, 1), (0, 2)]


def test_a_column_that_is_called_so_goes_first() -> None:
    named = EVENTS.append_column("event.outcome", pa.array(["A", "A", "A", "B"]))
    assert spans(QUERY.run(named, type="event.outcome")) == [(2, 3), (1, 3), (0, 3)]
    inside = pa.table({"a.b": pa.StructArray.from_arrays([pa.array(["A", "B"])], ["c"])})
    assert spans(QUERY.run(inside, type="a.b.c")) == [(0, 1)]


def test_a_field_of_no_struct_is_null() -> None:
    events = pa.table({"e": pa.array([{"k": "A"}, None, {"k": "B"}], pa.struct({"k": pa.string()}))})
    assert spans(QUERY.run(events, type="e.k")) == [(0, 2)]
    times = pa.table({"e": pa.array([{"t": 1}, None], pa.struct({"t": pa.int64()}))})
    with pytest.raises(estero.DataError, match="the time is NULL"):
        estero.query("SELECT * WHERE Event").run(times, time="e.t").count()


def test_a_path_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(estero.DataError, match=r"there is no type column 'event\.outcom'"):
        QUERY.run(EVENTS, type="event.outcom")
    with pytest.raises(estero.DataError, match=r"there is no time column 'n\.t'"):
        QUERY.run(EVENTS, type="event.outcome", time="n.t")


@pytest.mark.parametrize(
    ("first", "said"), [("2026-01-01T10:00:00", "holds a string"), ("noon", "'noon' is not")]
)
def test_a_time_inside_of_an_object_of_json_is_one_in_a_relation(
    tmp_path: Path, first: str, said: str
) -> None:
    file = tmp_path / "e.jsonl"
    times = {"A": first, "B": "2026-01-01T11:00:00"}
    file.write_text("\n".join(json.dumps({"event": {"outcome": k, "at": at}}) for k, at in times.items()))
    layout: dict[str, Any] = {"type": "event.outcome", "time": "event.at"}
    with pytest.raises(estero.DataError, match=said) as caught:
        QUERY.run(str(file), **layout).count()
    assert caught.value.hint.startswith(
        "in JSON, strings inside of objects stay strings; the relation duckdb"
    )
    if first != "noon":
        assert spans(QUERY.run(duckdb.read_json(str(file)), **layout)) == [(0, 1)]


@pytest.mark.parametrize("pushed", ["dicts", "tuples", "tables", "together"])
def test_recognizers_know_fields_too(pushed: str) -> None:
    layout = {**LAYOUT, "order": []}
    sorted_rows = ROWS[::-1]
    recognizer = QUERY.recognizer(EVENTS.schema, **layout)
    shapes: dict[str, list[Any]] = {
        "dicts": sorted_rows,
        "tuples": [tuple(row.values()) for row in sorted_rows],
        "tables": [pa.Table.from_pylist([row]) for row in sorted_rows],
        "together": [sorted_rows],
    }
    found = []
    for each in shapes[pushed]:
        found += spans(recognizer.push(each))
        recognizer = estero.restore(QUERY, recognizer.snapshot())
    assert found == FOUND


def test_the_command_line_knows_fields(tmp_path: Path) -> None:
    (tmp_path / "q.ceql").write_text(str(QUERY))
    events = SOURCES["JSON lines"](tmp_path)
    options = ["--type", "event.outcome", "--time", "event.at.t", "--order", "n", "--count"]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "q.ceql"), "--events", str(events), *options])
    assert (result.exit_code, result.stdout) == (0, "2\n")


@pytest.mark.spark
def test_spark_knows_fields(spark: SparkSession) -> None:
    from estero.spark import count, explain, recognize

    frame = spark.createDataFrame(EVENTS)
    rows = recognize(frame, QUERY, **LAYOUT, positions=True).orderBy("end").collect()
    assert [(row["start"], row["end"]) for row in rows] == FOUND
    assert count(frame, QUERY, **LAYOUT) == 2
    assert "on Spark" in str(explain(frame, QUERY, **LAYOUT))
