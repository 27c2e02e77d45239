"""``python -m benchmarks.chained``: chain automata on the ED-index alone, every event relevant, without SQL.

Events per second of updates, and whether they stay the same as the stream gets longer: the stream is cut into
equal parts, and each is timed. Beside that stands what the theorem says: entries that an event looks at, and
that a marked event of an answer looks at (both constant). Counts are checked against a plain program before
anything is timed. Prints JSON, or writes it to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.run_chain import ChainStep, chain_tables

PARTS = 8
CHECKED = 2_000
ANSWERS = 100_000
CONSTANT, KEY, ONE, OTHER = range(4)
"""Key columns of the streams."""


@dataclass(frozen=True, slots=True)
class Case:
    """Events of `kinds` types, one of `keys` keys and of `values` values in two more columns, drawn evenly.

    They are marked in the order of their types, again and again if there is one. Neighbours have the same key
    and differ in the columns `unequal`.
    """

    name: str
    kinds: int
    keys: int
    unequal: tuple[int, ...]
    values: int = 5

    @property
    def steps(self) -> list[ChainStep]:
        """The transitions."""
        pairs = [(column, column) for column in self.unequal]
        begins = ChainStep(None, 0, 0, 0)
        if self.kinds == 1:
            return [begins, ChainStep(0, 0, 0, 0, KEY, KEY, pairs)]
        follow = range(1, self.kinds)
        return [begins, *(ChainStep(kind - 1, kind, kind, kind, KEY, KEY, pairs) for kind in follow)]

    def recognizer(self, capacity: int = 1 << 12) -> Recognizer[ChainRuns]:
        """A recognizer that has seen nothing."""
        return Recognizer(
            ChainRuns(chain_tables(self.kinds, self.steps, [self.kinds - 1]), capacity=capacity)
        )


def stream(case: Case, events: int, seed: int) -> EventBatch:
    """Seeded events."""
    random = np.random.default_rng(seed)
    keys = np.zeros((events, 4, 2), np.uint64)
    keys[:, KEY, 0] = random.integers(0, case.keys, events)
    for column in (ONE, OTHER):
        keys[:, column, 0] = random.integers(0, case.values, events)
    kinds = random.integers(0, case.kinds, events).astype(np.uint64)
    words = (np.uint64(1) << kinds).reshape(-1, 1)
    return EventBatch(np.arange(events), words, keys, np.ones((events, 4), np.bool_))


def check(case: Case) -> None:
    """Compares the number of complex events at each end with a plain program's; raises where they differ."""
    events = stream(case, CHECKED, 0)
    recognizer = case.recognizer()
    counts = [0] * CHECKED
    for roots in recognizer.push(events):
        for end, number in zip(*recognizer.counts_by_end(roots), strict=True):
            counts[int(end)] = number
    kinds, values = np.log2(events.words[:, 0]).astype(int).tolist(), events.keys[:, :, 0].tolist()
    runs: list[int] = []
    for place, row in enumerate(values):
        before = sum(
            runs[other]
            for other in range(place)
            if (case.kinds == 1 or kinds[other] == kinds[place] - 1)
            and values[other][KEY] == row[KEY]
            and all(values[other][column] != row[column] for column in case.unequal)
        )
        runs.append(before + (kinds[place] == 0))
    if counts != [run if kind == case.kinds - 1 else 0 for run, kind in zip(runs, kinds, strict=True)]:
        raise ValueError(f"{case.name}: the counts differ from a plain program's")


def updates(case: Case, events: int) -> dict[str, Any]:
    """Events per second and entries looked at for an event, for each part of a stream of so many events.

    There is room for everything from the beginning, and it has been written to: how fast arrays grow, and
    memory is handed out, is not what is measured.
    """
    for _ in case.recognizer().push(stream(case, CHECKED, 0)):
        pass
    recognizer = case.recognizer(2 * events)
    for array in (*recognizer.runs.nodes[:-1], *recognizer.runs.entries[:-2], recognizer.runs.index.words):
        array.fill(0)
    speeds, looks = [], []
    for number in range(PARTS):
        part = stream(case, events // PARTS, number)
        looked, began = int(recognizer.runs.entries.looked[0]), time.perf_counter()
        for _ in recognizer.push(part):
            pass
        speeds.append(round(part.stamps.size / (time.perf_counter() - began)))
        looks.append(round((int(recognizer.runs.entries.looked[0]) - looked) / part.stamps.size, 3))
    used = (
        int(recognizer.runs.nodes.size[0]) * sum(array[:1].nbytes for array in recognizer.runs.nodes[:-1])
        + int(recognizer.runs.entries.size[0])
        * sum(array[:1].nbytes for array in recognizer.runs.entries[:-2])
        + 32 * int(recognizer.runs.index.used[0])
    )
    return {
        "events/s by part": speeds,
        "entries looked at per event": looks,
        "bytes in use per event": round(used / events, 1),
    }


def answers(case: Case) -> dict[str, float]:
    """Complex events per second and entries looked at for each of their events, of the first ones."""
    recognizer = case.recognizer()
    seconds, count, items, looks = 0.0, 0, 0, 0
    for roots in recognizer.push(stream(case, 20 * CHECKED, 0)):
        looked, began = int(recognizer.runs.entries.looked[0]), time.perf_counter()
        last = roots.part(max(0, roots.root.size - 1_000), roots.root.size)
        for matches in recognizer.matches(last):
            count += matches.start.size
            items += matches.event.size
            if count >= ANSWERS:
                break
        seconds += time.perf_counter() - began
        looks += int(recognizer.runs.entries.looked[0]) - looked
    return {
        "complex events": count,
        "complex events/s": round(count / seconds),
        "entries looked at per marked event": round(looks / max(1, items), 3),
    }


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chained", description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--out", type=Path, help="a file for the figures")
    asked = parser.parse_args()
    cases = [
        Case("A ; B ; C, equal keys, 1,000 keys", 3, 1_000, ()),
        Case("A ; B ; C, equal keys and unlike, 1,000 keys", 3, 1_000, (ONE,)),
        Case("A ; B ; C, equal keys and unlike, 1,000,000 keys", 3, 1_000_000, (ONE,)),
        Case("A+, equal keys and unlike, 1,000 keys", 1, 1_000, (ONE,)),
        Case("A+, unlike, one key", 1, 1, (ONE,)),
        Case("A+, unlike in two ways, one key", 1, 1, (ONE, OTHER)),
    ]
    figures: dict[str, dict[str, Any]] = {}
    for case in cases:
        check(Case(case.name, case.kinds, min(case.keys, 20), case.unequal))
        figures[case.name] = {**updates(case, asked.events), **answers(case)}
        print(f"{case.name}: {figures[case.name]}", flush=True)
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in ("numpy", "numba")},
        "events": asked.events,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps({"setting": setting, "chains": figures}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
