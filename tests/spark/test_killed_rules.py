"""Rules on a stream, while they change and processes are killed: the rows of one process, each once.

``python -m spark.killed_rules`` kills more of them, for as long as one likes, and executors, too.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spark.killed_rules import Soak, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_rows_are_those_of_one_process_whatever_is_killed(tmp_path: Path) -> None:
    soak = Soak(tmp_path / "soak", "local[2,20]", random.Random(5))
    soak.run({"worker": 3, "driver": 1}, lots=8)
    assert soak.killed == {"worker": 3, "driver": 1}
    assert all(check(soak.place).values())
