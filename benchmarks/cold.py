"""``python -m benchmarks.cold``: the first query of a process, and a second of another plan.

Each row is a new process: seconds of CPU and of the wall from its start to the first 1,000 complex events of
1,000 events in an Arrow file, and then for a query of the next plan in the same process; the least of some
turns. Above them, what most of it is: the imports that a query needs. Below them, a query over a million
events, twice: what the first one takes more is what it has to load, and all other processes are counted. And
what a worker of Spark takes for its first batch, when it has imported Arrow: it unpickles the plan, and
recognizes. As users have it: nothing in the environment says that kernels run as Python, or that bytecode is
not kept.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

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
IMPORTS = "estero.queries.query", "estero.recognize.in_process", "estero.answers.answer", "pyarrow"
_EVENTS, _MANY, _LIMIT, _TURNS = 1_000, 1_000_000, 1_000, 5
_WORKER = "worker"
_NOT_FOR_USERS = {"ESTERO_KERNELS", "PYTHONDONTWRITEBYTECODE"}

Took = tuple[float, float]
"""Seconds of CPU and of the wall."""


def seconds(events: Path, plans: Sequence[str]) -> list[Took]:
    """What queries of these plans take in a new process, one after the other; its start is the first's.

    Without plans it imports what a query needs.
    """
    turns = [_turn(events, plans) for _ in range(_TURNS)]
    return [(min(cpu for cpu, _ in took), min(wall for _, wall in took)) for took in zip(*turns, strict=True)]


def _turn(events: Path, plans: Sequence[str]) -> list[Took]:
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_USERS}
    program = [sys.executable, "-m", "benchmarks.cold", str(events), *plans]
    now = 0.0, time.time()
    ran = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    times = []
    for cpu, wall in json.loads(ran.stdout):
        times.append((cpu - now[0], wall - now[1]))
        now = cpu, wall
    return times


def _measure(events: str, plans: Sequence[str]) -> None:
    """The process that is measured: prints when it has answered, by its CPU and by the clock."""
    if plans == [_WORKER]:
        done = _recognize(Path(events))
    elif not plans:
        for module in IMPORTS:
            __import__(module)
        done = [(_cpu(), time.time())]
    else:
        done = []
        for plan in plans:
            _ask(plan, events)
            done.append((_cpu(), time.time()))
    print(json.dumps(done))


def _ask(plan: str, events: str) -> None:
    import pyarrow as pa

    import estero

    with pa.memory_map(events) as file:
        table = pa.ipc.open_file(file).read_all()
    answer = estero.query(PLANS[plan]).run(table, type="kind")
    if plan == COUNTED:
        answer.count()
    else:
        answer.limit(_LIMIT).to_arrow()


def _cpu() -> float:
    """Seconds of CPU of this process, in all threads, and of those that it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _recognize(work: Path) -> list[Took]:
    """What a worker does with a plan and a classified batch; first, when it has imported Arrow."""
    import pyarrow as pa

    done = [(_cpu(), time.time())]
    plan, schema, batch = pickle.loads(work.read_bytes())  # noqa: S301 - it is this program's own
    from estero.recognize.recognition import Recognition

    with pa.ipc.open_stream(batch) as batches:
        for _ in Recognition(plan, schema).push(batches.read_next_batch()):
            break
    return [*done, (_cpu(), time.time())]


def _write_work(events: Path, work: Path) -> None:
    """A plan and what it is given of the events, as they cross to a worker."""
    import pyarrow as pa

    import estero
    from estero.events.sources import open_source
    from estero.language.tree.schema import EventLayout

    source = open_source(str(events), EventLayout.of("kind", None))
    plan = estero.query(PLANS["automaton"]).plan(source.layout)
    sink = pa.BufferOutputStream()
    schema = source.classified_schema(plan.classification)
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in source.read(plan.classification):
            writer.write_batch(batch)
    work.write_bytes(pickle.dumps((plan, schema, sink.getvalue().to_pybytes())))


def _write(events: Path, number: int = _EVENTS) -> None:
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(1)
    kinds = np.array(list("ABC"))[draw.integers(0, 3, number)]
    table = pa.table({"kind": kinds, **{name: draw.integers(0, 50, number) for name in ("k", "m")}})
    with pa.OSFile(str(events), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory(prefix="estero-cold-") as folder:
        events = Path(folder, "events.arrow")
        _write(events)
        _print_table(events)
        _write_work(events, Path(folder, "work"))
        *_, (cpu, wall) = seconds(Path(folder, "work"), [_WORKER])
        print(f"\nFirst batch of a worker: {cpu:.2f} s of CPU, {wall:.2f} s of the wall")
        _write(events, _MANY)
        (first, _), (second, _) = seconds(events, [COUNTED, COUNTED])
        print(
            f"{_MANY:,} events, counted: {first:.2f} s of CPU, and {second:.2f} s again in the same process"
        )


def _print_table(events: Path) -> None:
    ((cpu, wall),) = seconds(events, [])
    print(f"Imports: {cpu:.2f} s of CPU, {wall:.2f} s of the wall\n", flush=True)
    print("| plan | first query, CPU s | wall s | second, CPU s | wall s |")
    print("|---|---:|---:|---:|---:|")
    names = list(PLANS)
    for plan, another in zip(names, names[1:] + names[:1], strict=True):
        figures = seconds(events, [plan, another])
        print(f"| {plan} |", " | ".join(f"{cpu:.2f} | {wall:.2f}" for cpu, wall in figures), "|", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(sys.argv[1], sys.argv[2:])
    else:
        main()
