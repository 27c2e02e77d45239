"""The library of kernels: what is loaded is what was built, and what cannot be loaded is told."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import estero
from estero.engine import library as loading
from estero.engine.library import FOLDER, TABLE, VARIABLE, library, library_names, platform_name
from estero.errors import EnvironmentProblem

FILES = list(library_names(platform_name()).values())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the libraries, of which this process loads anew."""
    shutil.copytree(FOLDER, tmp_path / "libraries")
    monkeypatch.setattr(loading, "FOLDER", tmp_path / "libraries")
    monkeypatch.delenv(VARIABLE, raising=False)
    library.cache_clear()
    yield tmp_path / "libraries"
    library.cache_clear()


def refused(sentence: str) -> None:
    """Loading ends with an error that says so, and how to mend it."""
    with pytest.raises(EnvironmentProblem, match=sentence):
        library()


def test_what_was_built_is_loaded(folder: Path) -> None:
    assert library().is_native


def test_a_library_that_was_changed_is_not_loaded(folder: Path) -> None:
    content = bytearray((folder / FILES[0]).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / FILES[0]).write_bytes(content)
    refused(f"{FILES[0]} is not the file that was built with Estero: run 'make kernels'")


def test_a_library_that_is_missing_is_told(folder: Path) -> None:
    (folder / FILES[0]).unlink()
    refused(f"a file of Estero is missing, .*{FILES[0]}")


def test_a_clone_without_libraries_is_told(folder: Path) -> None:
    shutil.rmtree(folder)
    refused("machine code is not built: run 'make kernels' in a clone")


def test_a_library_of_other_sources_is_not_loaded(folder: Path) -> None:
    table = json.loads((folder / TABLE).read_bytes())
    (folder / TABLE).write_text(json.dumps({**table, "sources": "others"}))
    refused("was built from other sources than these: run 'make kernels'")


def test_an_installation_for_another_platform_is_told(folder: Path) -> None:
    table = json.loads((folder / TABLE).read_bytes())
    (folder / TABLE).write_text(json.dumps({**table, "libraries": {"kernels-windows-x86_64.dll": ""}}))
    refused(f"installed for another platform than {platform_name()}")


def test_a_platform_without_a_library_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    refused("no machine code for linux-riscv64: it has for linux-x86_64, .*ESTERO_KERNELS=python")


def test_what_the_variable_says_must_be_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "cobol")
    refused("ESTERO_KERNELS is 'cobol': set it to 'python', or not at all")
    monkeypatch.setenv(VARIABLE, "python")
    assert not library().is_native


def test_a_package_in_a_zip_says_how_else_to_install_it(tmp_path: Path) -> None:
    package = Path(estero.__file__).parent
    with zipfile.ZipFile(tmp_path / "estero.zip", "w") as archive:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(package.parent))
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'estero.zip')!r}); import estero, pyarrow as pa\n"
        "answer = estero.query('SELECT * WHERE A').run(pa.table({'kind': ['A']}), type='kind')\n"
        "try:\n    answer.count()\nexcept estero.EnvironmentProblem as error:\n    print(error)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert "cannot be loaded from a zip: install the package" in ran.stdout
