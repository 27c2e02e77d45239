"""Connectors: which ones a session is started with, and what is said where one is missing."""

from __future__ import annotations

import pytest

from estero.errors import EnvironmentProblem
from estero.spark.connectors import packages
from estero.spark.connectors.address import sink_address, source_address
from estero.spark.connectors.packages import (
    connector_problem,
    coordinates,
    problem_of_stream,
    session_settings,
)

KAFKA = source_address("kafka://h:9092/t")
DELTA = sink_address("delta:found")
FILES = source_address("parquet:events")


@pytest.mark.parametrize(
    ("scheme", "spark", "wanted"),
    [
        ("kafka", "4.2.1", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.1"),
        ("kafka", "4.3.0", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"),
        ("delta", "4.2.1", "io.delta:delta-spark_4.2_2.13:4.4.0"),
        ("postgresql", "4.2.1", "org.postgresql:postgresql:42.7.8"),
        ("console", "4.2.1", None),
    ],
)
def test_a_connector_is_that_of_the_spark_which_runs(scheme: str, spark: str, wanted: str | None) -> None:
    assert coordinates(scheme, spark) == wanted


def test_a_session_is_started_with_what_its_addresses_need() -> None:
    assert session_settings([FILES, FILES], "4.2.0") == {}
    settings = session_settings([KAFKA, DELTA], "4.2.0")
    assert settings["spark.jars.packages"] == (
        "io.delta:delta-spark_4.2_2.13:4.4.0,org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    )
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"


def test_what_the_user_names_is_taken_instead() -> None:
    assert session_settings([KAFKA], "4.2.0", packages=["a:b:1"]) == {"spark.jars.packages": "a:b:1"}
    assert session_settings([KAFKA], "4.2.0", jars=["a.jar", "b.jar"]) == {"spark.jars": "a.jar,b.jar"}


def test_a_missing_connector_is_said_with_what_to_type() -> None:
    text = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka. Make sure"
    wanted = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    assert str(connector_problem(KAFKA, text, "4.2.0")) == (
        f"This Spark session has no connector for Kafka: start it with {wanted} (on the command line "
        f"--packages {wanted}, in Python the setting spark.jars.packages), or name its files with --jars."
    )
    assert connector_problem(FILES, text, "4.2.0") is None
    assert connector_problem(KAFKA, "[PATH_NOT_FOUND] Path does not exist", "4.2.0") is None


def test_a_connector_of_another_spark_is_said_to_be_one() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: 'void org.apache.spark.sql."
        "execution.LogicalRDD.<init>(scala.collection.immutable.Seq)'\n=== Streaming Query ===\n"
        "~WriteToMicroBatchDataSourceV1 DeltaSink[found]"
    )
    assert str(problem_of_stream(text, "4.3.0")) == (
        "The connector for Delta is made for another version of Spark than 4.3.0, which runs here: take one "
        "made for it, or Spark 4.2 and io.delta:delta-spark_4.2_2.13:4.4.0."
    )
    assert problem_of_stream(text.replace("DeltaSink", "ForeachBatchSink"), "4.3.0") is None


def test_a_connector_that_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(master: str, *, config: dict[str, str]) -> None:
        raise EnvironmentProblem("Spark did not start: [unresolved dependency: a#b;1: not found]")

    monkeypatch.setattr(packages, "local_session", start)
    with pytest.raises(EnvironmentProblem) as error:
        packages.stream_session("parquet:events", packages=["a:b:1"])
    assert str(error.value) == (
        "Spark cannot fetch a:b:1: name others with --packages, or, where there is no network, files with "
        "--jars."
    )
