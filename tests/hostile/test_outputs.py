"""Answers go where they are sent, whatever is there, and nothing that was there is lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ["parquet", "arrow", "csv", "jsonl"]
EVENTS = pa.table({"kind": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
PAIRS = "SELECT a, b WHERE A AS a ; B AS b"
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}


class Written(Protocol):
    """What both engines find."""

    def write(self, target: str | Path | BinaryIO, *, format: str | None = None) -> None: ...


Find = Callable[[], Written]


@pytest.fixture(params=["in process", pytest.param("spark", marks=pytest.mark.spark)])
def find(request: pytest.FixtureRequest) -> Find:
    """Finds the three pairs on one of the engines."""
    if request.param == "in process":
        return lambda: estero.query(PAIRS).run(EVENTS, **LAYOUT)
    from estero.spark import collect, recognize

    spark: SparkSession = request.getfixturevalue("spark")
    events = spark.createDataFrame(EVENTS.to_pandas())
    return lambda: collect(recognize(events, PAIRS, **LAYOUT))


@contextmanager
def drained(pipe: Path) -> Iterator[list[bytes]]:
    """What comes out of a new named pipe while the block runs."""
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    yield read
    reader.join()


def rows(content: bytes, format: str) -> int:
    if format == "parquet":
        return int(pyarrow.parquet.read_table(BytesIO(content)).num_rows)
    if format == "arrow":
        return int(pa.ipc.open_file(content).read_all().num_rows)
    return len(content.splitlines()) - (format == "csv")


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_goes_through_a_pipe(find: Find, tmp_path: Path, format: str) -> None:
    pipe = tmp_path / f"pipe.{format}"
    with drained(pipe) as read:
        find().write(pipe)
    assert rows(read[0], format) == 3
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_linked_file_of_mode_600_stays_one(find: Find, tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    find().write(link)
    assert link.is_symlink()
    assert rows(target.read_bytes(), "csv") == 3
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("format", FORMATS)
def test_an_open_pipe_takes_every_format(format: str) -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as read, os.fdopen(into, "wb") as write:
        estero.query(PAIRS).run(EVENTS, **LAYOUT).write(write, format=format)
        write.close()
        assert rows(read.read(), format) == 3


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with events and queries for the command line."""
    directory = tmp_path_factory.mktemp("program")
    pyarrow.parquet.write_table(EVENTS, directory / "events.parquet")
    (directory / "pairs.ceql").write_text(PAIRS)
    return directory


def command(program: Path, *options: str | Path, query: str = "pairs") -> list[str]:
    arguments = ["run", program / f"{query}.ceql", "--events", program / "events.parquet", "--type", "kind"]
    arguments += ["--time", "t", "--engine", "duckdb", *options]
    return [sys.executable, "-c", "from estero.cli import main; main()", *map(str, arguments)]


def run(program: Path, *options: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    settings.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        command(program, *options), stderr=subprocess.PIPE, text=True, check=False, **settings
    )


def test_standard_output_by_its_path_is_written_to(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("ab") as appended:
        appended.write(b"before\n")
        appended.flush()
        done = run(program, "--out", "/dev/stdout", "--format", "jsonl", stdout=appended)
        appended.write(b"after\n")
    assert (done.returncode, done.stderr) == (0, "")
    lines = out.read_bytes().splitlines()
    assert (lines[0], len(lines), lines[-1]) == (b"before", 5, b"after")


def test_a_device_stays_one(program: Path) -> None:
    assert run(program, "--out", "/dev/null", "--format", "parquet").returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
