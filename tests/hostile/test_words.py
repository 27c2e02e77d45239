"""What people type who come from elsewhere: an index of what was typed, and what is said."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import estero
from estero.cli.commands import app
from estero.spark import recognize

LOGINS = pa.table(
    {
        "kind": ["FAIL", "FAIL", "OK", "OK", "FAIL", "OK"],
        "at": [1, 1, 1, 2, 5, 5],
        "ip": ["a", "a", "a", "b", "b", "b"],
        "user": ["x", "y", "x", "x", "y", "y"],
    }
)
HOW: dict[str, Any] = {"type": "kind", "time": "at"}


def pairs(text: str, events: object = LOGINS) -> list[tuple[int, int]]:
    return sorted((found.start, found.end) for found in estero.query(text).run(events, **HOW))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(LOGINS, tmp_path / "logins.parquet")
    return tmp_path


def command(files: Path, name: str, text: str, *options: str) -> Result:
    (files / "query.ceql").write_text(text)
    events = ["--events", str(files / "logins.parquet"), "--type", "kind", "--time", "at"]
    return CliRunner().invoke(app, [name, str(files / "query.ceql"), *events, *options])


# ---------------------------------------------------------------------------- types without events


def test_a_type_without_events_is_a_warning_that_names_near_ones() -> None:
    with pytest.warns(estero.EsteroWarning) as caught:
        assert pairs("SELECT * WHERE FIAL ; OK") == []
    assert [str(warning.message) for warning in caught] == [
        "there are no events of type FIAL, only of FAIL and OK: did you mean FAIL?"
    ]
    assert caught[0].filename == __file__


def test_a_type_without_events_that_is_like_none_is_warned_of_with_those_there_are() -> None:
    with pytest.warns(estero.EsteroWarning, match="^there are no events of type ALARM, only of FAIL and OK$"):
        assert pairs("SELECT * WHERE FAIL ; NOT(ALARM) ; OK PARTITION BY ip, user") == [(0, 2), (4, 5)]


def test_a_list_of_types_makes_it_an_error_and_silences_those_on_it() -> None:
    query = estero.query("SELECT * WHERE FAIL ; LOCK")
    assert query.run(LOGINS, **HOW, types=["LOCK"]).count() == 0
    with pytest.raises(estero.QueryError, match="there are no events of type LOCK"):
        query.run(LOGINS, **HOW, types=["FAIL", "OK"])


def test_a_stream_whose_types_are_listed_has_no_others() -> None:
    query = estero.query("SELECT * WHERE FAIL ; LOCK")
    assert query.recognizer(LOGINS.schema, type="kind").push(LOGINS).count() == 0
    with pytest.raises(estero.QueryError, match="there are no events of type LOCK"):
        query.recognizer(LOGINS.schema, type="kind", types=["FAIL", "OK"])
    with pytest.raises(estero.QueryError, match="there are no events of type LOCK"):
        query.run(LOGINS.to_reader(), type="kind", types=["FAIL", "OK"])


def test_nothing_is_said_of_the_types_of_a_stream_without_events() -> None:
    assert pairs("SELECT * WHERE FAIL ; LOCK", LOGINS.slice(0, 0)) == []


@pytest.mark.parametrize("name", ["run", "check", "explain"])
def test_the_command_line_says_it_in_a_line(files: Path, name: str) -> None:
    options = ["--engine", "duckdb", "--count", "--explain"] if name == "run" else []
    result = command(files, name, "SELECT * WHERE FIAL ; OK", *options)
    assert result.exit_code == 0
    line = "warning: there are no events of type FIAL, only of FAIL and OK: did you mean FAIL?\n"
    assert result.stderr.count("warning") == 1
    assert line in result.stderr
    closed = command(files, name, "SELECT * WHERE FIAL ; OK", *options, "--types", "FAIL, OK")
    assert (closed.exit_code, "error: there are no events of type FIAL\n" in closed.stderr) == (2, True)


def test_nothing_is_said_of_a_pattern_that_cannot_be_read() -> None:
    errors = estero.check("SELECT * WHERE FAIL ; ; OK WITHIN -1 EVENTS", LOGINS, **HOW)
    assert [error.message for error in errors] == [
        "there is no part between ; and ;",
        "a window cannot be negative",
    ]


# --------------------------------------------------------------------------- keys, windows, NULL


TYPED = (
    ("SELECT * WHERE FAIL ; OK PARTITION BY ip, user", [(0, 2), (4, 5)]),
    ("SELECT * WHERE FAIL ; OK PARTITION BY [ip], [user]", [(0, 2), (4, 5)]),
    ("SELECT * WHERE (FAIL ; OK PARTITION BY ip, user) WITHIN 1 [at]", [(0, 2), (4, 5)]),
    ("SELECT * WHERE FAIL ; OK WITHIN 0 [at]", [(0, 2), (1, 2), (4, 5)]),
    ("SELECT * WHERE FAIL ; OK WITHIN 0 SECONDS", [(0, 2), (1, 2), (4, 5)]),
    ("SELECT * WHERE FAIL ; OK PARTITION BY ip WITHIN 0 [at]", [(0, 2), (1, 2), (4, 5)]),
    ("SELECT * WHERE (FAIL AS a ; OK AS b) FILTER a.user = b.user WITHIN 0 [at]", [(0, 2), (4, 5)]),
)


@pytest.mark.parametrize(("text", "found"), TYPED)
def test_keys_without_brackets_and_windows_of_one_time(text: str, found: list[tuple[int, int]]) -> None:
    query = estero.query(text)
    assert estero.query(str(query)) == query
    answer = query.run(LOGINS, **HOW, time_unit="s")
    assert sorted((match.start, match.end) for match in answer) == found
    assert answer.count() == len(found)
    recognizer = query.recognizer(LOGINS.schema, **HOW, time_unit="s")
    pushed = [(match.start, match.end) for batch in LOGINS.to_pylist() for match in recognizer.push(batch)]
    assert sorted(pushed) == found


@pytest.mark.spark
def test_they_mean_the_same_on_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(row.values()) for row in LOGINS.to_pylist()], LOGINS.column_names)
    for text, found in (TYPED[0], TYPED[3]):
        matches = recognize(frame, text, **HOW, time_unit="s", positions=True)
        assert sorted((row.start, row.end) for row in matches.collect()) == found, text


def test_alternatives_of_which_a_type_has_both_are_an_error() -> None:
    with pytest.raises(estero.QueryError) as caught:
        pairs("SELECT * WHERE FAIL ; OK PARTITION BY [ip, user]")
    assert caught.value.message == "FAIL has both ip and user, and names in one bracket are alternatives"
    assert caught.value.expected == "PARTITION BY ip, user for the key of both"
    tables = {"FAIL": LOGINS.select(["at", "ip"]), "OK": LOGINS.select(["at", "user"])}
    query = estero.query("SELECT * WHERE FAIL ; OK PARTITION BY [ip, user]")
    assert query.run(tables, time="at").count() == 0


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("ip = NULL", "write ip IS NULL"),
        ("NULL != ip", "write ip IS NOT NULL"),
        ("ip < NULL", "write ip IS NULL"),
        ("ip BETWEEN NULL AND 'b'", "write ip IS NULL"),
        ("ip NOT IN {'a', NULL}", "write ip IS NULL, joined to the rest by OR"),
    ],
)
def test_a_comparison_with_null_is_an_error(condition: str, hint: str) -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query(f"SELECT * WHERE FAIL FILTER FAIL[{condition}]")
    assert caught.value.hint == hint


def test_warnings_can_be_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", estero.EsteroWarning)
        with pytest.raises(estero.EsteroWarning):
            pairs("SELECT * WHERE FIAL")


# ------------------------------------------------------------------- what is around a query's text


def test_a_forgotten_type_is_said_with_the_column_that_may_hold_it() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query("SELECT * WHERE FAIL ; OK").run(LOGINS, time="at")
    assert caught.value.message == "there are no events of type FAIL: no column says the type of an event"
    assert caught.value.hint == (
        'name the column with the type where the events are given: type="kind" (--type kind)'
    )


def test_labels_that_are_not_their_columns_are_said() -> None:
    query = estero.query(
        "SELECT start, user, ip WHERE FAIL AS start ; OK AS user ; OK AS ip PARTITION BY user"
    )
    with pytest.warns(estero.EsteroWarning) as caught:
        answer = query.run(LOGINS, **HOW)
    assert [str(warning.message) for warning in caught] == [
        "the label start is shown as start_: another column is called start; AS gives it another name",
        "the label user is shown as user_: another column is called user; AS gives it another name",
    ]
    names = ["start", "end", "start_time", "end_time", "user", "start_", "user_", "ip"]
    assert answer.schema.names == names


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2024-01-01", "2024-01-02"], "the time column holds a string; it must hold timestamps or integers"),
        (["2024-01-01", "noon"], "'noon' is not a timestamp"),
        ([1.5, 2.5], "the time column holds a float; it must hold timestamps or integers"),
    ],
)
def test_times_of_a_frame_that_are_none_get_a_hint_for_frames(times: list[object], said: str) -> None:
    frame = pd.DataFrame({"kind": ["FAIL", "OK"], "at": times})
    with pytest.raises(estero.DataError) as caught:
        estero.query("SELECT * WHERE FAIL").run(frame, **HOW)
    assert caught.value.message == said
    assert caught.value.hint.startswith("convert it to timestamps")
    assert 'pandas.to_datetime(df["at"]' in caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.csv", "csv_options={'timestampformat': …} (--timestamp-format) says how times are written"),
        (
            "a.jsonl",
            "in JSON a timestamp is written '2024-01-31 12:00:00', or as an integer with its time_unit",
        ),
        ("a.parquet", "write the column as timestamps, or as integers with their time_unit"),
    ],
)
def test_times_of_a_file_that_are_none_get_a_hint_for_that_file(tmp_path: Path, name: str, hint: str) -> None:
    frame = pd.DataFrame({"kind": ["FAIL", "OK"], "at": ["noon", "dawn"]})
    write = {"a.csv": frame.to_csv, "a.parquet": frame.to_parquet}.get(name)
    if write is None:
        frame.to_json(tmp_path / name, orient="records", lines=True)
    else:
        write(tmp_path / name, index=False)
    with pytest.raises(estero.DataError, match="'noon' is not a timestamp") as caught:
        estero.query("SELECT * WHERE FAIL").run(str(tmp_path / name), **HOW)
    assert caught.value.hint == hint


@pytest.mark.parametrize("name", ["run", "check", "explain", "stream", "studio", "demo"])
def test_options_without_a_value_are_shown_without_one(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "160"}).stdout
    assert "--debug" in shown
    assert "<bool>" not in shown
    assert "<bool>" not in CliRunner().invoke(app, ["--help"]).stdout


# ------------------------------------------------------------------------- the index: words.txt


def index() -> list[tuple[str, str]]:
    """What was typed, and what is said of it: message and hint of each error."""
    blocks = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split("\n\n")
    return [
        (typed.removeprefix("typed: "), said.strip())
        for typed, _, said in (block.partition("\n") for block in blocks)
    ]


@pytest.mark.parametrize(("typed", "said"), index(), ids=lambda text: text[:60])
def test_what_is_typed_wrong_is_said_with_what_to_write(typed: str, said: str) -> None:
    errors = estero.check(typed)
    assert "\n".join(f"said:  {error.message}\nhint:  {error.hint}" for error in errors) == said
    assert all(error.text == typed and error.expected and error.span.end <= len(typed) for error in errors)


def test_the_index_is_long_and_no_hint_in_it_shrugs() -> None:
    typed = [word for word, _ in index()]
    assert len(typed) == len(set(typed)) >= 120
    assert [word for word, said in index() if "one too many" in said] == []
