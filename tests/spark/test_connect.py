"""Spark Connect sessions: batches, counts and the table function find what they find elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import estero
from spark.on_connect import HOW, ROW_PATTERN, ROWS, TASKS
from waiting import FAR_OFF

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_session_of_spark_connect_finds_the_same() -> None:
    program = Path(__file__).with_name("on_connect.py")
    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=FAR_OFF, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    table = pa.Table.from_pylist([dict(zip(("type", "t", "k"), row, strict=True)) for row in ROWS])
    expected = [estero.query(query).run(table, **HOW).count() for query, _ in TASKS]
    assert found["rows"] == expected
    assert found["counts"] == expected[::2]
    assert found["sql"] == found["collected"] == expected[1]
    assert found["matched"] == estero.sql(ROW_PATTERN, events=table).to_arrow().to_pylist()
    assert found["said"] == "the time of an event is NULL"
