"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from cli.commands import FROST, FROSTS, LAYOUT, command, estero, run
from estero.cli.commands import app
from waiting import FAR_OFF


def test_the_help_names_the_commands() -> None:
    result = estero("--help")
    assert result.exit_code == 0
    for name in ("run", "check", "explain", "studio", "demo"):
        assert name in result.output


def test_the_version_is_that_of_the_package() -> None:
    assert estero("--version").stdout == f"estero {version('estero')}\n"


def test_the_number_of_complex_events_is_all_that_count_prints(night: Path) -> None:
    assert run(night, "frost", "--count").stdout == f"{FROSTS}\n"


def test_json_lines_hold_events(night: Path) -> None:
    lines = run(night, "frost", "--format", "jsonl").stdout.splitlines()
    assert len(lines) == FROSTS
    first = json.loads(lines[0])
    assert list(first) == ["start", "end", "start_time", "end_time", "station", "labels"]
    assert first["labels"]["calm"][0]["kind"] == "Wind"
    assert first["labels"]["frost"][0]["value"] < 0


def test_json_lines_hold_positions_where_they_are_asked_for(night: Path) -> None:
    result = run(night, "frost", "--format", "jsonl", "--positions", "--limit", "1")
    line = json.loads(result.stdout)
    assert list(line) == ["start", "end", "labels"]
    assert line["labels"] == {"calm": [line["start"]], "frost": [line["end"]]}


