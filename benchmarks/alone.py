"""What Estero is measured on without a peer: flat updates, first answers, memory, start-up, command line."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import estero_runs
from benchmarks.compare import Figures
from benchmarks.workloads import CURVE_WINDOWS, DENSE, STOCK, dense_text

FLAT_TARGET, FIRST_TARGET, IMPORT_TARGET, COMMAND_TARGET = 1.3, 0.050, 0.3, 2.0
MEMORY_GROWTH_TARGET = 1.1
"""The most that memory may grow from the first half of the stream to the second to be called flat."""

UPDATE_PATTERNS = ("sequence, last never occurs", "Kleene, last never occurs")
LAST_EVENTS = 10_000
_NOT_FOR_USERS = {"ESTERO_KERNELS", "PYTHONDONTWRITEBYTECODE"}


def flat_updates(events: int, repeats: int) -> list[Figures]:
    """Events per second of pure updates, for windows from 100 to 100,000 events.

    Batches of a million are pushed to a recognizer, because a run leaves out events that can lie in no
    complex event, the more the shorter the window is.
    """
    batches = DENSE.table(events, dictionary=True).combine_chunks().to_batches(max_chunksize=1 << 20)
    lines = []
    for pattern in UPDATE_PATTERNS:
        rates = dict.fromkeys((str(window) for window in CURVE_WINDOWS), 0.0)
        for _ in range(repeats):
            for window in CURVE_WINDOWS:
                seconds, _ = estero_runs.seconds_to_push(DENSE, dense_text(pattern, window), batches)
                rates[str(window)] = max(rates[str(window)], events / seconds)
        spread = max(rates.values()) / min(rates.values())
        lines.append({"query": pattern, "events": events, "events/s by window": rates, "spread": spread})
        print(f"updates: {pattern}: slowest window {spread:.2f} times slower than the fastest", flush=True)
    return lines


def first_answers(repeats: int) -> Figures:
    """Time to the first 10 of the 2^9,998 - 1 answers that all end at the last of 10,000 events.

    From the query's text and the table in memory; with a limit, and abandoned by the reader.
    """
    kinds = ["A", *["B"] * (LAST_EVENTS - 2), "C"]
    table = pa.table({"type": kinds, "value": list(range(LAST_EVENTS))})
    text = dense_text("Kleene", LAST_EVENTS)
    seconds, outputs = min(estero_runs.seconds_to_first(DENSE, text, table, 10) for _ in range(repeats))
    counted, total = min(estero_runs.seconds_to_count(DENSE, text, table) for _ in range(repeats))
    if total != 2 ** (LAST_EVENTS - 2) - 1:
        raise ValueError(f"the count of {text} over A B…B C is {total}, not 2^{LAST_EVENTS - 2} - 1")
    print(f"first answers: {seconds * 1e3:.1f} ms; exact count of all {counted * 1e3:.1f} ms", flush=True)
    return {
        "text": text,
        "seconds to first answers": seconds,
        "answers": outputs,
        "seconds to count": counted,
    }


def memory(events: int) -> list[Figures]:
    """Resident memory of a fresh process while generated events pass through a query in record batches."""
    lines = []
    for name, workload, text in (
        ("stock, 3 events", "stock", STOCK.queries[0].text),
        ("dense, Kleene, window 10,000", "dense", dense_text("Kleene", 10_000, limit=1)),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.alone", workload, str(events), text],
            check=True,
            capture_output=True,
            text=True,
        )
        line: Figures = {"query": name, "text": text, **json.loads(done.stdout.splitlines()[-1])}
        lines.append(line)
        print(
            f"memory: {name}: {line['early MB']:.0f} MB at most in the first half, "
            f"{line['peak MB']:.0f} MB at most over {line['events']:,} events, "
            f"{line['events/s'] / 1e6:.1f} M events/s with generation",
            flush=True,
        )
    return lines


def import_time(repeats: int) -> Figures:
    """Seconds of `import estero` in a fresh interpreter, and of everything until the interpreter is gone."""
    code = "import time; t = time.perf_counter(); import estero; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    seconds = min(
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(max(repeats, 3))
    )
    print(f"import estero: {seconds:.3f} s", flush=True)
    return {"seconds": seconds}


def command_line(repeats: int) -> Figures:
    """Seconds of `estero run --engine duckdb` over 50,000 rows of Parquet, after a first run.

    As users have it: nothing in the environment says that kernels run as Python, or that bytecode is not
    kept.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_USERS}
    with tempfile.TemporaryDirectory() as folder:
        events, query = Path(folder) / "events.parquet", Path(folder) / "query.ceql"
        pq.write_table(STOCK.table(50_000), events)
        query.write_text(STOCK.queries[0].text, encoding="utf-8")
        command = [sys.executable, "-c", "from estero.cli import main; main()"]
        command += ["run", str(query), "--events", str(events)]
        command += ["--type", "type", "--time", "stock_time", "--engine", "duckdb", "--format", "csv"]
        times, cpu = [], []
        for _ in range(max(repeats, 3) + 1):
            begun, used = time.perf_counter(), _children()
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            times.append(time.perf_counter() - begun)
            cpu.append(_children() - used)
    rows = len(done.stdout.splitlines()) - 1
    warm, busy = min(times[1:]), min(cpu[1:])
    print(f"estero run: {warm:.2f} s, {busy:.2f} s of CPU, {rows} answers", flush=True)
    return {"rows": 50_000, "first": times[0], "warm": warm, "cpu": busy, "answers": rows}


def _children() -> float:
    """Seconds of CPU that processes have taken that this one started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident() -> float:
    """Megabytes that this process holds in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _stream(name: str, events: int, text: str) -> Figures:
    """Runs a query over generated batches in this process and watches its memory."""
    workload = {"stock": STOCK, "dense": DENSE}[name]
    samples: list[tuple[int, float]] = []
    passed = 0

    def generated() -> Iterator[pa.RecordBatch]:
        nonlocal passed
        for batch in workload.batches(events, dictionary=True):
            passed += batch.num_rows
            yield batch

    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            samples.append((passed, _resident()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    reader = pa.RecordBatchReader.from_batches(workload.schema(dictionary=True), generated())
    begun = time.perf_counter()
    outputs = sum(batch.num_rows for batch in estero_runs.answer_of(workload, text, reader).batches())
    seconds = time.perf_counter() - begun
    over.set()
    watcher.join()
    early = max((size for count, size in samples if count <= events // 2), default=_resident())
    line = samples[:: max(1, len(samples) // 100)]
    return {
        "events": passed,
        "outputs": outputs,
        "events/s": events / seconds,
        "early MB": early,
        "peak MB": max(size for _, size in samples),
        "MB by events": [[count, round(size, 1)] for count, size in line],
    }


if __name__ == "__main__":
    print(json.dumps(_stream(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
