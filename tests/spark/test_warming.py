"""What workers note while kernels are compiled; where nothing can be noted, nobody waits."""

from __future__ import annotations

import getpass
import os
import tempfile
from pathlib import Path

import pytest

from estero.spark.warming import _alone


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
