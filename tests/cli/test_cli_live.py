"""`estero stream --engine local`: wrong usage, a pipe, a directory of rules, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import estero
from estero.cli.commands import app
from local.streams import LAYOUT, QUERY, RULES, events, expected, lines, read_lines, told
from waiting import FAR_OFF

EVENTS = events(60)
COLUMNS = ["--schema", LAYOUT["schema"], "--type", "kind", "--time", "time"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a query, rules, and a file of events."""
    (tmp_path / "query.ceql").write_text(QUERY)
    (tmp_path / "rules").mkdir()
    for name, text in RULES.items():
        (tmp_path / "rules" / f"{name}.ceql").write_text(text)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_text("\n".join(lines(EVENTS)) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stream(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["stream", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "stream needs to know where events come from"),
        (["--from", "delta:x"], "there is no source delta:"),
        (["--from", "tcp://x"], "tcp://x is not a TCP socket: write tcp://HOST:PORT"),
        (["--from", "stdin:x"], "stdin:x: stdin stands alone, without a place"),
        (["--from", "json:in", "--to", "csv:out"], "there is no sink csv:"),
        (["--from", "json:in", "--to", "https:///x"], "this is not the URL of a webhook"),
        (["--from", "json:in", "--to", "kafka://h:1/a,b"], "names several topics"),
        (["--from", "json:in", "--to", "json:out"], "a stream needs a directory for what it has read"),
        (["--from", "json:in"], "events of a stream are sorted by their time: name its column"),
        (["--from", "json:in", "--dead-letters", "x"], "'x' does not say what kind of sink it is"),
        (["--from", "json:in", "--trigger", "1 minute"], "it knows available-now only"),
        (["--from", "json:in", "--serve", "1234"], "'1234' is not HOST:PORT"),
        (["--from", "json:in", "--serve", ":99999"], "':99999' is not HOST:PORT"),
        (["--from", "json:in", "--checkpoint-interval", "soon"], "'soon' is not a duration"),
        (["--from", "json:in", "--shed"], "there is no limit: give --memory-limit, too"),
        (["--from", "json:in", "--partials"], "is for Spark, not for the local engine"),
        (["--from", "json:in", "--rows", "events"], "is for Spark, not for the local engine"),
        (["--from", "json:in", "--master", "local[2]"], "--master: is for Spark, not for the local engine"),
        (
            ["--from", "parquet:in?maxFilesPerTrigger=1"],
            "there is no option maxFilesPerTrigger: parquet: has no options in the local engine",
        ),
        (["--from", "csv:in?seq=;"], "csv:in: there is no option seq: the local engine knows sep, delimiter"),
        (["--from", "csv:in?sep=ab"], "the option sep is one character, not ab"),
        (["--from", "kafka://h:1/a?startingOffsets=end"], "startingOffsets is earliest or latest, not end"),
        (["--from", "json:in", "--to", "json:out?compression=gzip"], "there is no option compression"),
        (
            ["--from", "json:in", "--to", "kafka://h:1/a?transaction=false"],
            "the local engine knows transactions, commitIntervalMs, key, kafka.NAME",
        ),
        (["--from", "json:in", "--to", "kafka://h:1/a?transactions=no"], "is true or false, not no"),
        (["--from", "json:in", "--dead-letters", "json:x?a=1"], "json:x: there is no option a"),
    ],
)
def test_wrong_usage_is_said_before_anything_starts(here: Path, arguments: list[str], message: str) -> None:
    result = stream("query.ceql", "--engine", "local", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split()).replace("│ ", "")
    assert not (here / "state").exists()


@pytest.mark.parametrize(
    "arguments", [["--dead-letters", "console"], ["--backfill", "x"], ["--version-column"], ["--serve", ":1"]]
)
def test_options_of_the_local_engine_are_refused_on_spark(here: Path, arguments: list[str]) -> None:
    result = stream("query.ceql", "--from", "json:in", "--time", "time", *arguments)
    assert result.exit_code == 2
    assert f"{arguments[0]}: is for --engine local" in result.stderr


