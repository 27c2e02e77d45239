"""Files as they should not be: kinds that change far down, odd names, pipes; the same on both engines."""

from __future__ import annotations

import os
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import estero
from estero.cli.commands import app
from estero.errors import DataError
from estero.events.inputs import open_input
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR = 21_000
"""Rows before the one that matters: more than readers look at to guess."""

Z = datetime(2024, 1, 1, 12, 30, tzinfo=UTC)
E = Z.replace(tzinfo=None)

COLUMNS: dict[str, tuple[str, list[str], list[Any]]] = {
    "integers": ("BIGINT", ["-7", "9223372036854775807", ""], [-7, 2**63 - 1, None]),
    "float below integers": ("DOUBLE", ["1", "1.4"], [1.0, 1.4]),
    "blanks around": ("BIGINT", [" 5", "6 "], [5, 6]),
    "leading zeros": ("VARCHAR", ["1", "007"], ["1", "007"]),
    "telephone": ("VARCHAR", ["+34666123456"], ["+34666123456"]),
    "beyond 64 bits": ("VARCHAR", ["1", "9223372036854775808"], ["1", "9223372036854775808"]),
    "not exact as a float": ("VARCHAR", ["1.5", "9007199254740993"], ["1.5", "9007199254740993"]),
    "overflowing float": ("VARCHAR", ["1.5", "1e400"], ["1.5", "1e400"]),
    "floats in words": ("DOUBLE", ["inf", "-Infinity", "1"], [float("inf"), float("-inf"), 1.0]),
    "truth values": ("BOOLEAN", ["T", "False", "true", "no"], [True, False, True, False]),
    "truth beside number": ("VARCHAR", ["1", "true"], ["1", "true"]),
    "dates": ("DATE", ["2024-01-01", "2024-2-3"], [date(2024, 1, 1), date(2024, 2, 3)]),
    "time below dates": (
        "TIMESTAMP",
        ["2024-01-01", "2024-01-01 12:30:00", "2024-1-1T12:30"],
        [E.replace(hour=0, minute=0), E, E],
    ),
    "offset below times": (
        "TIMESTAMP WITH TIME ZONE",
        ["2024-01-01 12:30:00", "2024-01-01 14:30:00+02:00", "2024-01-01T12:30Z", "2024-01-01T10:30:00.0-02"],
        [Z, Z, Z, Z],
    ),
    "UTC in words": ("TIMESTAMP WITH TIME ZONE", ["2024-01-01 12:30:00 UTC", "2024-01-01"], [Z, None]),
    "times of day": ("VARCHAR", ["12:30:00"], ["12:30:00"]),
    "day first": ("DATE", ["13/01/2024", "1/2/2024"], [date(2024, 1, 13), date(2024, 2, 1)]),
    "day or month first": ("VARCHAR", ["03/01/2024"], ["03/01/2024"]),
    "no such day": ("VARCHAR", ["2024-02-28", "2024-02-30"], ["2024-02-28", "2024-02-30"]),
    "newline": ("VARCHAR", ['"a\nb"', '"say ""x"""'], ["a\nb", 'say "x"']),
    "number sign": ("VARCHAR", ["a", "#b"], ["a", "#b"]),
    "text": ("VARCHAR", ["a", " b ", "NaN", ""], ["a", " b ", "NaN", None]),
    "nothing": ('"NULL"', ["", ""], [None, None]),
}
COLUMNS["UTC in words"][2][1] = Z.replace(hour=0, minute=0)


def here(path: Path, **csv_options: Any) -> pa.Table:
    """A file as the engine in this process reads it."""
    found = open_input(path, csv_options)
    if found.stream is not None:
        return found.stream(None).read_all()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(str(found.query)).to_arrow_table()


def there(spark: SparkSession, path: Path, **csv_options: Any) -> pa.Table:
    """The same on Spark."""
    from estero.spark.files.files import read_events

    return read_events(path, csv_options=csv_options).toArrow()


