"""The one local session: what it is set to, and what happens where it cannot start."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from estero.errors import EnvironmentProblem
from estero.spark.sessions import session as sessions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_session_reads_times_as_utc_and_opens_no_web_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable


def test_local_workers_look_for_modules_in_the_current_directory_only_if_this_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [each for each in sys.path if each not in ("", str(tmp_path))]
    monkeypatch.setattr(sys, "path", paths)
    assert sessions._settings("local[*]", "a", 2, "")["spark.executorEnv.PYTHONSAFEPATH"] == "1"
    assert "spark.executorEnv.PYTHONSAFEPATH" not in sessions._settings("spark://host:7077", "a", 2, "")
    for entry in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [entry, *paths])
        assert "spark.executorEnv.PYTHONSAFEPATH" not in sessions._settings("local[*]", "a", 2, "")


def test_a_session_that_runs_is_returned(spark: SparkSession) -> None:
    assert sessions.local_session("local[7]") is spark


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTERO_A", "1")
    monkeypatch.delenv("ESTERO_B", raising=False)
    with sessions._environment(ESTERO_A="2", ESTERO_B="3"):
        assert (os.environ["ESTERO_A"], os.environ["ESTERO_B"]) == ("2", "3")
    assert os.environ["ESTERO_A"] == "1"
    assert "ESTERO_B" not in os.environ


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves a pipe to the Java that ended
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_where_spark_does_not_start_its_last_words_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import SparkConf

    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'no memory for the heap' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"(?s)Spark did not start: .*no memory for the heap"):
        sessions._launch(SparkConf(loadDefaults=False), tmp_path / "log")


def test_an_interrupt_while_java_starts_waits_until_it_can_be_ended() -> None:
    steps: list[str] = []

    def start() -> None:
        with sessions._interrupts_later():
            signal.raise_signal(signal.SIGINT)
            steps.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["started"]
