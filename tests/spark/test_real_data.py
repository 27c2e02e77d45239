"""The freezing plantation, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import estero
from estero.spark import recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.data, pytest.mark.slow]

FREEZING = """
    SELECT T, HH WHERE AirTemperature AS T ; RelativeAirHumidity+ AS HS ; RelativeAirHumidity AS HH
    FILTER T[Valor < 0] AND HH[Valor >= 60]
    PARTITION BY [Sitio] WITHIN 8 HOURS
"""


def test_freezing_plantations_are_those_of_the_in_process_engine(spark: SparkSession, polkura: Path) -> None:
    df = spark.read.csv(polkura.as_uri(), sep=";", header=True, inferSchema=True)
    found = recognize(df, FREEZING, type="Variable", time="Fecha").toArrow().to_pylist()
    expected = estero.query(FREEZING).run(str(polkura), type="Variable", time="Fecha").to_arrow().to_pylist()
    assert len(found) > 0
    assert sorted(map(essence, found)) == sorted(map(essence, expected))


def essence(row: dict[str, Any]) -> tuple[str, list[int], list[int]]:
    return row["Sitio"], [event["id"] for event in row["T"]], [event["id"] for event in row["HH"]]


def test_without_partitions_positions_are_those_of_the_in_process_engine(
    spark: SparkSession, polkura: Path
) -> None:
    query = FREEZING.replace("PARTITION BY [Sitio] WITHIN 8 HOURS", "WITHIN 60 EVENTS")
    df = spark.read.csv(polkura.as_uri(), sep=";", header=True, inferSchema=True)
    found = recognize(df, query, type="Variable", time="Fecha", positions=True)
    expected = estero.query(query).run(str(polkura), type="Variable", time="Fecha")
    places = sorted((row.start, row.end) for row in found.select("start", "end").collect())
    assert len(places) > 0
    assert places == sorted((each.start, each.end) for each in expected)