def types(path: Path, **csv_options: Any) -> dict[str, str]:
    layout = open_input(path, csv_options).layout
    assert layout is not None
    return {column.name: column.type for column in layout.columns}


def csv_of(directory: Path, texts: list[str], rows: int) -> Path:
    """A file in which the first text fills all rows but the last ones."""
    path = directory / "events.csv"
    lines = [texts[0]] * rows + texts[1:]
    path.write_text("n,v\n" + "".join(f"{n},{text}\n" for n, text in enumerate(lines)), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [1, FAR])
def test_a_column_of_csv_has_a_type_that_all_rows_fit(name: str, rows: int, tmp_path: Path) -> None:
    kind, texts, values = COLUMNS[name]
    path = csv_of(tmp_path, texts, rows)
    assert types(path)["v"] == kind
    assert here(path)["v"].to_pylist()[rows - 1 :] == values


@pytest.mark.spark
def test_spark_reads_the_same_columns(spark: SparkSession, tmp_path: Path) -> None:
    """All of them in one file, so that it is one job."""
    length = max(len(texts) for _, texts, _ in COLUMNS.values())
    columns = {name: (texts * length)[:length] for name, (_, texts, _) in COLUMNS.items()}
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, expected = there(spark, path), here(path)
    assert found.to_pylist() == expected.to_pylist()
    assert all(COLUMNS[name][0] == kind for name, kind in types(path).items())


JSON_COLUMNS: dict[str, tuple[str, list[str], list[Any]]] = {
    "integers": ("BIGINT", ["1", "-2", "null"], [1, -2, None]),
    "float below integers": ("DOUBLE", ["1", "2.5"], [1.0, 2.5]),
    "mixed": ("VARCHAR", ["1.5", '"4"', "true"], ["1.5", "4", "true"]),
    "text among objects": ("JSON", ['{"a": 1}', '"4"'], ['{"a":1}', '"4"']),
    "beyond 64 bits": ("JSON", ["1", "9223372036854775808"], ["1", "9223372036854775808"]),
    "not exact as a float": ("JSON", ["1.5", "9007199254740993"], ["1.5", "9007199254740993"]),
    "number far below nothing": ("BIGINT", ["null", "5"], [None, 5]),
    "truth values": ("BOOLEAN", ["true", "false"], [True, False]),
    "time below dates": (
        "TIMESTAMP",
        ['"2024-01-01"', '"2024-01-01T12:30:00"'],
        [E.replace(hour=0, minute=0), E],
    ),
    "offset below times": (
        "TIMESTAMP WITH TIME ZONE",
        ['"2024-01-01 12:30:00"', '"2024-01-01T14:30:00+02:00"'],
        [Z, Z],
    ),
    "strings": ("VARCHAR", ['"007"', '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', '"#b\\n"'], []),
    "numbers in strings": ("VARCHAR", ['"1"', '"2.5"'], ["1", "2.5"]),
    "lists": ("DOUBLE[]", ["[1]", "[2.5]"], [[1.0], [2.5]]),
    "objects": ('STRUCT("a" BIGINT, "b" VARCHAR)', ['{"a": 1}', '{"b": "x"}'], []),
    "nothing": ('"NULL"', ["null", "null"], [None, None]),
}


@pytest.mark.parametrize("name", JSON_COLUMNS)
@pytest.mark.parametrize("rows", [1, FAR])
def test_a_field_of_json_has_a_type_that_all_events_fit(name: str, rows: int, tmp_path: Path) -> None:
    kind, texts, values = JSON_COLUMNS[name]
    path = tmp_path / "events.jsonl"
    lines = [texts[0]] * rows + texts[1:]
    path.write_text("".join(f'{{"v": {text}}}\n' for text in lines), encoding="utf-8")
    assert types(path) == {"v": kind}
    found = here(path)["v"].to_pylist()[rows - 1 :]
    assert found == values or not values


