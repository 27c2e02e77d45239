"""The commands of docs/sources.md, with a broker and a database: each finds what the query has in-process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

import estero
from conftest import REPOSITORY
from connectors.servers import PASSWORD, kafka, postgresql, run_sql, spark_jars
from estero import demo

GUIDE = REPOSITORY / "docs" / "sources.md"
COMMAND = re.compile(r"^```sh\n(estero stream .*)\n```$", re.MULTILINE)
SETTING_UP = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SMALL = ["--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Streamed:
    """What the commands of the guide left behind, by the name of their checkpoint."""

    def __init__(self, directory: Path, database: str, said: dict[str, Any]) -> None:
        self.directory = directory
        self.database = database
        self.said = said


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streamed]:
    """All commands are run in one process; that of PostgreSQL twice, the second time after it was killed."""
    jars = spark_jars()
    directory = tmp_path_factory.mktemp("guide")
    set_up = SETTING_UP.findall(GUIDE.read_text(encoding="utf-8"))[0]
    subprocess.run([sys.executable, "-c", set_up], cwd=directory, check=True)
    with kafka(tmp_path_factory.mktemp("kafka")) as broker, postgresql() as database:
        said = run_steps(directory, steps(jars, broker, database))
        yield Streamed(directory, database, said)


def steps(jars: Path, broker: str, database: str) -> dict[str, list[str]]:
    """What is to be done, in order, by name."""
    text = GUIDE.read_text(encoding="utf-8").replace("localhost:9092", broker)
    commands = [shlex.split(each) for each in COMMAND.findall(text.replace("localhost:5432", database))]
    named = {name_of(each): [*each, "--jars", str(jars), *SMALL] for each in commands}
    first, *others = named  # starts the session, which has all connectors
    return {
        first: named[first],
        "sent": ["send", broker, "readings", "events"],
        **{name: named[name] for name in others},
        "received": ["receive", broker, "frosts"],
        "killed": ["forget", "state/postgresql"],
        "again": named["postgresql"],
    }


def name_of(command: list[str]) -> str:
    return Path(command[command.index("--checkpoint") + 1]).name if "--checkpoint" in command else "console"


def run_steps(directory: Path, wanted: dict[str, list[str]]) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "connectors.commands"],
        input=json.dumps(list(wanted.values())),
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=os.environ | {"PGPASSWORD": PASSWORD, "PYTHONPATH": str(REPOSITORY / "tests")},
    )
    assert process.returncode == 0, process.stderr
    return dict(zip(wanted, json.loads(process.stdout), strict=True))


def expected() -> list[tuple[str, str, str]]:
    """The complex events of the demo as farm, first time and last time."""
    rows = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
    return told(rows.to_arrow().to_pylist())


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((row["station"], _plain(row["start_time"]), _plain(row["end_time"])) for row in rows)


def _plain(time: object) -> str:
    """A time as Python prints it, from the ways in which sinks do."""
    return re.sub(r"(\.0+)?(Z|[+-]00(:00)?)?$", "", str(time).replace("T", " "))


@pytest.mark.parametrize("name", ["console", "parquet", "json", "csv", "kafka", "postgresql", "again"])
def test_a_command_of_the_guide_succeeds_without_a_word(streamed: Streamed, name: str) -> None:
    assert (streamed.said[name]["exit"], streamed.said[name]["err"]) == (0, "")


def test_the_console_has_a_line_of_json_for_each_complex_event(streamed: Streamed) -> None:
    rows = [json.loads(line) for line in streamed.said["console"]["out"].splitlines()]
    assert told(rows) == expected()
    assert list(rows[0]["labels"]) == ["calm", "damp", "frost"]


def test_files_have_each_complex_event_once(streamed: Streamed) -> None:
    for place, form in (("found", "parquet"), ("found-lines", "json"), ("found-tables", "csv")):
        files = sorted((streamed.directory / place).glob("part-*"))
        full = [str(file) for file in files if file.stat().st_size]
        rows = pyarrow.dataset.dataset(full, format=form).to_table().to_pylist()
        assert told(rows) == expected(), place


def test_labels_in_csv_are_json(streamed: Streamed) -> None:
    files = sorted((streamed.directory / "found-tables").glob("part-*"))
    table = pyarrow.dataset.dataset([str(each) for each in files], format="csv").to_table()
    frosts = [json.loads(each) for each in table["frost"].to_pylist()]
    assert all(event["value"] < 0 for events in frosts for event in events)


def test_messages_have_a_key_and_microseconds(streamed: Streamed) -> None:
    messages = streamed.said["received"]
    rows = [json.loads(value) for _, value in messages]
    assert told(rows) == expected()
    assert [key for key, _ in messages] == [row["station"] for row in rows]
    assert all(row["end_time"].endswith(".000000Z") for row in rows)


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
