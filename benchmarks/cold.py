"""``python -m benchmarks.cold``: a first query where no kernel is compiled yet, and a second of another plan.

Each row is a new process with an empty directory of kernels: seconds of CPU and of the wall from its start to
the first 1,000 complex events, and then for a query of the next plan in the same process. The last columns
are the first query again, in a new process that finds its kernels. The first table is over 1,000 events as
anybody asks, the second over 2,000 with every kernel compiled before it is called, which is what many events
come to (`ESTERO_COMPILE`). Above them, what remains: the imports that a query needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

COUNTED = "counted"
PLANS = {
    "automaton": "SELECT * WHERE A ; B ; C WITHIN 100 EVENTS",
    "registers": "SELECT * WHERE A AS a ; B+ ; C AS c FILTER a.k = c.k WITHIN 12 EVENTS",
    "chain": "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.m != b.m",
    "joins": "SELECT * WHERE A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k WITHIN 100 EVENTS",
    "joins in order": "SELECT * WHERE A AS a ; B AS b FILTER a.k < b.k WITHIN 100 EVENTS",
    "spans": "SELECT MAX * WHERE A ; B+ ; C WITHIN 100 EVENTS",
    COUNTED: "SELECT * WHERE A ; B ; C",
}
IMPORTS = "estero.queries.query", "estero.recognize.in_process", "estero.answers.answer", "duckdb", "pyarrow"
_FOUND = 1_000

Took = tuple[float, float]
"""Seconds of CPU and of the wall."""


def seconds(kernels: str, when: str, events: int, plans: Sequence[str]) -> list[Took]:
    """What queries of these plans take in a new process, one after the other; its start is the first's.

    Without plans it imports what a query needs.
    """
    environment = {**os.environ, "ESTERO_CACHE": kernels, "ESTERO_COMPILE": when}
    program = [sys.executable, "-m", "benchmarks.cold", str(events), *plans]
    now = 0.0, time.time()
    ran = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found = []
    for cpu, wall in json.loads(ran.stdout):
        found.append((cpu - now[0], wall - now[1]))
        now = cpu, wall
    return found


def _measure(events: int, plans: Sequence[str]) -> None:
    """The process that is measured: prints when it has answered, by its CPU and by the clock."""
    done = []
    for plan in plans:
        _ask(plan, events)
        done.append((time.process_time(), time.time()))
    if not plans:
        for module in IMPORTS:
            __import__(module)
        done.append((time.process_time(), time.time()))
    print(json.dumps(done))


def _ask(plan: str, events: int) -> None:
    import numpy as np
    import pyarrow as pa

    import estero

    draw = np.random.default_rng(1)
    kinds = np.array(list("ABC"))[draw.integers(0, 3, events)]
    keys = {name: draw.integers(0, 50, events) for name in ("k", "m")}
    answer = estero.query(PLANS[plan]).run(pa.table({"kind": kinds, **keys}), type="kind")
    if plan == COUNTED:
        answer.count()
    else:
        answer.limit(_FOUND).to_arrow()


def _table(when: str, events: int) -> None:
    print("| plan | first query, CPU s | wall s | second, CPU s | wall s | with kernels, CPU s | wall s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    names = list(PLANS)
    for plan, another in zip(names, names[1:] + names[:1], strict=True):
        with tempfile.TemporaryDirectory(prefix="estero-cold-") as kernels:
            figures = seconds(kernels, when, events, [plan, another])
            figures += seconds(kernels, when, events, [plan])
        print(f"| {plan} |", " | ".join(f"{cpu:.2f} | {wall:.2f}" for cpu, wall in figures), "|", flush=True)


def main() -> None:
    """Prints the tables."""
    ((cpu, wall),) = seconds("", "", 0, [])
    print(f"Imports: {cpu:.2f} s of CPU, {wall:.2f} s of the wall\n", flush=True)
    _table("", 1_000)
    print()
    _table("first", 2_000)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(int(sys.argv[1]), sys.argv[2:])
    else:
        main()
