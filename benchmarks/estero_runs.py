"""Estero on a table, through its public interface: timed runs, and whole answers for the check."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import Any

import pyarrow as pa

import estero
from benchmarks.workloads import Workload

MarkedPositions = tuple[int, ...]
"""A complex event without its labels, as CORE prints it: the marked positions in order."""

NOT_LABELS = frozenset({"start", "end", "start_time", "end_time"})


def answer_of(workload: Workload, text: str, events: Any) -> Any:
    """The answer of a query over events of this workload; lazy."""
    return estero.query(text).run(events, type=workload.type_column, time=workload.time, types=workload.types)


def seconds_to_answers(workload: Workload, text: str, table: pa.Table) -> tuple[float, int]:
    """Seconds from the query's text and a table in memory to all answers as tables; and their number."""
    begun = time.perf_counter()
    outputs = sum(batch.num_rows for batch in answer_of(workload, text, table).batches())
    return time.perf_counter() - begun, outputs


def seconds_to_push(workload: Workload, text: str, batches: list[pa.RecordBatch]) -> tuple[float, int]:
    """Seconds until a recognizer has taken all events, with one thread; and the number of answers."""
    layout: dict[str, Any] = {"type": workload.type_column, "time": workload.time, "types": workload.types}
    begun = time.perf_counter()
    recognizer = estero.query(text).recognizer(batches[0].schema, **layout, threads=1)
    outputs = sum(answers.num_rows for batch in batches for answers in recognizer.push(batch))
    return time.perf_counter() - begun, outputs


def seconds_to_objects(workload: Workload, text: str, table: pa.Table) -> tuple[float, int]:
    """The same with every answer as a Python object."""
    begun = time.perf_counter()
    outputs = sum(1 for _ in answer_of(workload, text, table))
    return time.perf_counter() - begun, outputs


def seconds_to_count(workload: Workload, text: str, table: pa.Table) -> tuple[float, int]:
    """Seconds from the query's text and a table in memory to the exact number of answers; and it."""
    begun = time.perf_counter()
    outputs = int(answer_of(workload, text, table).count())
    return time.perf_counter() - begun, outputs


def seconds_to_first(workload: Workload, text: str, table: pa.Table, wanted: int) -> tuple[float, int]:
    """Seconds to the first `wanted` answers, as Python objects, out of however many there are."""
    begun = time.perf_counter()
    outputs = sum(1 for _ in itertools.islice(answer_of(workload, text, table), wanted))
    return time.perf_counter() - begun, outputs


def counts_by_end(workload: Workload, text: str, table: pa.Table) -> dict[int, int]:
    """How many answers end at each position that has any."""
    counts: Counter[int] = Counter()
    for batch in answer_of(workload, text, table).batches():
        counts.update(batch.column("end").to_pylist())
    return dict(counts)


def marked_positions(workload: Workload, text: str, table: pa.Table) -> list[MarkedPositions]:
    """Every answer, sorted; a position that carries several labels stands once.

    Raises ValueError where start and end are not the first and the last of them, as they are in a query
    that projects nothing away.
    """
    answers: list[MarkedPositions] = []
    for batch in answer_of(workload, text, table).batches():
        labels = [name for name in batch.schema.names if name not in NOT_LABELS]
        for row in batch.to_pylist():
            marked = sorted({event["position"] for label in labels for event in row[label] or ()})
            if (row["start"], row["end"]) != (marked[0], marked[-1]):
                raise ValueError(f"[{row['start']}, {row['end']}] does not span {marked}: {text}")
            answers.append(tuple(marked))
    return sorted(answers)