@pytest.mark.spark
def test_spark_reads_the_same_fields(spark: SparkSession, tmp_path: Path) -> None:
    length = max(len(texts) for _, texts, _ in JSON_COLUMNS.values())
    rows = [
        ", ".join(f'"{name}": {(texts * length)[row]}' for name, (_, texts, _) in JSON_COLUMNS.items())
        for row in range(length)
    ]
    lines, array = tmp_path / "events.jsonl", tmp_path / "events.json"
    lines.write_text("".join(f"{{{row}}}\n" for row in rows), encoding="utf-8")
    array.write_text("[" + ",\n".join(f"{{{row}}}" for row in rows) + "]", encoding="utf-8")
    for path in (lines, array):
        assert there(spark, path).to_pylist() == here(path).to_pylist()


def test_a_key_that_comes_late_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n' * FAR + '{"z": 1, "b": "x"}\n', encoding="utf-8")
    assert types(path) == {"a": "BIGINT", "b": "VARCHAR", "z": "BIGINT"}


def test_what_is_no_object_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n[2]\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"events.jsonl, row 2: this is not a JSON object: \[2\]"):
        open_source(path)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("BIGINT", "1.4", "'1.4' cannot be read as BIGINT without loss"),
        ("BIGINT", "oops", "'oops' cannot be read as BIGINT"),
        ("INTEGER", "3000000000", "'3000000000' cannot be read as INTEGER"),
        ("DATE", "2024-01-01 12:30:00", "'2024-01-01 12:30:00' cannot be read as DATE"),
        (
            "TIMESTAMP",
            "2024-01-01 12:30:00+02:00",
            r"'2024-01-01 12:30:00\+02:00' cannot be read as TIMESTAMP",
        ),
        ("TIMESTAMP", "2024-01-01 12:30:00.1234567", "'.*' cannot be read as TIMESTAMP"),
        ("DECIMAL(5,2)", "1.005", r"'1.005' cannot be read as DECIMAL\(5,2\)"),
    ],
)
def test_a_given_type_takes_no_value_that_loses_something(
    kind: str, text: str, message: str, tmp_path: Path
) -> None:
    path = csv_of(tmp_path, ["", text], FAR)
    with pytest.raises(DataError, match=rf"events.csv, row {FAR + 1}, column 'v': {message}") as error:
        open_source(path, csv_options={"types": {"v": kind}})
    assert "csv_options={'types': …} says what a column holds" in str(error.value)


def test_given_types_are_taken(tmp_path: Path) -> None:
    path = csv_of(tmp_path, ["007", " 8", "2024-01-01"], 1)
    assert here(path, types={"v": "VARCHAR"})["v"].to_pylist() == ["007", " 8", "2024-01-01"]
    path = csv_of(tmp_path, ["007", " 8"], 1)
    assert here(path, types=["BIGINT", "SMALLINT"])["v"].to_pylist() == [7, 8]
    with pytest.raises(DataError, match="there is no column 'w' to give a type to"):
        open_source(path, csv_options={"types": {"w": "BIGINT"}})
    with pytest.raises(DataError, match="'NUMBER' is not a type that DuckDB knows"):
        open_source(path, csv_options={"types": {"v": "NUMBER"}})
    with pytest.raises(DataError, match="the types of the columns of CSV files cannot be 'BIGINT'"):
        open_source(path, csv_options={"types": "BIGINT"})


