"""Executors that are processes of their own: what they find, and what happens when one dies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from repository import REPOSITORY
from spark.cluster import QUICK_JAVA
from waiting import FAR_OFF

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program `cluster.py` found."""
    program = Path(__file__).with_name("cluster.py")
    home = tmp_path_factory.mktemp("spark-home")
    done = subprocess.run(
        [sys.executable, program, home], capture_output=True, text=True, timeout=FAR_OFF, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("query", ["global", "a stream whose executor was killed"])
def test_executors_find_what_one_process_finds(cluster: dict[str, Any], query: str) -> None:
    alone, shared = cluster[query]
    assert alone
    assert shared == alone


def test_an_executor_that_is_killed_in_the_middle_of_a_job_changes_nothing(cluster: dict[str, Any]) -> None:
    alone, shared = cluster["after an executor was killed"]
    assert cluster["killed"]
    assert shared == alone
    assert cluster["killed on a stream"]
    assert cluster["executors"] == 4


def test_a_job_is_submitted_with_the_package_in_a_folder(tmp_path: Path) -> None:
    rows = {"kind": ["A", "B", "A", "B"], "ts": [1, 2, 5, 90]}
    pa.parquet.write_table(pa.table(rows), tmp_path / "events.parquet")
    (tmp_path / "query.ceql").write_text("SELECT a, b WHERE A AS a ; B AS b WITHIN 10 [ts]")
    done = _submitted(
        *("--events", (tmp_path / "events.parquet").as_uri(), "--query", tmp_path / "query.ceql"),
        *("--type", "kind", "--time", "ts", "--out", (tmp_path / "matches").as_uri()),
        package=_copied(tmp_path / "packages"),
    )
    assert done.returncode == 0, done.stderr
    found = pa.parquet.read_table(tmp_path / "matches", columns=["start_time", "end_time"])
    assert found.to_pylist() == [{"start_time": 1, "end_time": 2}]


def _submitted(*words: object, package: Path) -> subprocess.CompletedProcess[str]:
    """The example job, run by spark-submit; Estero is in the folder `package`."""
    import pyspark

    from estero.spark.sessions.java import find_java_home

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(package),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": QUICK_JAVA,
    }
    command = [submit, *options, REPOSITORY / "examples" / "submit.py", *words]
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=FAR_OFF,
        check=False,
        cwd=package.parent,
        env=environment,
    )


def _copied(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(estero.__file__).parent, folder / "estero", ignore=ignored)
    return folder
