"""``python -m benchmarks.latency``: how long a push takes, of single events in three forms and of batches.

A sequence of three events with conditions, in one of 10,000 keys, which all have been seen. Before anything
is timed, the answers of all pushes together are compared with that of the whole stream. Prints the median,
the 99th and the 99.9th percentile of a push, and the time for an event beside that of the whole stream at
once; and writes them as JSON to ``--out``. Answers are not read while time is taken: that a push found
something is part of the push, what it found is not. Where other programs run, ``--clock cpu`` counts the
processor's time for this process, in all threads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import estero
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.recognize.recognition import Recognition
from estero.recognize.recognizers.continuous import ContinuousRecognizer

KEYS = 10_000
BATCH = 10_000
CHECKED = 5_000
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.timestamp("us")),
        ("k", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
    ]
)
TEXT = """
    SELECT * WHERE A AS a ; B AS b ; C AS c
    FILTER a[price > 50 AND volume >= 200] AND b[price BETWEEN 25 AND 75] AND c[price < 60 AND volume < 800]
    PARTITION BY [k] WITHIN 10 SECONDS
"""
PERCENTILES = (50, 99, 99.9)
CLOCKS: dict[str, Callable[[], int]] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}

Pushed = Any
"""What a recognizer takes."""


class Wrong(Exception):
    """An answer is not what it must be: nothing is timed."""


def table_of(events: int, keys: int = KEYS, begin: int = 1_700_000_000) -> pa.Table:
    """Events 100 µs apart, of four types, one of them not in the query; each key once in so many events."""
    draw = np.random.default_rng(begin)
    numbers = np.concatenate([draw.permutation(keys) for _ in range(-(-events // keys))])[:events]
    columns = [
        np.array(list("ABCD"))[draw.integers(0, 4, events)],
        pa.array(np.arange(events) * 100 + begin * 1_000_000).cast(pa.timestamp("us")),
        np.array([f"customer-{key:06}" for key in range(keys)])[numbers],
        draw.random(events) * 100,
        draw.integers(0, 1000, events),
    ]
    return pa.table([pa.array(column) for column in columns], schema=SCHEMA)


def seen_before() -> pa.Table:
    """Earlier events: of each key one that begins a complex event, and others."""
    table = table_of(10 * KEYS, begin=1_600_000_000)
    begin = pa.array(np.arange(table.num_rows) < KEYS)
    for name, value in (("type", "A"), ("price", 60.0), ("volume", 500)):
        place = SCHEMA.get_field_index(name)
        column = pc.if_else(begin, pa.scalar(value, SCHEMA.field(name).type), table.column(name))
        table = table.set_column(place, SCHEMA.field(name), column)
    return table


FORMS: dict[str, Callable[[pa.Table], Sequence[Pushed]]] = {
    "dict": lambda table: table.to_pylist(),
    "tuple": lambda table: list(zip(*(column.to_pylist() for column in table.columns), strict=True)),
    "batch of 1": lambda table: [
        batch.slice(row, 1) for batch in table.to_batches() for row in range(batch.num_rows)
    ],
    f"batch of {BATCH:,}": lambda table: table.combine_chunks().to_batches(max_chunksize=BATCH),
}


def recognizer() -> ContinuousRecognizer:
    """A recognizer that has seen nothing."""
    return estero.query(TEXT).recognizer(SCHEMA, type="type", time="t")


def check(events: int = CHECKED, keys: int = 100) -> int:
    """Compares the answers of all pushes with that of the whole stream; how many complex events there are."""
    table = table_of(events, keys)
    expected = estero.query(TEXT).run(table, type="type", time="t").to_arrow()
    for form, cut in FORMS.items():
        pushing = recognizer()
        answers = pa.concat_tables([pushing.push(part).to_arrow() for part in cut(table)])
        if not answers.equals(expected):
            raise Wrong(f"{form}: {answers.num_rows:,} complex events, not {expected.num_rows:,}")
    return int(expected.num_rows)


def times_of(pushed: Iterable[Pushed], seen: pa.Table, clock: Callable[[], int]) -> list[int]:
    """Nanoseconds of each push, to a recognizer that has seen some events."""
    push = recognizer().push
    for event in FORMS["dict"](seen):
        push(event)
    times = []
    for part in pushed:
        begun = clock()
        push(part)
        times.append(clock() - begun)
    return times


def bulk(table: pa.Table, clock: Callable[[], int]) -> int:
    """Nanoseconds to recognize a whole stream at once, the plan and the kernels being there."""
    source = open_source(table, EventLayout.of("type", "t"))
    plan = estero.query(TEXT).plan(source.layout)
    recognition = Recognition(plan, source.classified_schema(plan.classification))
    begun = clock()
    for batch in source.read(plan.classification):
        for _ in recognition.recognize(batch):
            pass
    return clock() - begun


def measured(events: int, rounds: int, clock: Callable[[], int]) -> list[dict[str, Any]]:
    """A row for each form: percentiles of a push in microseconds; nanoseconds for an event in batches."""
    table, seen = table_of(events), seen_before()
    rows = []
    for form, cut in FORMS.items():
        times = [time for _ in range(rounds) for time in times_of(cut(table), seen, clock)]
        row: dict[str, Any] = {"form": form, "pushes": len(times)}
        row |= {f"p{p}": round(float(np.percentile(times, p)) / 1000, 1) for p in PERCENTILES}
        rows.append(row | {"ns an event": round(sum(times) / rounds / events)})
    whole = min(bulk(table, clock) for _ in range(max(3, rounds)))
    return [*rows, {"form": "the whole stream", "pushes": 1, "ns an event": round(whole / events)}]


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--out", type=Path, default=None, help="where to write the figures, as JSON")
    asked = parser.parse_args()
    print(f"checked: {check():,} complex events in each form", flush=True)
    rows = measured(asked.events, asked.rounds, CLOCKS[asked.clock])
    for row in rows:
        print(json.dumps(row), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
