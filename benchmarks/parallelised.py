"""``python -m benchmarks.parallelised``: parallelised automata alone, every event relevant, without SQL.

Events per second of updates and the growth over windows, beside what the theorem says: heap nodes made for
an event (at most logarithmic in the window; its square where values are compared by order) and steps for an
item of an answer (constant). Counts are checked against a plain program before anything is timed. Prints
what it measures, and writes it as JSON to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import PceaTables, Transition, pcea_tables
from estero.engine.walk.matches import new_matches
from estero.engine.walk.roots import Roots

BATCH = 1 << 17
CHECKED = 3_000
MATCHES = 1_000
WINDOWS = (100, 1_000, 10_000, 100_000, 1_000_000)
VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """An automaton over events of `kinds` types with one of `keys` keys, both drawn evenly.

    Their values, drawn evenly too, count where it is `ordered`.
    """

    name: str
    tables: PceaTables
    kinds: int
    keys: int
    ordered: bool = False


def chain(keys: int) -> Case:
    """A ; B ; C with equal keys."""
    follow = [Transition([(k - 1, 0, 0)], k, k, k) for k in (1, 2)]
    return Case(f"A ; B ; C, {keys:,} keys", pcea_tables(3, [Transition([], 0, 0, 0), *follow], [2]), 3, keys)


def star(atoms: int, keys: int) -> Case:
    """One event of each of so many types, in any order, all with one key."""
    leaves = [Transition([], k, k, k) for k in range(atoms)]
    last = [Transition([(j, 0, 0) for j in range(atoms) if j != k], k, k, atoms) for k in range(atoms)]
    return Case(
        f"star of {atoms}, {keys:,} keys", pcea_tables(atoms + 1, [*leaves, *last], [atoms]), atoms, keys
    )


def any_order(keys: int) -> Case:
    """A ; B with equal keys and then any C: a C gathers B's that hand on their starts in no order."""
    pair = [Transition([], 0, 0, 0), Transition([(0, 0, 0)], 1, 1, 1)]
    tables = pcea_tables(3, [*pair, Transition([(1, 1, 1)], 2, 2, 2)], [2])
    return Case(f"A ; B, then any C, {keys:,} keys", tables, 3, keys)


def rising(keys: int) -> Case:
    """A ; B with equal keys and B's value above A's."""
    above = Transition([(0, 0, 0, "<", 0, 0)], 1, 1, 1)
    tables = pcea_tables(2, [Transition([], 0, 0, 0), above], [1])
    return Case(f"A ; B rising, {keys:,} keys", tables, 2, keys, ordered=True)


def rising_iteration(keys: int) -> Case:
    """A+ ; C with equal keys, each A's value above that of the A before it."""
    above = Transition([(0, 0, 0, "<", 0, 0)], 0, 0, 0)
    tables = pcea_tables(2, [Transition([], 0, 0, 0), above, Transition([(0, 0, 0)], 1, 1, 1)], [1])
    return Case(f"A+ rising ; C, {keys:,} keys", tables, 2, keys, ordered=True)


def stream(case: Case, events: int, seed: int = 1) -> EventBatch:
    """Seeded events; column 1 of the keys is the same for all."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, case.kinds, events).astype(np.uint64)
    key = random.integers(0, case.keys, events).astype(np.uint64)
    keys = np.zeros((events, 2, 2), np.uint64)
    keys[:, 0, 0], keys[:, 0, 1] = key * np.uint64(0x9E3779B97F4A7C15), key * np.uint64(0xC2B2AE3D27D4EB4F)
    words = (np.uint64(1) << kind).reshape(-1, 1)
    values, valid = random.integers(0, VALUES, (events, 1)), np.ones((events, 1), np.bool_)
    return EventBatch(np.arange(events), words, keys, np.ones((events, 2), np.bool_), values, valid)


def batches(events: EventBatch) -> Iterator[EventBatch]:
    """The stream in pieces."""
    for first in range(0, events.stamps.size, BATCH):
        part = slice(first, first + BATCH)
        keys = events.keys[part], events.known[part]
        yield EventBatch(
            events.stamps[part], events.words[part], *keys, events.values[part], events.valid[part]
        )


def update(case: Case, events: EventBatch, window: int | None) -> tuple[float, int, Recognizer[PceaRuns]]:
    """Seconds for all updates, the compact sets found, and the recognizer."""
    recognizer = Recognizer(PceaRuns(case.tables, window))
    began, count = time.perf_counter(), 0
    for batch in batches(events):
        count += sum(roots.root.size for roots in recognizer.push(batch))
    return time.perf_counter() - began, count, recognizer


def check(case: Case, window: int = 200) -> None:
    """Compares the number of complex events at each end with a plain program's; raises where they differ."""
    events = stream(case, CHECKED)
    recognizer = Recognizer(PceaRuns(case.tables, window))
    counts = np.zeros(CHECKED, np.int64)
    for roots in recognizer.push(events):
        ends, numbers = recognizer.counts_by_end(roots)
        counts[ends] = numbers
    expected = [plain_count(case, events, end, window) for end in range(CHECKED)]
    if counts.tolist() != expected:
        raise ValueError(f"{case.name}: the counts differ from a plain program's")


