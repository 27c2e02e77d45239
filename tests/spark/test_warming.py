"""What workers note while kernels are compiled; where nothing can be noted, nobody waits."""

from __future__ import annotations

import getpass
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.plan import Layout
from estero.plan.rules import plan_of
from estero.spark.warming import _alone, _state_of

LAYOUT = Layout(Schema({name: {"k": Kind.INT, "s": Kind.STRING} for name in ("A", "B")}))
SEQUENCE = "SELECT * WHERE A AS a ; B AS b"


def test_a_user_without_a_name_is_noted_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _alone("plain"):
        pass
    (note,) = tmp_path.rglob("*.compiled")
    assert note.parent.parent.name == f"estero-{os.getuid()}"


def test_without_a_temporary_directory_nothing_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    done = []
    with _alone("plain"):
        done.append("compiled")
    assert done == ["compiled"]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("text", "only", "family"),
    [
        (SEQUENCE, None, "cea"),
        ("SELECT NEXT * WHERE A AS a ; B AS b", None, "cea-spans"),
        (f"{SEQUENCE} FILTER a.k < b.k", "CEA", "cea-split"),
        (f"{SEQUENCE} FILTER a.k = b.k AND a.s != b.s", "chain", "chain-ed-index"),
        (f"{SEQUENCE} FILTER a.k < b.k WITHIN 9 EVENTS", "chain", "pcea-ordered-index"),
        (f"{SEQUENCE} FILTER a.k = b.k WITHIN 9 EVENTS", "chain", "pcea-heap"),
        ("SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k WITHIN 9 EVENTS", None, "pcea-heap"),
    ],
)
def test_plans_that_run_other_kernels_are_compiled_for_apart(text: str, only: Any, family: str) -> None:
    """Else each worker of a machine would compile those of the second kind for itself."""
    assert plan_of(parse_query(text), LAYOUT, only=only).kernels == family


def test_kernels_that_are_written_anew_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    kernel = tmp_path / "runs" / "kernel.py"
    kernel.touch()
    before = _state_of(tmp_path)
    os.utime(kernel, (1, 1))
    assert _state_of(tmp_path) != before
