"""Answers go where they are sent, whatever is there, and nothing that was there is lost."""

from __future__ import annotations

import os
import signal
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
from estero.events.database import connect
from estero.events.reading_errors import interruptible, reading
from estero.local.note import check_note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ["parquet", "arrow", "csv", "jsonl"]
EVENTS = pa.table({"kind": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
PAIRS = "SELECT a, b WHERE A AS a ; B AS b"
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}


class Written(Protocol):
    """What both engines find."""

    def write(self, target: str | Path | BinaryIO, *, format: str | None = None) -> int: ...


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
    assert (done.returncode, done.stderr) == (0, "3 complex events in /dev/stdout\n")
    lines = out.read_bytes().splitlines()
    assert (lines[0], len(lines), lines[-1]) == (b"before", 5, b"after")


def test_a_device_stays_one(program: Path) -> None:
    assert run(program, "--out", "/dev/null", "--format", "parquet").returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("options", [[], ["--format", "jsonl"]])
def test_a_closed_standard_output_is_said(program: Path, options: list[str]) -> None:
    done = run(program, *options, preexec_fn=lambda: os.close(1), stdout=None)
    assert done.returncode == 1
    assert (
        "error: standard output is closed: nothing can be shown; --out FILE writes to a file\n" in done.stderr
    )


def test_a_file_is_written_without_standard_streams(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = run(program, "--out", out, preexec_fn=lambda: os.closerange(0, 3), stdout=None)
    assert done.returncode == 0
    assert len(out.read_text().splitlines()) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_standard_output_is_one_error(program: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(program, "--format", "jsonl", stdout=full)
    assert (done.returncode, done.stderr) == (1, "error: [Errno 28] No space left on device\n")


FORKED = """
import os, sys, estero, pyarrow as pa
events = pa.table({"kind": ["A", "B"] * 500_000, "n": range(1_000_000)})
answer = estero.query(sys.argv[1]).run(events, type="kind")
begun = iter(answer)
next(begun)
child = os.fork()
if child == 0:
    try:
        list(begun)
    except estero.EsteroError as error:
        print(error)
    print(answer.count(), len(list(answer.limit(5))), flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(len(list(begun)) + 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
@pytest.mark.parametrize("condition", ["a.n >= 0", "a.n * b.n >= 0"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_forked_process_reads_anew_what_was_being_read(
    condition: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTERO_THREADS", threads)
    query = f"SELECT a, b WHERE A AS a ; B AS b FILTER {condition} WITHIN 2 EVENTS"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, query], stdout=subprocess.PIPE, text=True, check=True
    )
    refused, anew, went_on = done.stdout.splitlines()
    assert refused == (
        "the process was forked while these complex events were being read, and the new process cannot "
        "read on: ask the answer again there, or read it after the fork"
    )
    assert (anew, went_on) == ("500000 5", "500000")


def test_ctrl_c_inside_duckdb_is_ctrl_c() -> None:
    long = "SELECT count(*) FROM range(20000) a, range(20000) b WHERE a.range * b.range % 7 = 3"
    connection = connect()
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), interruptible():
        connection.sql(long).fetchall()


def test_an_error_that_speaks_of_interruptions_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "interrupted.parquet"
    path.write_bytes(b"Query interrupted")
    with pytest.raises(estero.DataError, match=r"interrupted\.parquet"):
        estero.query(PAIRS).run(path, type="kind").count()
    with pytest.raises(estero.DataError, match="the feed was interrupted"), reading():
        raise RuntimeError("the feed was interrupted")
    with pytest.raises(RuntimeError, match="the feed was interrupted"), interruptible():
        raise RuntimeError("the feed was interrupted")


@pytest.mark.spark
def test_an_error_of_spark_that_speaks_of_cancelling_is_an_error(spark: SparkSession) -> None:
    from estero.spark.failures import jobs

    said = "cancelled as part of cancellation of all jobs"
    with pytest.raises(estero.DataError, match=said), jobs():
        spark.sql(f"SELECT raise_error('{said}')").collect()


def test_a_note_of_a_checkpoint_that_is_damaged_is_said(tmp_path: Path) -> None:
    (tmp_path / "estero.json").write_text('{"query": ')
    with pytest.raises(estero.DataError, match="this note about the checkpoint cannot be read") as error:
        check_note(tmp_path, {"query": PAIRS})
    assert "delete it: it will be written again" in str(error.value)


def test_a_picture_into_a_missing_directory_is_said(tmp_path: Path) -> None:
    picture = estero.query(PAIRS).run(EVENTS, **LAYOUT).plot()
    with pytest.raises(FileNotFoundError, match=r"^cannot write .*: there is no directory .*missing$"):
        picture.save(tmp_path / "missing" / "x.svg")
    with pytest.raises(
        ValueError, match=r"x does not say its format: end it in \.svg, \.png or \.pdf, or give"
    ):
        picture.save(tmp_path / "x")
    with pytest.raises(ValueError, match="a picture cannot be drawn as 'docx': use one of "):
        picture.save(tmp_path / "x.docx")
    with pytest.raises(ValueError, match="an open file does not say its format: give format="):
        picture.save(BytesIO())
    assert list(tmp_path.iterdir()) == []
