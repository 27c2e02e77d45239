"""Files read by Spark: the names, types, values and errors of the in-process engine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.errors import DataError
from estero.events.inputs import open_input
from estero.spark import collect, recognize
from estero.spark.files.files import check_rows, read_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {
        "kind": ["A", "B", "B", "A"],
        "at": pa.array(
            [datetime(2025, 1, 1, 0, minute, tzinfo=UTC) for minute in range(4)], pa.timestamp("us", "UTC")
        ),
        "n": pa.array([1, None, 3, 4], pa.int64()),
        "x": [0.5, -1.0, None, 2.25],
        "text": ['say "hi", then go', "plain", None, "ñandú"],
    }
)


def both(spark: SparkSession, path: Path, **csv_options: Any) -> tuple[list[Any], list[Any]]:
    """The rows of a text file as Spark and as DuckDB read them."""
    frame = read_events(path, csv_options=csv_options)
    here = duckdb.connect().sql(str(open_input(path, csv_options).query)).to_arrow_table()
    return frame.toArrow().to_pylist(), here.to_pylist()


def test_parquet_and_arrow_files_are_read_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    pa.parquet.write_table(EVENTS, tmp_path / "events.parquet")
    encoded = EVENTS.set_column(0, "kind", EVENTS["kind"].dictionary_encode())
    with pa.ipc.new_file(str(tmp_path / "events.arrow"), encoded.schema) as writer:
        writer.write_table(encoded)
    for name in ("events.parquet", "events.arrow"):
        assert read_events(tmp_path / name).toArrow().to_pylist() == EVENTS.to_pylist()


def test_parquet_files_of_unlike_columns_keep_their_values(spark: SparkSession, tmp_path: Path) -> None:
    pa.parquet.write_table(
        pa.table({"n": pa.array([1], pa.int32()), "s": pa.nulls(1)}), tmp_path / "a.parquet"
    )
    pa.parquet.write_table(pa.table({"n": [2.5], "s": ["x"], "new": [3]}), tmp_path / "b.parquet")
    rows = read_events(tmp_path).toArrow().to_pylist()
    assert sorted(rows, key=lambda row: row["n"]) == [
        {"n": 1.0, "s": None, "new": None},
        {"n": 2.5, "s": "x", "new": 3},
    ]


def test_paths_are_names_whatever_letters_they_have(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a b%20 #é{x,y}"
    place.mkdir()
    for name in ("a", "[ab]", "a*\\?"):
        pa.parquet.write_table(EVENTS, place / f"{name}.parquet")
    assert read_events(place).count() == 3 * EVENTS.num_rows
    (place / "1 %.csv").write_text("n\n1\n")
    assert read_events(place / "1 %.csv").collect() == [(1,)]


def test_csv_files_have_the_names_types_and_values_that_duckdb_sees(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "events.csv"
    path.write_text(
        'kind;at;n;x;text\nA;2025-01-01 00:00:00;1;0.5;"say ""hi""; go"\n'
        "B;2025-01-01 00:01:30.25;;-1;plain\nB;2025-01-02;3;;ñandú\n"
    )
    there, here = both(spark, path)
    assert there == here
    assert there[0]["text"] == 'say "hi"; go'
    assert there[1]["at"] == datetime.fromisoformat("2025-01-01T00:01:30.25")


def test_a_csv_file_without_a_header_is_read_by_its_options(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "minutes.csv"
    path.write_text("A,202501010905,1\nB,202501010906,-\n")
    there, here = both(
        spark, path, names=["kind", "at", "n"], header=False, timestampformat="%Y%m%d%H%M", nullstr="-"
    )
    assert there == here
    assert [row["at"].isoformat() for row in there] == ["2025-01-01T09:05:00", "2025-01-01T09:06:00"]
    assert [row["n"] for row in there] == [1, None]


def test_json_lines_are_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"kind": "A", "n": 1}\n{"kind": "B", "n": null}\n{"n": 3, "kind": "C"}\n')
    there, here = both(spark, path)
    assert there == here


def test_a_directory_of_files_is_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    for place in range(3):
        pa.parquet.write_table(EVENTS.slice(place, 1), tmp_path / f"part-{place}.parquet")
    assert read_events(tmp_path).count() == 3


def test_a_row_that_does_not_fit_is_named_before_a_job_runs(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("kind,n\n" + "A,1\n" * 30_000 + "A,many\n")
    with pytest.raises(
        DataError, match=r"events\.csv, row 30001, column 'n': 'many' cannot be read as BIGINT"
    ):
        read_events(path, csv_options={"types": {"n": "BIGINT"}})
    path.write_text("kind,n,m\n" + "A,1,2\n" * 30_000 + "A\n")
    with pytest.raises(DataError, match=r"events\.csv, line 30002: the row has 1 columns, not 3"):
        read_events(path)


def test_a_file_that_changes_before_the_job_is_read_again_to_say_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "events.csv"
    path.write_text("kind,n,m\nA,1,2\n")
    query = estero.query("SELECT NONE WHERE A AS a")
    matches = recognize(read_events(path), query, type="kind", positions=True)
    path.write_text("kind,n,m\nA,1,2\nA\n")
    with pytest.raises(DataError, match=r"events\.csv, line 3"):
        collect(matches, events=path).count()


def test_good_files_pass_the_check(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("kind,n\nA,1\n")
    check_rows(tmp_path / "events.csv")


def test_what_spark_cannot_read_is_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("kind,at\nA,Wed 01 Jan 2025\n")
    with pytest.raises(DataError, match="Spark reads no timestamps with %a"):
        read_events(tmp_path / "events.csv", csv_options={"timestampformat": "%a %d %b %Y"})
    with pytest.raises(DataError, match="there is no such file"):
        read_events(tmp_path / "nowhere.csv")
