"""Files of several formats, and directories that name columns, read by Spark as in process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.spark import read_events, recognize
from events.file_kinds import KINDS, LAYOUT, partitioned, several_files
from spark.frames import in_any_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def same(query: str, events: Any) -> bool:
    """Whether Spark finds in these files what one process finds, with its positions."""
    found = recognize(read_events(events), query, positions=True, **LAYOUT).toArrow()
    here = estero.query(query).run(events, **LAYOUT).to_arrow()
    assert here.num_rows
    return in_any_order(found.select(here.column_names).to_pylist()) == in_any_order(here.to_pylist())


def test_files_of_several_formats_are_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    assert same("SELECT * WHERE A AS x ; B AS y", several_files(tmp_path))


@pytest.mark.parametrize("form", KINDS)
def test_directories_name_columns(spark: SparkSession, tmp_path: Path, form: str) -> None:
    place = str(partitioned(tmp_path, form))
    assert same("SELECT x, y WHERE A AS x ; B AS y FILTER x[year > 2023] PARTITION BY [station]", place)
    frame = read_events(place)
    assert {name: str(kind) for name, kind in frame.dtypes[-3:]} == {
        "year": "bigint",
        "day": "date",
        "station": "string",
    }


@pytest.mark.parametrize("form", KINDS)
def test_a_directory_may_be_the_type(spark: SparkSession, tmp_path: Path, form: str) -> None:
    place = partitioned(tmp_path, form)
    matches = recognize(read_events(place), "SELECT x, y WHERE n AS x ; `s t` AS y", type="station", time="t")
    here = estero.query("SELECT x, y WHERE n AS x ; `s t` AS y").run(str(place), type="station", time="t")
    assert matches.count() == here.count() > 0


def test_nanoseconds_beside_directories(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "day=2024-02-29").mkdir()
    times = pa.array([1_000, 2_000], pa.timestamp("ns"))
    pa.parquet.write_table(pa.table({"n": [1, 2], "at": times}), tmp_path / "day=2024-02-29" / "a.parquet")
    rows = read_events(tmp_path).toArrow()
    assert rows.column_names == ["n", "at", "day"]
    assert str(rows.column("day").type) == "date32[day]"


@pytest.mark.parametrize(
    ("wrong", "text"), [(5, "5"), (["a.csv", 5], "a list with 5 in it"), ({"A": "a.csv"}, "a dict")]
)
def test_what_is_no_path_is_said(wrong: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        read_events(wrong)
    assert str(caught.value) == (
        f"read_events() takes a string or a path or a list of strings or paths as path, not {text}"
    )


def test_a_list_of_no_path_is_said(spark: SparkSession) -> None:
    with pytest.raises(estero.DataError, match="the list of paths is empty"):
        read_events([])
