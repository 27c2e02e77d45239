"""The commands of docs/sources.md, with a broker and a database: each finds what the query has in-process."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyspark
import pytest

from connectors.guide import DELTA, commands, expected, run_steps, set_up, told
from connectors.servers import kafka, postgresql, run_sql, spark_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Streamed:
    """What the commands of the guide left behind, by the name of their checkpoint."""

    def __init__(self, directory: Path, database: str, said: dict[str, Any]) -> None:
        self.directory = directory
        self.database = database
        self.said = said

    def parquet(self, place: str) -> list[dict[str, Any]]:
        """The rows of the files of a directory; every file there was written by a batch that was done."""
        files = sorted(map(str, (self.directory / place).glob("part-*.parquet")))
        return list(pyarrow.dataset.dataset(files, format="parquet").to_table().to_pylist())

    def texts(self, place: str) -> list[str]:
        """The texts of the files of a directory."""
        return [each.read_text(encoding="utf-8") for each in sorted((self.directory / place).glob("part-*"))]


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streamed]:
    """All commands are run in one process; that of PostgreSQL twice, the second time after it was killed."""
    jars = spark_jars()
    directory = tmp_path_factory.mktemp("guide")
    with ExitStack() as servers, ThreadPoolExecutor() as at_once:
        started = at_once.map(servers.enter_context, [kafka(tmp_path_factory.mktemp("kafka")), postgresql()])
        set_up(directory)
        broker, database = started
        said = run_steps(directory, steps(jars, broker, database))
        yield Streamed(directory, database, said)


def steps(jars: Path, broker: str, database: str) -> dict[str, list[str]]:
    """What is to be done, in order, by name."""
    named = commands(jars, broker, database)
    sent = ["send", broker, "readings", "events"]
    # The first one starts the session; only one that knows of Delta can be used for it.
    wanted = {"delta": named.pop("delta"), "sent": sent, **named}
    wanted |= {"received": ["receive", broker, "frosts"], "headers": ["headers", broker, "frosts"]}
    return wanted | {"killed": ["forget", "state/postgresql"], "again": named["postgresql"]}


@pytest.mark.parametrize("name", ["console", "parquet", "json", "csv", "kafka", "postgresql", "again"])
def test_a_command_of_the_guide_succeeds_without_a_word(streamed: Streamed, name: str) -> None:
    assert (streamed.said[name]["exit"], streamed.said[name]["err"]) == (0, "")


def test_the_console_has_a_line_of_json_for_each_complex_event(streamed: Streamed) -> None:
    rows = [json.loads(line) for line in streamed.said["console"]["out"].splitlines()]
    assert told(rows) == expected()
    assert list(rows[0]["labels"]) == ["calm", "damp", "frost"]


def test_files_have_each_complex_event_once(streamed: Streamed) -> None:
    assert told(streamed.parquet("found")) == expected()
    lines = [json.loads(line) for text in streamed.texts("found-lines") for line in text.splitlines()]
    assert told(lines) == expected()


def test_labels_in_csv_are_json(streamed: Streamed) -> None:
    rows = [row for text in streamed.texts("found-tables") for row in csv.DictReader(text.splitlines())]
    assert told(rows) == expected()
    assert all(event["value"] < 0 for row in rows for event in json.loads(row["frost"]))


@pytest.mark.skipif(DELTA, reason=f"there is a Delta connector for Spark {pyspark.__version__}")
def test_a_delta_connector_of_another_spark_is_said_to_be_one(streamed: Streamed) -> None:
    said = streamed.said["delta"]
    assert said["exit"] == 1
    assert said["err"] == (
        f"error: The connector for Delta is made for another version of Spark than {pyspark.__version__}, "
        "which runs here: take one made for it, or Spark 4.2 and io.delta:delta-spark_4.2_2.13:4.4.0.\n"
    )


def test_messages_have_a_key_an_id_and_microseconds(streamed: Streamed) -> None:
    messages = streamed.said["received"]
    rows = [json.loads(value) for _, value in messages]
    assert told(rows) == expected()
    assert [key for key, _ in messages] == [row["station"] for row in rows]
    assert all(row["end_time"].endswith(".000000Z") for row in rows)
    ids = [row["answer_id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert streamed.said["headers"] == [[["answer_id", each]] for each in ids]


def test_rows_of_a_batch_that_came_again_are_there_once(streamed: Streamed) -> None:
    lines = run_sql(streamed.database, "SELECT station, start_time, end_time FROM frosts")
    rows = [dict(zip(("station", "start_time", "end_time"), line.split("|"), strict=True)) for line in lines]
    assert told(rows) == expected()
    noted = run_sql(streamed.database, "SELECT count(*), max(batch) >= 0 FROM estero_streams")
    assert noted == ["1|t"]


def test_labels_in_postgresql_are_jsonb(streamed: Streamed) -> None:
    cold = run_sql(streamed.database, "SELECT bool_and((frost->0->>'value')::float < 0) FROM frosts")
    assert cold == ["t"]


def test_nothing_but_the_answer_is_left_in_the_database(streamed: Streamed) -> None:
    tables = run_sql(
        streamed.database, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    )
    assert tables == ["estero_streams", "frosts"]
