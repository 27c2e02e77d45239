"""Rules on a stream, while they change and processes are killed: the rows of one process, each once.

``python -m spark.killed_rules`` kills more of them, and executors, and writes to all sinks.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.killed_rules import Soak, check, files_target
from spark.rule_streams import RuleStreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_rows_are_those_of_one_process_whatever_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """The last victim is the driver; this process goes on in its place, which starts Java once less."""
    sink = files_target(tmp_path / "soak")
    streams = RuleStreams(tmp_path / "soak", "local[2,20]", {"files": sink.address})
    soak = Soak(streams, random.Random(5))
    with soak.killing(["worker", "worker", "driver"]):
        pass
    (streams.place / "done").touch()
    streams.run(spark)
    assert soak.killed == {"worker": 2, "driver": 1}
    assert check(streams, {"files": sink})
