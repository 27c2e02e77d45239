"""Files that lie where a query is run, and are called like modules of Python, are not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import estero

PLANTED = "from pathlib import Path\nPath(__file__).with_suffix('.run').touch()\n"
COMMAND = "from estero.cli import main; main()"


def test_the_command_runs_nothing_of_the_current_directory(tmp_path: Path) -> None:
    """No process that it starts does either: what a cache or a compiler would need is none."""
    for name in (
        "logging",
        "pickle",
        "json",
        "csv",
        "random",
        "string",
        "site",
        "sitecustomize",
        "numpy",
        "lark",
    ):
        (tmp_path / f"{name}.py").write_text(PLANTED)
    (tmp_path / "query.ceql").write_text("SELECT * WHERE A ; B")
    (tmp_path / "events.csv").write_text("type,k\nA,1\nB,2\n")
    before = set(tmp_path.iterdir())
    own = {"PYTHONPATH": str(Path(estero.__file__).parent.parent)}
    arguments = ["run", "query.ceql", "--events", "events.csv", "--type", "type", "--count"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, *arguments],
        cwd=tmp_path,
        env={**os.environ, **own, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[-1:] == ["1"], done.stderr
    assert set(tmp_path.iterdir()) == before
