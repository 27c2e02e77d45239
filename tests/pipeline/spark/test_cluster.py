"""Executors that are processes of their own: what they find and compile, and what happens when one dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program `cluster.py` found."""
    program = Path(__file__).with_name("cluster.py")
    home = tmp_path_factory.mktemp("spark-home")
    done = subprocess.run(
        [sys.executable, program, home], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("query", ["keyed", "global"])
def test_executors_find_what_one_process_finds(cluster: dict[str, Any], query: str) -> None:
    alone, shared = cluster[query]
    assert alone
    assert shared == alone


def test_an_executor_that_is_killed_in_the_middle_of_a_job_changes_nothing(cluster: dict[str, Any]) -> None:
    alone, shared = cluster["after an executor was killed"]
    assert cluster["killed"]
    assert shared == alone
    assert cluster["executors"] == 3


def test_kernels_are_compiled_by_one_worker(cluster: dict[str, Any]) -> None:
    assert cluster["compilations"] == 1
