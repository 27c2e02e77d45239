"""What a shell suggests: commands, options, and columns of the events that are named already."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from estero.cli.commands import app

EVENTS = pa.table({"kind": ["A"], "time": [1], "key": ["x"]})


def suggested(*words: str) -> list[str]:
    """What bash is told for the last of the words of a line: the kind of each suggestion, and its text."""
    line = {"_ESTERO_COMPLETE": "bash_complete"}
    line |= {"COMP_WORDS": " ".join(["estero", *words]), "COMP_CWORD": str(len(words))}
    result = CliRunner().invoke(app, [], prog_name="estero", env=line)
    assert result.exit_code == 0, result.stderr
    return [text.removeprefix("plain,") for text in result.stdout.split()]


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


@pytest.mark.parametrize(
    "words", [("run", ""), ("run", "q.ceql", "--events", ""), ("stream", "q.ceql", "--jars", "")]
)
def test_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert suggested(*words) == ["file,"]


@pytest.mark.parametrize(
    ("shell", "script", "settings", "line"),
    [
        ("bash", ".bash_completions/estero.sh", ".bashrc", "source ~/.bash_completions/estero.sh"),
        ("zsh", ".zfunc/_estero", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
        ("fish", ".config/fish/completions/estero.fish", None, ""),
    ],
)
def test_completion_is_installed_for_the_shell_of_the_user(
    tmp_path: Path, shell: str, script: str, settings: str | None, line: str
) -> None:
    home = {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    if settings is not None:
        (tmp_path / settings).write_text("# mine")
    shown = CliRunner().invoke(app, ["--show-completion"], env=home).stdout
    assert f"_ESTERO_COMPLETE={shell}_complete" in shown
    for _ in range(2):  # the second time changes nothing
        result = CliRunner().invoke(app, ["--install-completion"], env=home)
        assert result.exit_code == 0, result.stderr
        assert str(tmp_path / script) in result.stdout
        assert (tmp_path / script).read_text() == shown
        if settings is not None:
            assert (tmp_path / settings).read_text() == f"# mine\n{line}\n"


@pytest.mark.parametrize(("shell", "said"), [("/bin/csh", "$SHELL is csh"), ("", "$SHELL is not set")])
def test_completion_is_for_three_shells(tmp_path: Path, shell: str, said: str) -> None:
    home = {"HOME": str(tmp_path), "SHELL": shell}
    for option in ("--show-completion", "--install-completion"):
        result = CliRunner().invoke(app, [option], env=home)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{said}, and completion is for bash, zsh and fish" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_line_of_readme_gives_a_shell_its_completion() -> None:
    line = {"_ESTERO_COMPLETE": "bash_source"}
    result = CliRunner().invoke(app, [], prog_name="estero", env=line)
    assert result.exit_code == 0, result.stderr
    assert "complete -o nosort -F _estero_completion estero" in result.stdout
