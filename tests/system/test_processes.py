"""Processes that Estero starts: what lies in the current directory does not run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estero.system import processes
from estero.system.processes import module_command, module_folders


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with modules called like those of Python, which leave a trace where they run."""
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "trace"
    for name in ("logging.py", "runpy.py", "pickle.py", "estero.py"):
        (tmp_path / name).write_text(f"open({str(trace)!r}, 'w').close()\n")
    return trace


@pytest.mark.parametrize("entry", ["", ".", "here"])
def test_a_planted_module_does_not_run(planted: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    monkeypatch.setattr(sys, "path", [str(planted.parent) if entry == "here" else entry, *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(planted.parent))
    no_share = ("99", "100")
    for command in (
        module_command("estero.engine.compiled.background"),
        module_command("estero.queries.warming", *no_share),
    ):
        ran = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=300)
        assert (ran.returncode, ran.stderr.decode()) == (0, "")
    assert not planted.exists()


def test_estero_is_found_where_it_is_the_current_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(processes.__file__).resolve().parents[2]
    monkeypatch.chdir(home)
    others = [each for each in sys.path if Path(each).resolve() != home]
    monkeypatch.setattr(sys, "path", [str(home), *others])
    assert module_folders()[-1] == str(home)
    assert module_folders().count(str(home)) == 1


def test_arguments_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "told.py").write_text("import sys; print(sys.argv[1:], __name__)")
    monkeypatch.syspath_prepend(tmp_path)
    ran = subprocess.run(module_command("told", "2", "5"), capture_output=True, check=True, text=True)
    assert ran.stdout == "['2', '5'] __main__\n"
