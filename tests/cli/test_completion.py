"""What a shell suggests: commands, options, and columns of the events that are named already."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from estero.cli.commands import app

EVENTS = pa.table({"kind": ["A"], "time": [1], "key": ["x"]})


def suggested(*words: str) -> list[str]:
    """What bash is told for the last of the words of a line."""
    line = {"_TYPER_COMPLETE_ARGS": " ".join(["estero", *words]), "_ESTERO_COMPLETE": "complete_bash"}
    line |= {"COMP_WORDS": " ".join(["estero", *words]), "COMP_CWORD": str(len(words))}
    result = CliRunner().invoke(app, [], prog_name="estero", env=line)
    assert result.exit_code == 0, result.stderr
    return result.stdout.split()


def test_commands_and_options_are_suggested() -> None:
    assert set(suggested("")) >= {"run", "check", "explain", "stream", "demo"}
    assert suggested("run", "--eng") == ["--engine"]
    assert suggested("run", "q.ceql", "--engine", "s") == ["spark"]


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_columns_of_the_events_are_suggested(tmp_path: Path, kind: str) -> None:
    file = str(tmp_path / f"events.{kind}")
    write = {
        "parquet": pyarrow.parquet.write_table,
        "csv": pyarrow.csv.write_csv,
        "arrow": pyarrow.feather.write_feather,
    }
    write[kind](EVENTS, file)
    assert suggested("run", "q.ceql", "--events", file, "--type", "k") == ["kind", "key"]
    assert suggested("check", "q.ceql", "--events", file, "--time", "") == ["kind", "time", "key"]
    assert suggested("run", "q.ceql", "--events", file, "--order", "z") == []


def test_what_cannot_be_read_suggests_nothing(tmp_path: Path) -> None:
    for name, content in {"a.parquet": b"PAR1", "b.csv": b"\xff\xfe", "c.csv": b"", "d.jsonl": b"{}"}.items():
        (tmp_path / name).write_bytes(content)
        assert suggested("run", "q.ceql", "--events", str(tmp_path / name), "--type", "") == []
    assert suggested("run", "q.ceql", "--events", "nowhere.csv", "--type", "") == []
    assert suggested("run", "q.ceql", "--type", "") == []
