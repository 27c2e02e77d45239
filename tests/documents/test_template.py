"""The project to copy passes its own tests where it is copied to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import estero
from repository import REPOSITORY


def test_the_template_passes_its_tests(tmp_path: Path) -> None:
    project = tmp_path / "rules"
    template = REPOSITORY / "examples" / "template"
    shutil.copytree(template, project, ignore=shutil.ignore_patterns("__pycache__"))
    sources = Path(estero.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 passed" in ran.stdout
