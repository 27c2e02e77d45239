"""`estero stream`: wrong usage, and a stream that is watched and stopped."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from estero import DataError, demo
from estero.cli.commands import app
from estero.local.note import check_note
from quick_spark import QUICK_OPTIONS
from waiting import FAR_OFF

LAYOUT = ["--type", "kind", "--time", "time", "--order", "id"]
SMALL = ["--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]", *QUICK_OPTIONS]


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: the stream and the query of the demo."""
    (tmp_path / "events").mkdir()
    pyarrow.parquet.write_table(demo.events(), tmp_path / "events" / "night.parquet")
    (tmp_path / "frost.ceql").write_text(demo.QUERY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stream(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["stream", "frost.ceql", *arguments])


def test_the_help_says_what_addresses_there_are() -> None:
    result = CliRunner().invoke(app, ["stream", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for text in (
        "parquet:DIR",
        "kafka://HOST:PORT/TOPIC",
        "postgresql://USER@HOST:PORT/DATABASE/TABLE",
        "--schema",
    ):
        assert text in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Invalid value for --from: stream needs to know where events come from"),
        (
            ["--from", "mqtt:x"],
            "Invalid value for --from: there is no source mqtt:: the sources are parquet:DIR",
        ),
        (
            ["--from", "csv:x", "--to", "y"],
            "Invalid value for --to: 'y' does not say what kind of sink it is",
        ),
        (
            ["--from", "csv:x", "--trigger", "soon"],
            "'soon' is not a trigger: write available-now, or an interval",
        ),
        (
            ["--from", "csv:x", "--to", "csv:y"],
            "Invalid value for --checkpoint: a stream needs a directory for what it has read and found",
        ),
        (
            ["--from", "csv:x"],
            "Invalid value for --time: events of a stream are sorted by their time: name its column",
        ),
        (["--from", "csv:x", "--conf", "a"], "Invalid value for --conf: 'a' is not KEY=VALUE"),
        (
            ["--from", "csv:x", "--jars", "connectors"],
            "Invalid value for --jars: connectors: there is no such .jar file",
        ),
    ],
)
def test_wrong_usage_is_refused_with_exit_code_2(night: Path, arguments: list[str], message: str) -> None:
    result = stream(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_wrong_query_is_refused_before_anything_starts(night: Path) -> None:
    (night / "frost.ceql").write_text("SELECT * WHERE Wind ; ; Humidity")
    result = stream("--from", "parquet:events", *LAYOUT)
    assert result.exit_code == 2
    assert "error: there is no part between ; and ;" in result.stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query": "SELECT * WHERE Wind"}, "this checkpoint has another query: SELECT * WHERE Wind"),
        ({"source": "json:lines"}, "this checkpoint has another source: json:lines"),
        ({"sink": "csv:found"}, "this checkpoint has another sink: csv:found"),
        ({"kind of rows": "events"}, "this checkpoint has another kind of rows: events"),
    ],
)
def test_a_checkpoint_goes_on_as_what_it_was(night: Path, changed: dict[str, str], message: str) -> None:
    import estero

    note = {"query": str(estero.query(demo.QUERY)), "source": "parquet:events", "sink": "json:found"}
    (night / "state").mkdir()
    (night / "state" / "estero.json").write_text(json.dumps(note | changed))
    result = stream("--from", "parquet:events", "--to", "json:found", "--checkpoint", "state", *LAYOUT)
    assert result.exit_code == 1
    hint = "a new query starts with a new checkpoint, and reads everything from the beginning"
    assert result.stderr == f"error: state: {message}\n  hint: {hint}\n"


def test_an_older_note_is_of_complex_events(night: Path) -> None:
    check_note(night, note := {"kind of rows": "matches"})
    (night / "estero.json").write_text("{}")
    check_note(night, note)
    with pytest.raises(DataError, match="this checkpoint has another kind of rows: matches"):
        check_note(night, {"kind of rows": "events"})


@pytest.mark.spark
def test_rows_of_events_are_written_as_they_come(
    spark: object, night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from estero.spark.connectors import sinks

    lines = io.BytesIO()
    monkeypatch.setattr(sinks, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=lines)))
    query = "SELECT calm[value], frost[value] WHERE Wind AS calm ; Temperature AS frost"
    (night / "frost.ceql").write_text(
        f"{query} FILTER frost[value < 0] PARTITION BY [station] WITHIN 1 MINUTE"
    )
    result = stream("--from", "parquet:events", "--trigger", "available-now", "--rows", "events", *LAYOUT)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert rows
    assert {row["label"] for row in rows} == {"calm", "frost"}
    assert list(rows[0]) == ["match", "label", "station", "value"]
    assert len({row["match"] for row in rows}) * 2 == len(rows)


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_stream_whose_line_a_terminal_shows(night: Path) -> None:
    terminal, side = pty.openpty()
    places = ["--from", "parquet:events", "--to", "json:found", "--checkpoint", "state"]
    arguments = ["stream", "frost.ceql", *places, *LAYOUT, *SMALL]
    process = subprocess.Popen(
        [sys.executable, "-c", "from estero.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=side,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(side)
    said = b""
    while b"45 complex events" not in said:
        said += os.read(terminal, 65_536)
    process.send_signal(signal.SIGINT)
    while chunk := _rest(terminal):
        said += chunk
    output, _ = process.communicate(timeout=FAR_OFF)
    os.close(terminal)
    assert (process.returncode, output) == (128 + signal.SIGINT, b"")
    last = said.decode().strip().splitlines()[-1]
    assert re.search(r"\d events/s · 2,010 events · 45 complex events · 0 late · \d+ state rows", last)
    lines = [line for file in (night / "found").glob("part-*") for line in file.read_text().splitlines()]
    assert len(lines) == 45


def _rest(terminal: int) -> bytes:
    """What a terminal still has to show; nothing when its last writer has gone."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""