def plain_count(case: Case, events: EventBatch, end: int, window: int) -> int:
    """The complex events at one end, by looking at every event of its window."""
    inside = slice(max(0, end - window), end + 1)
    kinds, keys = np.log2(events.words[inside, 0]).astype(int), events.keys[inside, 0, 0]
    kind, key, same = kinds[:-1], keys[:-1], keys[:-1] == keys[-1]
    if case.name.startswith("star"):
        others = [int((kind[same] == other).sum()) for other in range(case.kinds) if other != kinds[-1]]
        return int(np.prod(others))
    if kinds[-1] != case.kinds - 1:
        return 0
    if case.ordered:
        values = events.values[inside, 0]
        before = values[:-1][(kind == 0) & same]
        return rising_sequences(before) if "+" in case.name else int((before < values[-1]).sum())
    last = kind == 1 if "any" in case.name else (kind == 1) & same
    return sum(int(((kind == 0) & (key == key[b]))[:b].sum()) for b in np.flatnonzero(last))


def rising_sequences(values: NDArray[np.int64]) -> int:
    """In how many ways some of the values, at least one, rise."""
    ending = np.zeros(values.size, np.int64)
    for place, value in enumerate(values):
        ending[place] = 1 + ending[:place][values[:place] < value].sum()
    return int(ending.sum())


def growth(case: Case, events: int) -> list[dict[str, Any]]:
    """Speed, heap nodes for an event, steps for an item of an answer, over windows of at most `events`."""
    data, lines = stream(case, events), []
    for window in (window for window in WINDOWS if window <= events):
        seconds, _, _ = update(case, data, window)
        made = nodes_made(case, data, window)
        lines.append({"window": window, "events/s": round(events / seconds), **made})
        print(f"{case.name}, window {window:,}: {lines[-1]}", flush=True)
    return lines


def nodes_made(case: Case, events: EventBatch, window: int) -> dict[str, float]:
    """Heap nodes for an event, and steps for an item among the first answers of the last compact sets.

    With room for everything nothing is moved together, so what is in use is what was made.
    """
    recognizer = Recognizer(
        PceaRuns(case.tables, window, capacity=(100 if case.ordered else 20) * events.stamps.size)
    )
    steps = items = 0
    for batch in batches(events):
        for roots in recognizer.push(batch):
            last = roots.part(max(0, roots.root.size - 20), roots.root.size)
            for first, after in pairwise(range(last.root.size + 1)):
                of_root = steps_and_items(recognizer, last.part(first, after))
                steps, items = steps + of_root[0], items + of_root[1]
    count = events.stamps.size
    return {
        "heap nodes per event": round(int(recognizer.runs.nodes.size[0]) / count, 3),
        "steps per item": round(steps / max(1, items), 3),
    }


def steps_and_items(recognizer: Recognizer[PceaRuns], roots: Roots) -> tuple[int, int]:
    """Heap nodes and products visited for the first complex events of compact sets, and their items."""
    walk, sizes = recognizer.matches(roots, MATCHES), np.zeros(2, np.int64)
    walk.fill(new_matches(MATCHES, 8 * MATCHES), sizes)
    return walk.steps, int(sizes[1])


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallelised", description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--out", type=Path, help="a file for the figures")
    asked = parser.parse_args()
    cases = [chain(1_000), chain(1_000_000), star(3, 1_000), star(3, 1_000_000), star(5, 1_000)]
    cases += [star(5, 1_000_000), any_order(1_000)]
    cases += [make(keys) for make in (rising, rising_iteration) for keys in (1, 1_000, 1_000_000)]
    for case in (chain(10), star(3, 10), star(5, 10), any_order(10), rising(10), rising_iteration(10)):
        check(case)
    speed: dict[str, dict[str, float]] = {}
    for case in cases:
        data = stream(case, asked.events)
        for window in (asked.window,) if case.ordered else (asked.window, None):
            runs = [update(case, data, window) for _ in range(asked.repeats)]
            seconds, count, recognizer = min(runs, key=lambda run: run[0])
            ordered = (
                recognizer.runs.ordered.rows,
                recognizer.runs.ordered.root,
                recognizer.runs.ordered.trees.words,
            )
            arrays = (
                *recognizer.runs.products,
                *recognizer.runs.nodes,
                recognizer.runs.index.words,
                *ordered,
            )
            name = f"{case.name}, {f'window {window:,}' if window else 'no window'}"
            speed[name] = {
                "events/s": round(asked.events / seconds),
                "compact sets": count,
                "megabytes": round(sum(array.nbytes for array in arrays) / 1e6, 1),
            }
            print(f"{name}: {speed[name]}", flush=True)
    curves = {
        case.name: growth(case, asked.events // 4)
        for case in (chain(1_000), star(3, 1_000), any_order(1_000))
    }
    curves |= {case.name: growth(case, asked.events // 40) for case in (rising(1), rising_iteration(1))}
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in ("numpy", "numba")},
        "events": asked.events,
    }
    figures = {"setting": setting, "updates": speed, "growth": curves}
    if asked.out is not None:
        asked.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
