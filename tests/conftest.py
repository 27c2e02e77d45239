"""What all tests share: how Hypothesis draws, and where the real data is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import HealthCheck, settings

from engines import Engine, InProcess, Pushed, PushedOneByOne, Restored, SparkBatch, SparkStream
from estero.language.check import set_predicates
from quick_spark import QUICK_SPARK
from repository import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Derandomised: a run on a busy machine and its repetition draw the same examples. No database, so a
# clone is left as it was; failing examples become named cases instead. A health check on the speed of
# drawing would fail on a slow machine without saying anything of the code.
_COMMON = settings(
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", _COMMON, max_examples=10)
settings.register_profile("default", _COMMON, max_examples=12)
settings.register_profile("thorough", _COMMON, max_examples=1000)
settings.load_profile("default")

# Spark's launcher reads it, in programs that tests start as well. Java would compile once more, and better,
# what runs for seconds.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")


def data_directory() -> Path:
    """Where the real data is: ``$ESTERO_DATA``, else ``../shared/data`` beside the repository."""
    return Path(os.environ.get("ESTERO_DATA") or REPOSITORY.parent / "shared" / "data")


def _real(name: str) -> Path:
    path = data_directory() / name
    if not path.is_file():
        pytest.skip(f"the real data is not here: {path} (set ESTERO_DATA to its directory)")
    return path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what asks for the session, and puts files with most tests on Spark first.

    So no process is left with a long one when others are done.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    many = Counter(item.path for item in items if item.get_closest_marker("spark"))
    items.sort(key=lambda item: -many[item.path])


@pytest.fixture(autouse=True)
def _own_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates that a test registers are forgotten after it."""
    monkeypatch.setattr(set_predicates, "_REGISTERED", dict(set_predicates._REGISTERED))


@pytest.fixture(autouse=True, scope="module")
def _own_default_connection() -> None:
    """A module's ``duckdb.sql`` has a cursor that no other module left with an unread result."""
    duckdb.set_default_connection(duckdb.default_connection().cursor())


@pytest.fixture(scope="session")
def polkura() -> Path:
    """A week of sensor readings: ``Variable;Fecha;id;Sitio;Valor``, sorted by time."""
    return _real("polkura_sensors.csv")


@pytest.fixture(scope="session")
def nasdaq() -> Path:
    """A day of minute bars without a header: ticker, minute, open, high, low, close, volume."""
    return _real("nasdaq_minutes.csv")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local session for the whole run: it takes seconds to start."""
    from estero.spark import local_session

    session = local_session("local[2]", shuffle_partitions=2, config=QUICK_SPARK)
    yield session
    session.stop()


_LOCAL = ["in process", "pushed", "one by one", "restored"]
_ON_SPARK = {f"Spark, {tasks} tasks": tasks for tasks in (1, 7)}
_ONE_TASK, _TASKS = (pytest.param(name, marks=pytest.mark.spark) for name in _ON_SPARK)
_STREAM = pytest.param("stream on Spark", marks=[pytest.mark.spark, pytest.mark.slow])


@pytest.fixture(params=[*_LOCAL, _ONE_TASK, _TASKS, _STREAM])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Each engine in turn."""
    return _engine(request, tmp_path)


@pytest.fixture(params=[*_LOCAL, _TASKS])
def bounded_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Each engine that evaluates conditions in a way of its own: Spark does so alike in all of its jobs."""
    return _engine(request, tmp_path)


@pytest.fixture(params=_LOCAL)
def local_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Each engine of this process in turn: for what Spark does not have."""
    return _engine(request, tmp_path)


def _engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    match request.param:
        case "in process":
            return InProcess()
        case "pushed":
            return Pushed()
        case "one by one":
            return PushedOneByOne()
        case "restored":
            return Restored()
        case "stream on Spark":
            return SparkStream(request.getfixturevalue("spark"), tmp_path)
        case name:
            return SparkBatch(request.getfixturevalue("spark"), _ON_SPARK[name])
