"""The freezing plantation on a week of real readings: by hand, in this process, on Spark, and on the page."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import estero
from repository import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.data

EXAMPLE = (REPOSITORY / "examples" / "freezing.ceql").read_text(encoding="utf-8")
Answer = tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The station, and the ids of the events marked T, HS and HH."""


def by_hand(sensors: Path, window: timedelta) -> set[Answer]:
    """What the query says, spelled out as loops over the readings of each station."""
    columns = "Sitio, Variable, Fecha, id, Valor"
    rows = (
        duckdb.connect()
        .execute(f"SELECT {columns} FROM read_csv('{sensors}', delim=';') ORDER BY Fecha, id")
        .fetchall()
    )
    stations: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for station, *reading in rows:
        if reading[0] in ("AirTemperature", "RelativeAirHumidity"):
            stations[station].append(tuple(reading))
    return {
        (station, (cold[2],), tuple(each[2] for each in rising), (last[2],))
        for station, readings in stations.items()
        for place, cold in enumerate(readings)
        if cold[0] == "AirTemperature" and cold[3] < 0
        for rising, last in _after(readings[place + 1 :], cold[1] + window)
    }


def _after(
    readings: list[tuple[Any, ...]], end: datetime
) -> Iterator[tuple[list[tuple[Any, ...]], tuple[Any, ...]]]:
    humid = [each for each in readings if each[0] == "RelativeAirHumidity" and each[1] <= end]

    def longer(
        so_far: list[tuple[Any, ...]], place: int
    ) -> Iterator[tuple[list[tuple[Any, ...]], tuple[Any, ...]]]:
        for further in range(place, len(humid)):
            each = humid[further]
            if so_far and each[3] >= 60:
                yield so_far, each
            if not so_far or each[3] > so_far[-1][3]:
                yield from longer([*so_far, each], further + 1)

    return longer([], 0)


def essence(rows: list[dict[str, Any]]) -> list[Answer]:
    return [
        (row["Sitio"], *(tuple(event["id"] for event in row[label]) for label in ("T", "HS", "HH")))
        for row in rows
    ]


def in_process(text: str, sensors: Path) -> list[Answer]:
    found = estero.query(text).run(sensors, type="Variable", time="Fecha", order=["id"])
    return essence(found.to_arrow().to_pylist())


def test_the_answers_are_those_found_by_hand(polkura: Path) -> None:
    found = in_process(EXAMPLE, polkura)
    assert len(found) == 132
    assert set(found) == by_hand(polkura, timedelta(hours=12))


def test_the_window_of_the_paper_is_too_short_for_these_stations(polkura: Path) -> None:
    assert in_process(EXAMPLE.replace("12 HOURS", "2 HOURS"), polkura) == []
    assert by_hand(polkura, timedelta(hours=2)) == set()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("window", ["12 HOURS", "2 HOURS"])
def test_spark_finds_the_same(spark: SparkSession, polkura: Path, window: str) -> None:
    from estero.spark import recognize

    text = EXAMPLE.replace("12 HOURS", window)
    df = spark.read.csv(polkura.as_uri(), sep=";", header=True, inferSchema=True)
    found = recognize(df, text, type="Variable", time="Fecha", order=["id"]).toArrow().to_pylist()
    assert sorted(essence(found)) == sorted(in_process(text, polkura))


def test_the_picture_of_the_page_is_what_the_code_draws(polkura: Path) -> None:
    path = REPOSITORY / "docs" / "pictures" / "draw.py"
    spec = importlib.util.spec_from_file_location("draw_pictures", path)
    assert spec is not None
    assert spec.loader is not None
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    drawn: str = drawing.freezing(polkura).svg()
    assert (path.parent / "freezing.svg").read_text(encoding="utf-8") == drawn


def test_the_query_of_the_page_is_that_of_the_example() -> None:
    page = (REPOSITORY / "docs" / "language.md").read_text(encoding="utf-8")
    query = EXAMPLE[EXAMPLE.index("SELECT") :]
    assert f"```sql\n{query}```" in page
