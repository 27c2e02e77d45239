"""``python -m benchmarks.run``: checks Estero's answers against CORE's, then times both.

Writes ``figures.json`` into the output folder; a run of everything also rewrites RESULTS.md from it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import alone, compare
from benchmarks.core_peer import CorePeer
from benchmarks.results_table import render
from benchmarks.workloads import DENSE, WORKLOADS

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-core" / "bin" / "python"
ALONE = "alone"


def main() -> None:
    """Runs what was asked for."""
    asked = _arguments()
    chosen = asked.workload or [*WORKLOADS, ALONE]
    results: dict[str, Any] = {}
    with _peer(asked.core_python) as core:
        results["setting"] = _setting(asked, core)
        results["throughput"] = []
        for name in (name for name in chosen if name in WORKLOADS):
            workload = WORKLOADS[name]
            tables = compare.Tables.of(workload, asked.events, asked.core_events)
            if core is not None:
                core.load(workload, asked.core_events)
            results["throughput"] += compare.throughput(workload, tables, core, asked.repeats)
            if workload is DENSE:
                results["enumeration"] = compare.enumeration(core, asked.repeats)
    if ALONE in chosen:
        results["flat updates"] = alone.flat_updates(asked.events // 2, asked.repeats)
        results["memory"] = alone.memory(asked.memory_events)
        results["waiting"] = {
            "first answers": alone.first_answers(asked.repeats),
            "import": alone.import_time(asked.repeats),
            "command line": alone.command_line(asked.repeats),
        }
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "figures.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = render(results)
    if asked.workload:
        print(page)
    else:
        (HERE / "RESULTS.md").write_text(page, encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--workload", action="append", choices=[*WORKLOADS, ALONE], help="only this one; may be repeated"
    )
    parser.add_argument("--events", type=int, default=10_000_000, help="events for Estero")
    parser.add_argument("--core-events", type=int, default=1_000_000, help="the first of them, for CORE too")
    parser.add_argument("--memory-events", type=int, default=100_000_000, help="events for the memory line")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--core-python", type=Path, default=PEER, help="an interpreter with pycer and numpy")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for figures.json")
    asked = parser.parse_args()
    asked.core_events = min(asked.core_events, asked.events)
    return asked


@contextmanager
def _peer(python: Path) -> Iterator[CorePeer | None]:
    if not python.exists():
        print("CORE is not here (see benchmarks/README.md): Estero is timed alone, nothing is compared")
        yield None
        return
    with CorePeer(python) as core:
        yield core


def _setting(asked: argparse.Namespace, core: CorePeer | None) -> dict[str, str]:
    """The machine, the versions and the sizes, in words."""
    git = shutil.which("git") or "git"
    command = [git, "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()
    libraries = ("numpy", "numba", "pyarrow", "duckdb")
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory():.0f} GB, {platform.system()}",
        "Estero": f"revision {revision or 'unknown'}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in libraries),
        "CORE": f"pycer {core.versions['pycer']}, Python {core.versions['python']}"
        if core
        else "not installed",
        "events": f"{asked.events:,} for Estero, the first {asked.core_events:,} of them for CORE; "
        f"best of {asked.repeats} interleaved runs",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    main()
