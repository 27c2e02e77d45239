"""Runs the examples on real data, in this process and on Spark, and compares their answers.

    python examples/run.py [NAME …]

The data is looked for in $ESTERO_DATA, else in ../shared/data beside the repository; without it there is
nothing to do, which is said.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import estero

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("ESTERO_DATA") or HERE.parent.parent / "shared" / "data")
SENSORS: dict[str, Any] = {"type": "Variable", "time": "Fecha", "order": ["id"]}
MINUTES: dict[str, Any] = {
    "names": ["ticker", "minute", "open", "high", "low", "close", "volume"],
    "header": False,
    "timestampformat": "%Y%m%d%H%M",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A query in `name`.ceql, the file of its events and their layout, and how many answers there are."""

    name: str
    file: str
    layout: dict[str, Any]
    expected: int
    csv_options: dict[str, Any] = field(default_factory=dict)


EXAMPLES = (
    Example("freezing", "polkura_sensors.csv", SENSORS, 132),
    Example("fire_weather", "polkura_sensors.csv", SENSORS, 49),
    Example("rising_minutes", "nasdaq_minutes.csv", {"time": "minute", "order": ["ticker"]}, 59, MINUTES),
    Example(
        "falling_together",
        "nasdaq_minutes.csv",
        {"type": "ticker", "time": "minute", "order": ["ticker"]},
        8,
        MINUTES,
    ),
)


def in_process(example: Example, query: estero.Query) -> pa.Table:
    """The answer of the engine in this process."""
    events = DATA / example.file
    return query.run(events, **example.layout, csv_options=example.csv_options).to_arrow()


def on_spark(example: Example, query: estero.Query) -> pa.Table:
    """The answer of Spark, with positions, so that it can be compared."""
    from estero.spark import collect, read_events, recognize

    events = read_events(DATA / example.file, csv_options=example.csv_options)
    table = collect(recognize(events, query, **example.layout, positions=True))
    return pa.Table.from_batches(table.batches(), table.schema)


def rows(table: pa.Table) -> list[str]:
    """The rows in an order of their own, as complex events of one end have none."""
    return sorted(map(str, table.to_pylist()))


def main(names: Sequence[str]) -> int:
    """Runs the examples with these names, or all; 1 where an answer is not the one expected."""
    if not DATA.is_dir():
        print(f"examples: skipped, the real data is not in {DATA} (ESTERO_DATA says where it is)")
        return 0
    wrong = 0
    for example in EXAMPLES:
        if names and example.name not in names:
            continue
        query = estero.query((HERE / f"{example.name}.ceql").read_text(encoding="utf-8"))
        begin = time.perf_counter()
        here = in_process(example, query)
        middle = time.perf_counter()
        there = on_spark(example, query)
        end = time.perf_counter()
        same = rows(here) == rows(there) and here.num_rows == example.expected
        wrong += not same
        print(
            f"{example.name:<18}{here.num_rows:>6} complex events in {middle - begin:6.2f} s, "
            f"on Spark {there.num_rows:>6} in {end - middle:6.2f} s: "
            + ("the same" if same else f"DIFFERENT, or not the {example.expected} expected")
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
