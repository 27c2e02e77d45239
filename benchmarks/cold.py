"""``python -m benchmarks.cold``: a first query where no kernel is compiled yet, and a second of another plan.

For each plan a new process with an empty directory of kernels: seconds of CPU and of the wall from its start
to the first 1,000 complex events over 2,000 events, and then for a query of the next plan in the same
process. The last columns are the first query again, in a new process that finds its kernels. Prints a table.
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
_EVENTS, _FOUND = 2_000, 1_000

Took = tuple[float, float]
"""Seconds of CPU and of the wall."""


def seconds(plans: Sequence[str], kernels: str) -> list[Took]:
    """What queries of these plans take in a new process, one after the other; its start is the first's."""
    environment = {**os.environ, "ESTERO_CACHE": kernels}
    program = [sys.executable, "-m", "benchmarks.cold", *plans]
    now = 0.0, time.time()
    ran = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found = []
    for cpu, wall in json.loads(ran.stdout):
        found.append((cpu - now[0], wall - now[1]))
        now = cpu, wall
    return found


def _measure(plans: Sequence[str]) -> None:
    """The process that is measured: prints when it has answered, by its CPU and by the clock."""
    done = []
    for plan in plans:
        _ask(plan)
        done.append((time.process_time(), time.time()))
    print(json.dumps(done))


def _ask(plan: str) -> None:
    import numpy as np
    import pyarrow as pa

    import estero

    draw = np.random.default_rng(1)
    kinds = np.array(list("ABC"))[draw.integers(0, 3, _EVENTS)]
    keys = {name: draw.integers(0, 50, _EVENTS) for name in ("k", "m")}
    answer = estero.query(PLANS[plan]).run(pa.table({"kind": kinds, **keys}), type="kind")
    if plan == COUNTED:
        answer.count()
    else:
        answer.limit(_FOUND).to_arrow()


def main() -> None:
    """Prints the table."""
    print("| plan | first query, CPU s | wall s | second, CPU s | wall s | with kernels, CPU s | wall s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    names = list(PLANS)
    for plan, another in zip(names, names[1:] + names[:1], strict=True):
        with tempfile.TemporaryDirectory(prefix="estero-cold-") as kernels:
            figures = [*seconds([plan, another], kernels), *seconds([plan], kernels)]
        print(f"| {plan} |", " | ".join(f"{cpu:.1f} | {wall:.1f}" for cpu, wall in figures), "|", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(sys.argv[1:])
    else:
        main()
