"""The commands of docs/sources.md as steps that one process runs, and what they have to find."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

import estero
from connectors.servers import PASSWORD
from estero import demo
from quick_spark import QUICK_OPTIONS
from repository import REPOSITORY

GUIDE = REPOSITORY / "docs" / "sources.md"
COMMAND = re.compile(r"^```sh\n(estero stream .*)\n```$", re.MULTILINE)
SETTING_UP = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DELTA = pyspark.__version__.startswith("4.2.")
"""Whether there is a Delta connector for the Spark that runs."""
_QUICK = [] if DELTA else QUICK_OPTIONS
SMALL = ["--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]", *_QUICK]
"""Options of a small session; that of Delta's Spark, which is older, has the settings of users."""


def set_up(directory: Path) -> None:
    """Writes the files that the commands of the guide read."""
    lines = SETTING_UP.findall(GUIDE.read_text(encoding="utf-8"))[0]
    subprocess.run([sys.executable, "-c", lines], cwd=directory, check=True)


def commands(
    jars: Path, broker: str = "localhost:9092", database: str = "localhost:5432"
) -> dict[str, list[str]]:
    """The guide's commands, by the name of their checkpoint; that without one is ``console``."""
    text = GUIDE.read_text(encoding="utf-8").replace("localhost:9092", broker)
    found = [shlex.split(each) for each in COMMAND.findall(text.replace("localhost:5432", database))]
    return {_name_of(each): [*each, "--jars", str(jars), *SMALL] for each in found}


def _name_of(command: list[str]) -> str:
    return Path(command[command.index("--checkpoint") + 1]).name if "--checkpoint" in command else "console"


def run_steps(directory: Path, wanted: dict[str, list[str]]) -> dict[str, Any]:
    """Runs steps of `connectors.commands`, in order; what each had to say, by its name."""
    process = subprocess.run(
        [sys.executable, "-m", "connectors.commands"],
        input=json.dumps(list(wanted.values())),
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=os.environ
        | {
            "PGPASSWORD": PASSWORD,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")]),
            "SPARK_SUBMIT_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        },
    )
    assert process.returncode == 0, process.stderr
    return dict(zip(wanted, json.loads(process.stdout), strict=True))


def expected() -> list[tuple[str, str, str]]:
    """The complex events of the demo as farm, first time and last time."""
    rows = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
    return told(rows.to_arrow().to_pylist())


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Complex events from any sink as farm, first time and last time."""
    return sorted((row["station"], _plain(row["start_time"]), _plain(row["end_time"])) for row in rows)


def _plain(time: object) -> str:
    """A time as Python prints it, from the ways in which sinks do."""
    return re.sub(r"(\.0+)?(Z|[+-]00(:00)?)?$", "", str(time).replace("T", " "))
