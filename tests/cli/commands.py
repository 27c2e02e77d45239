"""The command line as tests call it, over the stream of the demo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner, Result

from estero.cli.commands import app

LAYOUT = ["--type", "kind", "--time", "time", "--order", "id"]

FROST = """
    SELECT calm, frost
    WHERE Wind AS calm ; Temperature AS frost
    FILTER calm[value < 0.1] AND frost[value < 0]
    PARTITION BY [station] WITHIN 3 MINUTES
"""

FROSTS = 3

ALL_PAIRS = "SELECT a, b WHERE Wind+ AS a ; Wind AS b"


def estero(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def run(night: Path, query: str, *options: str | Path) -> Result:
    events = night / "events.parquet"
    return estero("run", night / f"{query}.ceql", "--events", events, *LAYOUT, "--engine", "duckdb", *options)


def command(*arguments: str | Path) -> Sequence[str]:
    return [sys.executable, "-c", "from estero.cli import main; main()", *map(str, arguments)]
