"""The command line takes conjunctive queries as it takes CEQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from estero.cli.commands import QUERY_OR_USAGE_ERROR, app

STREAM = pa.table({"type": list("STRSTR"), "at": range(6), "x": [2, 2, 1, 2, 1, 2], "y": [5, 0, 4, 5, 0, 5]})


@pytest.fixture
def given(tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(STREAM, tmp_path / "events.parquet")
    texts = {
        "joined": "-- in any order\nQ(x, y) <- T(x, _), S(x, y), R(x, y)",
        "wrong": "Q(x) <- T(x, _), U(z: y)",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.ceql").write_text(text)
    return tmp_path


def said(command: str, given: Path, query: str, *options: str) -> tuple[int, str, str]:
    """The exit code, standard output and standard error."""
    events = ["--events", str(given / "events.parquet"), "--type", "type", "--time", "at"]
    result = CliRunner().invoke(app, [command, str(given / f"{query}.ceql"), *events, *options])
    return result.exit_code, result.stdout, result.stderr


def test_it_is_run(given: Path) -> None:
    code, number, _ = said("run", given, "joined", "--engine", "duckdb", "--count")
    assert (code, number) == (0, "2\n")


def test_it_is_checked_and_all_that_is_wrong_is_said(given: Path) -> None:
    code, stdout, _ = said("check", given, "joined")
    assert (code, stdout) == (0, f"{given / 'joined.ceql'}: ok\n")
    code, _, stderr = said("check", given, "wrong")
    assert code == QUERY_OR_USAGE_ERROR
    assert "the head lacks the variable y" in stderr
    assert "there are no events of type U" in stderr


def test_it_is_explained(given: Path) -> None:
    code, stdout, _ = said("explain", given, "joined")
    assert code == 0
    assert "PCEA + heap: the query is hierarchical" in stdout