def test_a_directory_of_rules_runs_from_files_to_files(here: Path) -> None:
    result = stream(
        *("rules", "--engine", "local", "--from", "json:in", "--to", "json:out", "--checkpoint", "state"),
        *("--dead-letters", "json:dead", "--trigger", "available-now", "--version-column", *COLUMNS),
    )
    assert (result.exit_code, result.stdout) == (0, "")
    rows = read_lines(here / "out")
    assert told(rows) == expected(estero.rules(RULES), EVENTS)
    assert len({row["version"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "json:in", "--to", "json:./in"], "json:./in is the source, too"),
        (["--from", "json:in", "--dead-letters", "parquet:in"], "parquet:in is the source, too"),
        (["--from", "kafka://h:1/a,b", "--to", "kafka://h:1/b"], "kafka://h:1/b is the source, too"),
    ],
)
def test_what_a_stream_writes_is_not_its_source(here: Path, arguments: list[str], message: str) -> None:
    result = stream(
        *("query.ceql", "--engine", "local", *arguments, "--checkpoint", "state"),
        *("--trigger", "available-now", *COLUMNS),
    )
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert len(list((here / "in").iterdir())) == 1


def test_a_setting_of_kafka_that_does_not_exist_is_an_error_of_the_source(here: Path) -> None:
    pytest.importorskip("confluent_kafka")
    result = stream("query.ceql", "--engine", "local", "--from", "kafka://h:1/a?kafka.bogus=1", *COLUMNS)
    assert result.exit_code == 1
    assert 'kafka://h:1/a: Kafka says: No such configuration property: "bogus"' in result.stderr


def test_a_directory_that_is_not_there_is_told(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    arguments = ["--engine", "local", "--from", "json:inn", "--trigger", "available-now", *COLUMNS]
    assert stream("query.ceql", *arguments).exit_code == 0
    assert "there is no directory inn yet: files are waited for" in caplog.text
    assert not (here / "inn").exists()


def test_one_file_with_a_rule_runs_as_a_directory_does(here: Path) -> None:
    (here / "twice.eql").write_text("sequence by user with maxspan=3s [A where true] [B where true]")
    result = stream(
        *("twice.eql", "--engine", "local", "--from", "json:in", "--to", "json:out", "--checkpoint", "state"),
        *("--dead-letters", "json:dead", "--trigger", "available-now", *COLUMNS),
    )
    assert (result.exit_code, result.stdout) == (0, "")
    assert told(read_lines(here / "out")) == expected(estero.rules("twice.eql"), EVENTS)


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(
    ("lateness", "message"),
    [
        ("long", "a lateness is a duration such as '5 seconds', not 'long'"),
        ("-5 seconds", "a lateness cannot be negative: -5 seconds"),
        ("-1", "a lateness cannot be negative: -1"),
        ("9223372036854775808", "a lateness of 9223372036854775808 does not fit in 64 bits"),
    ],
)
def test_a_lateness_without_a_meaning_is_an_error_before_anything_begins(
    here: Path, engine: str, lateness: str, message: str
) -> None:
    result = stream(
        *("query.ceql", "--engine", engine, "--from", "json:in", "--trigger", "available-now", *COLUMNS),
        *("--lateness", lateness, "--checkpoint", "state"),
    )
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())
    assert not (here / "state").exists()


def program(*arguments: str) -> list[str]:
    command = "from estero.cli import main; main()"
    return [sys.executable, "-c", command, "stream", "query.ceql", "--engine", "local", *arguments, *COLUMNS]


def test_a_pipe_is_read_to_its_end_without_spark(here: Path) -> None:
    watched = (
        "import sys; from estero.cli.commands import call; call(); "
        "assert 'pyspark' not in sys.modules, 'it loads PySpark'"
    )
    command = program("--from", "stdin")
    done = subprocess.run(
        [*command[:2], watched, *command[3:]],
        input="\n".join(lines(EVENTS)), capture_output=True, text=True, check=False, timeout=FAR_OFF,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert told([row | row.pop("labels") for row in rows]) == expected(estero.query(QUERY), EVENTS)
    assert "line 6: this is not JSON" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_checkpoint_and_it_goes_on(here: Path, number: signal.Signals) -> None:
    to_files = ["--to", "json:out", "--checkpoint", "state", "--dead-letters", "json:dead"]
    reading, writing = os.pipe()
    os.write(writing, ("\n".join(lines(EVENTS[:30])) + "\n").encode())
    process = subprocess.Popen(
        program("--from", "stdin", *to_files, "--checkpoint-interval", "1ms"),
        stdin=reading, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list((here).glob("out/part-*")):
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=FAR_OFF)
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    rest = "\n".join(map(json.dumps, EVENTS[30:])) + "\n"
    done = subprocess.run(program("--from", "stdin", *to_files), input=rest, text=True, check=False)
    assert done.returncode == 0
    for end in (reading, writing):
        os.close(end)
    assert told(read_lines(here / "out")) == expected(estero.query(QUERY), EVENTS)
