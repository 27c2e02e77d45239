"""`estero sql`: statements over files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from estero.cli.commands import app

STATEMENT = """SELECT * FROM levels MATCH_RECOGNIZE (ORDER BY hour
    MEASURES FIRST(hour) AS since, LAST(down.level) AS low PATTERN (high down+ up) DEFINE
    down AS level < PREV(level), up AS level > PREV(level))"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "levels.csv").write_text("hour,level\n1,5\n2,3\n3,4\n4,1\n5,2\n")
    (tmp_path / "dips.sql").write_text(STATEMENT)
    return tmp_path


def sql(folder: Path, *options: str, file: str = "dips.sql", given: str | None = None) -> Result:
    table = f"levels={folder / 'levels.csv'}"
    name = file if given is not None else str(folder / file)
    return CliRunner().invoke(app, ["sql", name, "--table", table, *options], input=given)


def test_the_rows_are_a_table(folder: Path) -> None:
    result = sql(folder)
    assert result.exit_code == 0
    assert [line.split("│")[1:3] for line in result.stdout.splitlines() if "│" in line] == [
        [" 1     ", " 3   "]
    ]


def test_rows_are_written_in_other_formats(folder: Path) -> None:
    assert json.loads(sql(folder, "--format", "jsonl").stdout) == {"since": 1, "low": 3}
    out = folder / "dips.parquet"
    result = sql(folder, "--out", str(out))
    assert "1 row in" in result.stderr
    assert pq.read_table(out).to_pylist() == [{"since": 1, "low": 3}]


def test_a_statement_comes_from_standard_input_and_explains_itself(folder: Path) -> None:
    result = sql(folder, "--explain", file="-", given=STATEMENT)
    assert result.stderr.startswith("MATCH_RECOGNIZE 1: linear")


def test_a_result_may_be_empty(folder: Path) -> None:
    assert "no rows" in sql(folder, file="-", given="SELECT * FROM levels WHERE hour > 9").stderr


def test_mistakes_are_told_with_a_caret(folder: Path) -> None:
    result = sql(folder, file="-", given=STATEMENT.replace("down+", "down++"))
    assert result.exit_code == 2
    assert "^" in result.stderr


def test_a_table_has_a_name_and_a_file(folder: Path) -> None:
    result = CliRunner().invoke(app, ["sql", str(folder / "dips.sql"), "--table", "levels.csv"])
    assert result.exit_code == 2
    assert "write NAME=FILE" in result.output
    twice = ["--table", "levels=levels.csv", "--table", "levels=other.csv"]
    result = CliRunner().invoke(app, ["sql", str(folder / "dips.sql"), *twice])
    assert result.exit_code == 2
    assert "levels has two files" in result.output
