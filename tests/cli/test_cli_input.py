"""The command line: where queries and events are read from."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from cli.commands import FROST, FROSTS, LAYOUT, command, estero
from estero import demo
from estero.cli.commands import app


def test_the_query_is_read_from_standard_input(night: Path) -> None:
    arguments = [
        "run",
        "-",
        "--events",
        str(night / "events.parquet"),
        *LAYOUT,
        "--engine",
        "duckdb",
        "--count",
    ]
    assert CliRunner().invoke(app, arguments, input=FROST).stdout == f"{FROSTS}\n"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow", "parquet"])
def test_events_are_read_from_standard_input(night: Path, tmp_path: Path, kind: str) -> None:
    events = demo.events()
    match kind:
        case "csv":
            pyarrow.csv.write_csv(events, tmp_path / kind)
        case "jsonl":
            lines = (json.dumps(row, default=str) for row in events.to_pylist())
            (tmp_path / kind).write_text("\n".join(lines))
        case "arrow":
            with pa.ipc.new_stream(tmp_path / kind, events.schema) as writer:
                writer.write_table(events)
        case _:
            pyarrow.parquet.write_table(events, tmp_path / kind)
    run = command("run", night / "frost.ceql", "--events", "-", *LAYOUT, "--engine", "duckdb", "--count")
    ran = subprocess.run(run, input=(tmp_path / kind).read_bytes(), capture_output=True, check=False)
    assert (ran.returncode, ran.stdout.decode()) == (0, f"{FROSTS}\n"), ran.stderr.decode()


@pytest.mark.parametrize("kind", ["csv.gz", "array", "named"])
def test_events_of_standard_input_may_be_compressed_an_array_or_named(
    night: Path, tmp_path: Path, kind: str
) -> None:
    events = pyarrow.parquet.read_table(night / "events.parquet")
    rows = json.dumps(events.to_pylist(), default=str).encode()
    given: list[str] = []
    if kind == "csv.gz":
        with pa.output_stream(str(tmp_path / kind)) as out:
            pyarrow.csv.write_csv(events, out)
        rows = (tmp_path / kind).read_bytes()
    elif kind == "named":
        rows, given = b"\n" + rows, ["--events-format", "json"]
    where = ["--events", "-", *given, "--engine", "duckdb", "--count"]
    ran = subprocess.run(
        command("run", night / "frost.ceql", *where, *LAYOUT), input=rows, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout.decode()) == (0, f"{FROSTS}\n"), ran.stderr.decode()


@pytest.mark.parametrize(
    ("given", "events", "message"),
    [
        ([], b"", "error: standard input: the file is empty: it has not even a header\n"),
        (
            ["--events-format", "csv"],
            b"kind,time,id\nWind,2024-01-01,1\nWind\n",
            "error: standard input, line 3: the row has 1 columns, not 3\n",
        ),
    ],
)
def test_what_is_wrong_with_standard_input_is_said_of_it(
    night: Path, given: list[str], events: bytes, message: str
) -> None:
    run = command("run", night / "frost.ceql", "--events", "-", *given, *LAYOUT, "--engine", "duckdb")
    ran = subprocess.run(run, input=events, capture_output=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.decode().startswith(message)


def test_several_files_are_one_stream(night: Path, tmp_path: Path) -> None:
    events = pyarrow.parquet.read_table(night / "events.parquet")
    pyarrow.parquet.write_table(events.slice(0, 900), tmp_path / "a.parquet")
    pyarrow.csv.write_csv(events.slice(900), tmp_path / "b.data")
    places: list[str | Path] = ["--events", tmp_path / "a.parquet", "--events", tmp_path / "b.csv"]
    (tmp_path / "b.data").rename(tmp_path / "b.csv")
    result = estero("run", night / "frost.ceql", *places, *LAYOUT, "--engine", "duckdb", "--count")
    assert (result.exit_code, result.stdout) == (0, f"{FROSTS}\n")


def test_the_format_of_the_events_can_be_said(night: Path, tmp_path: Path) -> None:
    events = pyarrow.parquet.read_table(night / "events.parquet")
    pyarrow.csv.write_csv(events, tmp_path / "events.data")
    where: list[str | Path] = ["--events", tmp_path / "events.data", *LAYOUT, "--engine", "duckdb", "--count"]
    without = estero("run", night / "frost.ceql", *where)
    assert without.exit_code == 1
    assert "on the command line --events-format says it" in without.stderr
    found = estero("run", night / "frost.ceql", *where, "--events-format", "csv")
    assert (found.exit_code, found.stdout) == (0, f"{FROSTS}\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--events-format", "csv"], "there are no events: name their files, too"),
        (["--type", "kind"], "--type: there are no events: name their files, too"),
        (["--order", "id"], "--order: there are no events: name their files, too"),
        (["--delimiter", ";"], "--delimiter: there are no events: name their files, too"),
        (["--events", ".", "--events-format", "csv"], ". is not a file: files of a directory or a pattern"),
        (["--events", "-", "--events", "-"], "standard input can be read once"),
    ],
)
def test_a_format_is_of_one_file(night: Path, given: list[str], message: str) -> None:
    result = estero("run", night / "frost.ceql", *given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_is_not_there_is_said_whatever_its_format(night: Path) -> None:
    given = ["--events", "nowhere.data", "--events-format", "csv", "--engine", "duckdb"]
    result = estero("run", night / "frost.ceql", *given)
    said = "error: nowhere.data: there is no such file\n  hint: a relative path begins in the current "
    said += "directory, "
    assert (result.exit_code, result.stderr) == (1, f"{said}{Path.cwd()}\n")


def test_a_terminal_shows_how_many_events_are_read(night: Path) -> None:
    terminal, side = pty.openpty()
    where = ["--events", str(night / "events.parquet"), *LAYOUT, "--engine", "duckdb", "--count"]
    run = command("run", night / "frost.ceql", *where)
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=side, env=environment)
    os.close(side)
    said = b""
    with suppress(OSError):  # the terminal's end, once nobody holds its other side
        while part := os.read(terminal, 4096):
            said += part
    os.close(terminal)
    assert process.communicate()[0] == f"{FROSTS}\n".encode()
    assert b"2,010 of 2,010 events, " in said


def test_query_and_events_are_not_both_read_from_standard_input() -> None:
    result = estero("run", "-", "--events", "-")
    assert result.exit_code == 2
    assert "the query is read from standard input already" in result.stderr


def test_a_csv_file_without_a_header_gets_its_names_and_its_timestamps(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("A|202501010000|1\nB|202501010001|2\n")
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A AS a ; B AS b FILTER b[n = 2] WITHIN 1 MINUTE")
    options = ["--delimiter", "|", "--columns", "kind, at, n", "--timestamp-format", "%Y%m%d%H%M"]
    layout = ["--type", "kind", "--time", "at", "--engine", "duckdb", "--count"]
    result = estero("run", tmp_path / "q.ceql", "--events", tmp_path / "events.csv", *options, *layout)
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_a_missing_query_file_is_wrong_usage() -> None:
    result = estero("check", "nowhere.ceql")
    assert result.exit_code == 2
    said = result.stderr
    assert "nowhere.ceql: there is no such file; a query is in a file, or comes from standard input" in said


def test_a_query_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.ceql").write_bytes("SELECT * WHERE Señal".encode("latin-1"))
    result = estero("check", tmp_path / "q.ceql")
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


def test_a_missing_file_of_events_is_one_sentence_and_exit_code_1(night: Path) -> None:
    result = estero("run", night / "frost.ceql", "--events", "nowhere.csv", "--engine", "duckdb")
    assert (result.exit_code, result.stdout) == (1, "")
    said = (
        "error: nowhere.csv: there is no such file\n  hint: a relative path begins in the current directory, "
    )
    assert result.stderr == f"{said}{Path.cwd()}\n"


def test_a_malformed_row_is_named_and_leaves_no_file(night: Path, tmp_path: Path) -> None:
    rows = [f"{i},Wind,2025-01-01 00:00:00,x,1.5" for i in range(30_000)]
    (tmp_path / "events.csv").write_text(
        "\n".join(
            [
                "id,kind,time,station,value",
                "0,Temperature,2025-01-01 00:00:00,x,1.5",
                *rows,
                "1,Wind,soon,x,1.5",
                "",
            ]
        )
    )
    arguments = ["--events", str(tmp_path / "events.csv"), *LAYOUT, "--engine", "duckdb"]
    result = estero("run", night / "frost.ceql", *arguments, "--out", tmp_path / "answer.csv")
    assert result.exit_code == 1
    assert "events.csv, row 30002, column 'time'" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["events.csv"]