def test_csv_has_a_header_and_a_row_for_each_complex_event(night: Path) -> None:
    lines = run(night, "frost", "--format", "csv").stdout.splitlines()
    assert lines[0] == '"start","end","start_time","end_time","station","calm","frost"'
    assert len(lines) == FROSTS + 1


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_a_file_has_the_format_of_its_suffix(night: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"answer.{suffix}"
    result = run(night, "frost", "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert list(tmp_path.iterdir()) == [out]
    if suffix == "parquet":
        assert pyarrow.parquet.read_table(out).num_rows == FROSTS
    elif suffix == "arrow":
        assert pa.ipc.open_file(out.read_bytes()).read_all().num_rows == FROSTS
    else:
        assert len(out.read_text().splitlines()) == FROSTS + (suffix == "csv")


@pytest.mark.parametrize("events", ["it.parquet", "*.parquet", "."])
def test_a_file_that_is_read_is_not_replaced(tmp_path: Path, events: str) -> None:
    table, directory = pa.table({"kind": ["A", "B"]}), tmp_path / "events"
    directory.mkdir()
    pyarrow.parquet.write_table(table, directory / "it.parquet")
    (tmp_path / "query.ceql").write_text("SELECT * WHERE A ; B")
    (tmp_path / "query.sql").write_text("SELECT * FROM e")
    given = ["--events", directory / events, "--type", "kind", "--engine", "duckdb"]
    tables = ["--table", f"e={directory / events}"]
    for name, query, options in (("run", "query.ceql", given), ("sql", "query.sql", tables)):
        result = estero(name, tmp_path / query, *options, "--out", directory / "it.parquet")
        assert result.exit_code == 2
        assert "it.parquet is read, and would be replaced; choose another file" in result.stderr
    assert pyarrow.parquet.read_table(directory / "it.parquet") == table


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_its_query(night: Path, tmp_path: Path) -> None:
    (tmp_path / "frost.ceql").write_text("\ufeff" + (night / "frost.ceql").read_text(), encoding="utf-8")
    events = night / "events.parquet"
    marked = estero(
        "run", tmp_path / "frost.ceql", "--events", events, *LAYOUT, "--engine", "duckdb", "--count"
    )
    assert marked.stdout == run(night, "frost", "--count").stdout


def test_a_table_shows_the_first_complex_events_and_says_that_there_are_more(night: Path) -> None:
    result = run(night, "endless")
    assert result.exit_code == 0
    assert result.stdout.count("\n") > 20
    assert "the first 20; --limit shows more" in result.stderr


def test_a_table_of_nothing_says_so(night: Path) -> None:
    (night / "never.ceql").write_text("SELECT * WHERE Wind AS w FILTER w[value > 1000]")
    result = run(night, "never")
    assert result.exit_code == 0
    assert "no complex events" in result.stderr


def test_an_explanation_comes_first_and_on_standard_error(night: Path) -> None:
    result = run(night, "frost", "--explain", "--count")
    assert result.stdout == f"{FROSTS}\n"
    assert "guarantee: constant time per event" in result.stderr


def test_the_number_of_what_is_written_is_told(night: Path, tmp_path: Path) -> None:
    result = run(night, "frost", "--out", tmp_path / "frost.csv")
    assert result.stderr == f"{FROSTS} complex events in {tmp_path / 'frost.csv'}\n"
    one = run(night, "frost", "--limit", "1", "--out", tmp_path / "frost.csv")
    assert one.stderr.startswith("1 complex event in ")


def test_predicates_come_from_a_file_or_a_module(
    night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_predicates.py").write_text(
        "import estero\n\n@estero.predicate\ndef very_cold(values):\n    return values[0].as_py() < -1\n"
    )
    query = tmp_path / "cold.ceql"
    query.write_text(FROST.replace("PARTITION", "AND very_cold(frost.value) PARTITION"))
    arguments: list[str | Path] = ["run", query, "--events", night / "events.parquet", *LAYOUT]
    arguments += ["--engine", "duckdb", "--count", "--predicates"]
    by_file = estero(*arguments, tmp_path / "own_predicates.py")
    monkeypatch.syspath_prepend(tmp_path)
    by_module = estero(*arguments, "own_predicates")
    assert by_file.exit_code == by_module.exit_code == 0
    assert by_file.stdout == by_module.stdout
    assert int(by_file.stdout) < FROSTS
    checked = estero("check", query, "--predicates", tmp_path / "own_predicates.py")
    assert checked.exit_code == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        ("no.such.module", "there is no module no.such.module"),
        ("\n", r"there is no module \n"),
        ("", "there is no module without a name"),
        ("..", "there is no module ..: give the path of a .py file"),
    ],
)
def test_predicates_that_are_not_there_are_wrong_usage(night: Path, name: str, message: str) -> None:
    result = run(night, "frost", "--predicates", name)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise KeyError('x')", "cannot be run: KeyError: 'x'"),
        ("def (", "cannot be run: SyntaxError:"),
        ("import no_such_module", "cannot be run: ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_predicates_that_cannot_be_run_are_wrong_usage(night: Path, program: str, message: str) -> None:
    (night / "broken.py").write_text(program)
    result = run(night, "frost", "--predicates", str(night / "broken.py"))
    assert result.exit_code == 2
    assert message in result.stderr


def test_check_says_ok_or_points_at_the_place(night: Path) -> None:
    fine = estero("check", night / "frost.ceql", "--events", night / "events.parquet", *LAYOUT)
    assert (fine.exit_code, fine.stdout) == (0, f"{night / 'frost.ceql'}: ok\n")
    wrong = estero("check", night / "syntax.ceql")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "error: there is no part between ; and ;" in wrong.stderr
    assert "^" in wrong.stderr


def test_each_marked_event_has_a_row(night: Path, tmp_path: Path) -> None:
    place = ["--events", str(night / "events.parquet"), *LAYOUT, "--engine", "duckdb"]
    arguments = ["run", str(night / "frost.ceql"), *place]
    shown = estero(*arguments, "--rows", "events")
    assert shown.stdout.splitlines()[1].split("┃")[1].strip() == "match"
    result = estero(*arguments, "--rows", "events", "--limit", "2", "--out", tmp_path / "rows.csv")
    assert result.exit_code == 0, result.stderr
    rows = pyarrow.csv.read_csv(tmp_path / "rows.csv")
    assert f"{rows.num_rows} rows in " in result.stderr
    assert rows.column_names[:3] == ["match", "label", "position"]
    assert set(rows["match"].to_pylist()) == {0, 1}
    lines = estero(*arguments, "--rows", "events", "--limit", "1", "--format", "jsonl").stdout.splitlines()
    assert json.loads(lines[0])["label"] == "calm"


@pytest.mark.parametrize(
    "asked", [["--out", "x.csv"], ["--format", "csv"], ["--positions"], ["--rows", "events"]]
)
def test_a_count_does_not_leave_out_in_silence_what_else_is_asked(night: Path, asked: list[str]) -> None:
    result = run(night, "frost", "--count", *asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{asked[0]}: has no effect with --count, which prints a number" in " ".join(result.stderr.split())


def test_check_notes_what_is_easily_misread(night: Path) -> None:
    (night / "limited.ceql").write_text("SELECT * WHERE Wind LIMIT 3")
    result = estero("check", night / "limited.ceql")
    assert (result.exit_code, result.stdout) == (0, f"{night / 'limited.ceql'}: ok\n")
    assert result.stderr.startswith("note: LIMIT 3 applies to each end")


def test_check_compares_with_the_events_and_says_everything_at_once(night: Path) -> None:
    closed = [*LAYOUT, "--types", "Wind,Humidity", "--types", "Temperature"]
    result = estero("check", night / "unknown.ceql", "--events", night / "events.parquet", *closed)
    assert result.exit_code == 2
    for message in ("there are no events of type Wnd", "no event is marked v", "a window must be longer"):
        assert message in result.stderr
    kinds = estero("check", night / "kinds.ceql", "--events", night / "events.parquet", *LAYOUT)
    assert kinds.exit_code == 2
    assert "a string cannot be compared with an integer" in kinds.stderr


def test_check_goes_on_behind_what_it_cannot_read(night: Path) -> None:
    (night / "broken.ceql").write_text(
        "SELECT v WHERE Wind ; Wnd FILTER Wind[value == 1] WITHIN 5 SECUNDS LIMIT 0"
    )
    options = [*LAYOUT, "--types", "Wind"]
    result = estero("check", night / "broken.ceql", "--events", night / "events.parquet", *options)
    assert result.exit_code == 2
    said = [
        "no event is marked v",
        "no events of type Wnd",
        "== is not an operator",
        "unknown unit SECUNDS",
        "LIMIT keeps",
    ]
    places = [result.stderr.index(message) for message in said]
    assert places == sorted(places)


def test_explain_shows_the_automaton_and_with_events_the_sql(night: Path) -> None:
    alone = estero("explain", night / "frost.ceql")
    assert alone.exit_code == 0
    assert "Automaton" in alone.stdout
    assert (
        "SELECT"
        in estero("explain", night / "frost.ceql", "--events", night / "events.parquet", *LAYOUT).stdout
    )


def test_explain_draws_the_automaton_where_it_is_asked_to(night: Path, tmp_path: Path) -> None:
    result = estero("explain", night / "frost.ceql", "--svg", tmp_path / "automaton.svg")
    assert result.exit_code == 0
    assert "Automaton" in result.stdout
    svg = (tmp_path / "automaton.svg").read_text(encoding="utf-8")
    assert svg.endswith("</svg>\n")
    assert ">• Wind, calm</text>" in svg
    other = estero("explain", night / "frost.ceql", "--svg", tmp_path / "automaton.png")
    assert "automaton.png does not end in .svg" in other.stderr
    assert not (tmp_path / "automaton.png").exists()
    lost = estero("explain", night / "frost.ceql", "--svg", tmp_path / "nowhere" / "automaton.svg")
    assert (lost.exit_code, lost.stdout) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "parquet"], "give --out"),
        (["--out", "answer.txt"], "does not say its format"),
        (["--out", "answer.csv", "--format", "table"], "a table cannot be written to a file"),
        (["--engine", "flink"], "is not one of"),
        (["--limit", "-1"], "--limit"),
    ],
)
def test_wrong_usage_is_refused_with_exit_code_2(night: Path, arguments: list[str], message: str) -> None:
    result = run(night, "frost", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_run_needs_events(night: Path) -> None:
    result = estero("run", night / "frost.ceql")
    assert result.exit_code == 2
    assert "run needs events" in result.stderr


def test_a_missing_time_column_names_the_columns_that_there_are(night: Path) -> None:
    result = run(night, "frost", "--time", "when")
    assert result.exit_code == 1
    assert "there is no time column 'when'" in result.stderr
    assert "id, kind, time, station, value" in result.stderr


def test_a_stack_trace_is_shown_on_request_only(night: Path) -> None:
    arguments: list[str | Path] = [
        "run",
        night / "frost.ceql",
        "--events",
        "nowhere.csv",
        "--engine",
        "duckdb",
    ]
    assert "Traceback" not in estero(*arguments).output
    assert "Traceback" in estero(*arguments, "--debug").stderr


def test_the_engine_duckdb_never_loads_spark(night: Path) -> None:
    code = (
        "import sys; from click.testing import CliRunner; from estero.cli.commands import app\n"
        "result = CliRunner().invoke(app, sys.argv[1:]); print(result.stdout.strip())\n"
        "print([name for name in ('pyspark', 'py4j', 'matplotlib') if name in sys.modules])"
    )
    arguments: list[str | Path] = ["run", night / "frost.ceql", "--events", night / "events.parquet", *LAYOUT]
    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments), "--engine", "duckdb", "--count"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == f"{FROSTS}\n[]\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from estero.cli.commands import app\n"
        "CliRunner().invoke(app, ['run', '--help'])\n"
        "print([name for name in ('numpy', 'pyarrow', 'duckdb', 'numba', 'pyspark') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_a_reader_that_goes_away_is_no_error(night: Path) -> None:
    arguments: list[str | Path] = [
        "run",
        night / "endless.ceql",
        "--events",
        night / "events.parquet",
        *LAYOUT,
    ]
    process = subprocess.Popen(
        command(*arguments, "--engine", "duckdb", "--format", "jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"{")
    process.stdout.close()
    assert process.wait(timeout=FAR_OFF) == 128 + signal.SIGPIPE
    assert process.stderr.read().decode() == ""
    process.stderr.close()


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_a_long_run_in_a_line_and_leaves_no_file(
    night: Path, tmp_path: Path, number: signal.Signals, word: str
) -> None:
    arguments: list[str | Path] = [
        "run",
        night / "endless.ceql",
        "--events",
        night / "events.parquet",
        *LAYOUT,
    ]
    process = subprocess.Popen(
        command(*arguments, "--engine", "duckdb", "--out", tmp_path / "answer.csv"), stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    while not any(each.stat().st_size for each in tmp_path.iterdir()):
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=FAR_OFF) == 128 + number
    assert process.stderr.read().decode() == f"{word}\n"
    process.stderr.close()
    assert list(tmp_path.iterdir()) == []


INTERRUPTED_AT_ONCE = """
import os, signal, sys

class Impatient:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Impatient())
from estero.cli import main
main()
"""


def test_a_signal_ends_the_command_in_a_line_while_it_is_imported() -> None:
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_ONCE], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "interrupted\n")


def test_a_picture_whose_suffix_names_no_format_is_refused(tmp_path: Path) -> None:
    result = estero("demo", "--picture", tmp_path / "demo.docx")
    assert result.exit_code == 2
    assert "demo.docx does not say its format" in result.output


def test_the_demo_draws_a_picture(tmp_path: Path) -> None:
    result = estero("demo", "--picture", tmp_path / "demo.svg")
    assert result.exit_code == 0, result.output
    assert "45 complex events" in result.stdout
    assert (tmp_path / "demo.svg").read_text().startswith("<?xml")


def test_a_run_is_in_this_process_unless_spark_is_asked_for(
    night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "estero.spark", None)  # importing it fails
    events = ["--events", str(night / "events.parquet"), *LAYOUT]
    result = estero("run", night / "frost.ceql", *events, "--count")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{FROSTS}\n", "")
    for asked in (["--engine", "spark"], ["--master", "local[1]"]):
        result = estero("run", night / "frost.ceql", *events, *asked, "--count")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "estero.spark" in result.stderr
    for place in ("s3a://bucket/events.parquet", "csv:hdfs://host/events", "delta:/data/events"):
        result = estero("run", night / "frost.ceql", "--events", place, *LAYOUT)
        assert (result.exit_code, "estero.spark" in result.stderr) == (1, True)


def test_a_master_is_for_spark(night: Path) -> None:
    result = run(night, "frost", "--master", "local[1]")
    assert result.exit_code == 2
    assert "a master is for --engine spark" in result.stderr


def test_what_only_spark_reads_is_not_read_in_this_process(night: Path) -> None:
    where = ["--events", "s3a://bucket/events.parquet", *LAYOUT]
    for name in ("run", "check", "explain"):
        engine = ["--engine", "duckdb"] if name == "run" else []
        result = estero(name, night / "frost.ceql", *where, *engine)
        assert result.exit_code == 1
        assert "s3a://bucket/events.parquet: only Spark reads this place" in result.stderr


@pytest.mark.spark
def test_spark_writes_the_same_file_where_it_is_asked_for(night: Path, tmp_path: Path) -> None:
    place = f"file://{night / 'events.parquet'}"  # as Spark calls it; this process knows no such file
    options = ["--positions", "--explain", "--out", str(tmp_path / "s.jsonl")]
    process = subprocess.run(
        command("run", night / "frost.ceql", "--events", place, *LAYOUT, *options),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SPARK_LOCAL_DIRS": str(tmp_path / "scratch")},
    )
    assert (process.returncode, process.stdout) == (0, ""), process.stderr
    assert "on Spark: " in process.stderr
    assert process.stderr.splitlines()[-1] == f"{FROSTS} complex events in {tmp_path / 's.jsonl'}"
    run(night, "frost", "--positions", "--out", tmp_path / "d.jsonl")
    assert sorted((tmp_path / "s.jsonl").read_text().splitlines()) == sorted(
        (tmp_path / "d.jsonl").read_text().splitlines()
    )


@pytest.mark.spark
def test_a_master_that_is_none_is_one_sentence(night: Path) -> None:
    arguments: list[str | Path] = ["run", night / "frost.ceql", "--events", night / "events.parquet", *LAYOUT]
    process = subprocess.run(
        command(*arguments, "--engine", "spark", "--master", "nonsense"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("error: Spark did not start: Master must either be")
    assert process.stderr.count("\n") == 1


# -------------------------------------------------------------------------------- what did not happen


@pytest.fixture
def paid(tmp_path: Path) -> list[str]:
    """The arguments of a run over orders that were paid and not shipped."""
    events = "type,ts,k\npaid,2026-05-01T10:00,1\npaid,2026-05-01T10:10,2\nshipped,2026-05-01T10:20,1\n"
    (tmp_path / "orders.csv").write_text(f"{events}paid,2026-05-01T11:30,3\n")
    query = "SELECT paid[k] WHERE paid ; NOT(shipped) FOR 1 HOUR PARTITION BY k"
    (tmp_path / "late.ceql").write_text(query)
    files = [str(tmp_path / "late.ceql"), "--events", str(tmp_path / "orders.csv")]
    return [*files, "--type", "type", "--time", "ts", "--engine", "duckdb"]


def test_a_run_says_how_many_wait_for_a_deadline(paid: list[str]) -> None:
    result = CliRunner().invoke(app, ["run", *paid, "--count"])
    assert (result.exit_code, result.stdout.strip()) == (0, "1")
    assert "1 complex event waits for its deadline" in result.stderr
    result = CliRunner().invoke(app, ["run", *paid, "--count", "--until", "end"])
    assert (result.stdout.strip(), "deadline" in result.stderr) == ("2", False)
    result = CliRunner().invoke(app, ["run", *paid, "--count", "--until", "2026-05-01T12:30:01"])
    assert (result.stdout.strip(), "deadline" in result.stderr) == ("2", False)


def test_until_is_a_time_that_is_not_before_the_last_event(paid: list[str]) -> None:
    result = CliRunner().invoke(app, ["run", *paid, "--until", "2026-05-01T11:00"])
    assert result.exit_code == 1
    assert "until is before the last event" in result.stderr
    result = CliRunner().invoke(app, ["run", *paid, "--until", "soon"])
    assert "until is 'soon', which is not a time of these events" in result.stderr


def test_explain_says_why_there_are_not_more(night: Path, tmp_path: Path) -> None:
    asked = tmp_path / "never.ceql"
    asked.write_text("SELECT * WHERE Wind AS w FILTER w[value > 1000000]", encoding="utf-8")
    events: tuple[str | Path, ...] = ("--events", night / "events.parquet", *LAYOUT)
    said = estero("explain", asked, "--why-not", *events)
    assert said.exit_code == 0
    assert said.stdout.startswith("no complex event\nwaited for Wind AS w")
    assert "w[value > 1000000] rejects" in said.stdout
    assert "--why-not" in estero("explain", asked, "--why-not").stderr
    assert "--svg" in estero("explain", asked, "--why-not", "--svg", tmp_path / "a.svg", *events).stderr
