"""Streams from and to tables of Delta, on a Spark that it is published for: `make delta` brings one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pyspark
import pytest

import estero
from connectors import delta_rules
from connectors.guide import DELTA, commands, expected, run_steps, set_up, told
from connectors.servers import spark_jars
from connectors.tables import delta_log, delta_rows
from estero import demo
from repository import REPOSITORY
from spark import stopped_stream
from spark.frames import in_any_order
from spark.streams import files, timed_events, whole_answer
from waiting import FAR_OFF

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not DELTA, reason=f"no Delta is published for Spark {pyspark.__version__}: `make delta` runs these"
    ),
]


class Streamed:
    """A directory in which streams were run, and what they said."""

    def __init__(self, directory: Path, said: dict[str, Any]) -> None:
        self.directory = directory
        self.said = said

    def log(self, place: str, action: str) -> list[dict[str, Any]]:
        """What the log of a table has of an action, in order."""
        return delta_log(self.directory / place, action)

    def rows(self, place: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        return delta_rows(self.directory / place)


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Streamed:
    """A stream is killed; one process then does all else: runs commands, and goes on with that stream."""
    jars, directory = spark_jars(), tmp_path_factory.mktemp("delta")
    files(timed_events(), directory / "stopped" / "files", [90])
    start = [sys.executable, stopped_stream.__file__, str(directory / "stopped"), "delta", str(jars)]
    killed = subprocess.run(start, capture_output=True, timeout=FAR_OFF, check=False)
    assert (directory / "stopped" / "killed").exists(), killed.stderr.decode()
    assert killed.returncode != 0
    set_up(directory)
    events = demo.events()
    for name, part in (("early", events.slice(0, 1000)), ("late", events.slice(1000))):
        (directory / name).mkdir()
        pa.parquet.write_table(part, directory / name / "part.parquet")
    return Streamed(directory, run_steps(directory, steps(jars)))


def steps(jars: Path) -> dict[str, list[str]]:
    """What is to be done, in order, by name; what is read as a table is added to it in two parts."""
    guide = [*commands(jars)["delta"], "--conf", "spark.databricks.delta.snapshotPartitions=2"]
    changes = {
        "parquet:events": "delta:readings?maxFilesPerTrigger=1",
        "delta:found-table": "delta:found",
        "state/delta": "state/found",
    }
    from_table = [changes.get(each, each) for each in guide]
    return {
        "guide": guide,
        "early": ["table", "early", "readings"],
        "first": from_table,
        "late": ["table", "late", "readings"],
        "second": from_table,
        "forgotten": ["forget", "state/found"],
        "again": from_table,
        "resumed": ["resume", "stopped", "delta"],
    }


@pytest.mark.parametrize("name", ["guide", "first", "second", "again"])
def test_a_command_succeeds_without_a_word(streamed: Streamed, name: str) -> None:
    assert streamed.said[name] == {"exit": 0, "out": "", "err": ""}


def test_a_table_has_each_complex_event_once(streamed: Streamed) -> None:
    assert told(streamed.rows("found-table")) == expected()


def test_a_table_that_grows_is_read_on_and_a_batch_that_comes_again_is_there_once(streamed: Streamed) -> None:
    assert told(streamed.rows("found")) == expected()
    batches = [each["version"] for each in streamed.log("found", "txn")]
    assert batches == sorted(set(batches))
    assert int(streamed.said["forgotten"]) == batches[-1]


def test_killed_in_the_middle_of_a_micro_batch_the_table_is_that_of_one_run(streamed: Streamed) -> None:
    assert in_any_order(streamed.rows("stopped/answers/keys")) == whole_answer(timed_events())


def test_rules_in_a_table_change_while_the_stream_runs_and_a_batch_that_comes_again_has_those_that_it_had(
    tmp_path: Path,
) -> None:
    start = [sys.executable, "-m", "connectors.delta_rules", str(tmp_path), str(spark_jars())]
    path = os.pathsep.join([str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        start, capture_output=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    found = [tuple(row) for row in json.loads(ran.stdout)]
    assert sorted(found) == sorted(delta_rules.right())
    assert len({version for _, version in found}) == len(delta_rules.RULES)
    assert list(tmp_path.glob("rules/_delta_log/*.checkpoint.parquet"))
    rules = estero.rule_table(tmp_path / "rules").rules()
    assert {name: str(rules[name]) for name in rules} == delta_rules.RULES[-1]