def test_an_answer_does_not_depend_on_what_stands_far_down(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("kind,v\n" + "A,1\n" * FAR + "B,1.4\n", encoding="utf-8")
    assert estero.query("SELECT * WHERE B AS b FILTER b[v > 1]").run(path, type="kind").count() == 1


# ---------------------------------------------------------------------------------------- comments


def test_comments_stand_above_the_header_only(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("# made by hand\n\n# in spring\nkind,v\nA,#x\n#b,2\n", encoding="utf-8")
    assert here(path).to_pylist() == [{"kind": "A", "v": "#x"}, {"kind": "#b", "v": "2"}]


@pytest.mark.spark
def test_comments_are_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("# made by hand\nkind,v\nA,#x\n", encoding="utf-8")
    assert there(spark, path).to_pylist() == here(path).to_pylist() == [{"kind": "A", "v": "#x"}]
    path.write_text("# made by hand\nkind,v\nA,#x\n#b,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="comments stand above the header, and an event begins with #, too"):
        there(spark, path)
    path.write_text("kind,v\nA,1 # one\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: a comment begins inside a line, and Spark knows only"):
        there(spark, path, comment="#")
    path.write_text("kind,v\n#no,1\nA,1\n", encoding="utf-8")
    assert there(spark, path, comment="#").to_pylist() == here(path, comment="#").to_pylist()


@pytest.mark.spark
def test_what_spark_would_read_otherwise_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("v\n1\n\n2\n", encoding="utf-8")
    with pytest.raises(DataError, match="a line is blank, and Spark would skip it"):
        there(spark, path)
    for zone, kind in (("", "TIMESTAMP_NS"), ("Z", "TIMESTAMPTZ_NS")):
        path.write_text(f"n,t\n1,2024-01-01 00:00:00.123456789{zone}\n", encoding="utf-8")
        assert types(path)["t"] == kind
        with pytest.raises(DataError, match="column 't': the timestamps have nanoseconds, and those of Sp"):
            there(spark, path)
    path = tmp_path / "events.json"
    path.write_text('{"a": 1,\n"b": 2}\n{"a": 2}\n', encoding="utf-8")
    assert here(path).num_rows == 2
    with pytest.raises(DataError, match="an event spans several lines, which Spark cannot read"):
        there(spark, path)


# ------------------------------------------------------------------------------------- several files


@pytest.mark.spark
def test_files_follow_each_other_by_the_names_of_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    (tmp_path / "2.csv").write_text("b,a\ny,2.5\n", encoding="utf-8")
    expected = [{"a": 1.0, "b": "x"}, {"a": 2.5, "b": "y"}]
    assert here(tmp_path).to_pylist() == expected
    assert sorted(there(spark, tmp_path).to_pylist(), key=lambda row: row["a"]) == expected
    (tmp_path / "3.csv").write_text("a,c\n3,z\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"3.csv: the columns are a, c, and those of .*1.csv are a, b"):
        open_source(tmp_path)
    assert here(tmp_path, union_by_name=True)["c"].to_pylist() == [None, None, "z"]


# ------------------------------------------------------------------------------------------- paths

ODD = ["p[1]", "q*", "~t", "r?", "b\\x[1]", "a*\\?", "file:u", "s{a,b}", "v'w", "%41", "-x", "x y"]
DECOYS = ["p1", "q2", "rr", "b\\x1", "abc", "sa", "sb"]


def odd_files(directory: Path, suffix: str) -> list[Path]:
    """Files of odd names, each with its number as its only event, and others that the names match."""
    paths = [directory / f"{name}.{suffix}" for name in [*ODD, *DECOYS]]
    for number, path in enumerate(paths):
        table = pa.table({"n": [number]})
        match suffix:
            case "parquet":
                pq.write_table(table, path)
            case "csv":
                path.write_text(f"n,m\n{number},x\n", encoding="utf-8")
            case "jsonl":
                path.write_text(f'{{"n": {number}}}\n', encoding="utf-8")
            case _:
                with pa.ipc.new_file(str(path), table.schema) as writer:
                    writer.write_table(table)
    return paths


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_a_path_that_exists_is_itself(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, path in enumerate(odd_files(tmp_path, suffix)[: len(ODD)]):
        name = path if number % 2 else Path(path.name)
        assert here(name)["n"].to_pylist() == [number], name
    assert here(tmp_path).num_rows == here(Path(f"*.{suffix}")).num_rows == len(ODD + DECOYS)


@pytest.mark.spark
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_path_that_exists_is_itself_on_spark(spark: SparkSession, suffix: str, tmp_path: Path) -> None:
    paths = odd_files(tmp_path, suffix)
    with pytest.raises(
        DataError, match="Spark cannot read a file with a colon in its name\n  hint: rename it"
    ):
        there(spark, tmp_path)
    paths[ODD.index("file:u")].unlink()
    for number in (0, 1, 4, 7):
        assert there(spark, paths[number])["n"].to_pylist() == [number]
    assert there(spark, tmp_path).num_rows == len(paths) - 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the path of the events is empty\n  hint: name a file, a directory or a glob"),
        ("x" * 5000 + ".csv", "the path is too long: it has"),
        ("x/" * 5000 + ".csv", "the path is too long: it has"),
        ("a\0b.csv", "is not a path: it contains a NUL character"),
        ("/dev/null", "/dev/null: this is a device or a socket, not a file of events"),
    ],
)
def test_what_is_no_path_is_said(path: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        open_source(path)
    assert len(str(error.value)) < 400


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "events.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("kind,v\nB,2\nA,1\n",))
    writer.start()
    source = open_source(pipe, EventLayout.of(type="kind", order=["v"]))
    writer.join()
    assert source.type_names() == ("A", "B")
    assert not source.is_sorted()


def test_a_long_line_of_json_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"kind": "A", "x": "' + "y" * 40_000_000 + '"}\n{"kind": "B"}\n', encoding="utf-8")
    answer = estero.query("SELECT * WHERE A AS a ; B").run(path, type="kind")
    assert [len(match["a"][0]["x"]) for match in answer] == [40_000_000]


def command(events: str, directory: Path) -> Result:
    """``estero run --count`` in this process, by its options on the command line."""
    query = directory / "query.ceql"
    query.write_text("SELECT * WHERE A AS a ; B", encoding="utf-8")
    arguments = ["run", str(query), "--events", events, "--type", "kind", "--count", "--engine", "duckdb"]
    return CliRunner().invoke(app, arguments)


def test_an_empty_path_is_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("kind\nA\nB\n", encoding="utf-8")
    result = command("", tmp_path)
    assert result.exit_code == 1
    assert "the path of the events is empty" in result.stderr


def test_the_command_reads_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "events.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("kind\nA\nB\n",))
    writer.start()
    result = command(str(pipe), tmp_path)
    writer.join()
    assert result.stdout == "1\n", result.stderr


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("a.csv", "kind,v\nA,1\nA,1.5\nB,oops\n", "'oops'"),
        ("a.csv", "kind,v\nA,\nA,2\nB,2.5\nB,9007199254740993\n", "'2.5'"),
        ("a.jsonl", '{"kind": "A", "v": 1}\n{"kind": "A", "v": 2}\n{"kind": "B", "v": "4"}\n', "'\"4\"'"),
    ],
)
def test_an_error_names_the_value_that_made_a_column_no_number(
    tmp_path: Path, name: str, content: str, value: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(estero.QueryError) as caught:
        estero.query("SELECT * WHERE A ; B FILTER B[v > 1]").run(str(path), type="kind")
    assert (
        caught.value.hint
        == f"fix the value {value} ({path}, row 3, column 'v'): it is of another kind than those above it"
    )


def test_an_error_over_a_column_of_strings_names_no_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kind,v\nA,x\nB,1\n")
    with pytest.raises(estero.QueryError) as caught:
        estero.query("SELECT * WHERE A ; B FILTER B[v > 1]").run(str(path), type="kind")
    said = "strings are written in single quotes: '1'; the number in it is CAST(v AS FLOAT)"
    assert caught.value.hint == said


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("[1.5, 9007199254740993]", ["1.5", "9007199254740993"]),
        ("[1, 18446744073709551615]", ["1", "18446744073709551615"]),
        ("[1, 18446744073709551616]", ["1", "18446744073709551616"]),
        ("[1, 9007199254740993]", [1, 9007199254740993]),
        ("[1.5, 2]", [1.5, 2.0]),
    ],
)
def test_numbers_in_lists_of_json_lose_nothing(tmp_path: Path, inside: str, shown: list[object]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"kind": "A", "x": {inside}}}\n')
    (found,) = estero.query("SELECT a WHERE A AS a").run(str(path), type="kind")
    assert found["a"][0]["x"] == shown
