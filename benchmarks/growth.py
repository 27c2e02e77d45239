"""``python -m benchmarks.growth``: what an event costs, over windows from 100 to 1,000,000 events.

For each plan the nodes made for an event, on average and at most, and the steps for an item of an answer:
these are counted, not timed, and the same on every machine. Beside them stand the time for an event, and the
shape that the theorems give. Answers of a prefix are counted in a second way before anything is measured.
Prints the page; ``--write`` writes GROWTH.md, results/growth.svg and results/growth.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import chained, parallelised
from benchmarks.growth_page import Point, page, picture
from benchmarks.parallelised import Case, any_order, chain, rising, rising_iteration
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import LazyAutomaton
from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.cea_runs import Settings
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.walk.roots import Roots
from estero.language.syntax.parser import parse_pattern, parse_query
from estero.reference.queries import Event, evaluate_query

HERE = Path(__file__).parent
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
PIECE = 1 << 12
LEAST = 100_000
"""So many events are measured at least, after a window has filled."""
SINGLE = 512
"""The last ones come one by one: the most that one of them makes."""
READ = 10
"""Of so many the first answers are read, where these are as long as the stream."""
PATTERN = "A ; B+ ; C"


class CountedProducts(PceaRuns):
    """Knows how many heap nodes were ever made, though what has left the window is dropped."""

    dropped = 0

    def _compact(self, oldest: int) -> None:
        before = int(self.nodes.size[0])
        super()._compact(oldest)
        self.dropped += before - int(self.nodes.size[0])

    @property
    def made(self) -> int:
        """Heap nodes ever made."""
        return self.dropped + int(self.nodes.size[0])


class CountedSets(PlainRuns):
    """Knows how many nodes of the compact set were ever made."""

    dropped = 0

    def _compact(self, need_nodes: int) -> None:
        before = int(self.arena.size[0])
        super()._compact(need_nodes)
        self.dropped += before - int(self.arena.size[0])

    @property
    def made(self) -> int:
        """Nodes ever made."""
        return self.dropped + int(self.arena.size[0])


@dataclass(frozen=True, slots=True)
class Curve:
    """What is measured, over which sizes, and the shape that is promised."""

    name: str
    plan: str
    over: str
    nodes: str
    shape: str
    check: Callable[[], None]
    measured: Callable[[int], Point]


def curves() -> list[Curve]:
    """All of them."""
    window, made = "events in the window", "heap nodes"

    def joins(name: str, plan: str, shape: str, make: Callable[[int], Case]) -> Curve:
        few, one = make(10), make(1)
        return Curve(
            name,
            plan,
            window,
            made,
            shape,
            lambda: parallelised.check(few),
            lambda size: of_products(one, size),
        )

    def unlike(name: str, case: chained.Case) -> Curve:
        seen, nodes = "events seen", "run nodes and entries made, and entries looked at,"
        plan, check = "chain + ED-index", partial(chained.check, case)
        return Curve(name, plan, seen, nodes, "flat", check, partial(of_lists, case))

    return [
        Curve(PATTERN, "CEA + tECS", window, "nodes", "flat", check_sets, of_sets),
        joins("A ; B ; C, one key: starts in order", "PCEA + heap", "flat", chain),
        Curve(
            "A ; B, equal keys, then any C: starts falling",
            "PCEA + heap",
            window,
            made,
            "log n",
            check_falling,
            of_falling,
        ),
        joins("A ; B rising, one key", "PCEA + ordered index", "log² n", rising),
        joins("A+ rising ; C, one key: in any order", "PCEA + ordered index", "log² n", rising_iteration),
        unlike("A ; B ; C, one key, unlike", chained.Case("", 3, 1, (chained.ONE,))),
        unlike("A+, one key, unlike in two ways", chained.Case("", 1, 1, (chained.ONE, chained.OTHER))),
    ]


# ------------------------------------------------------------------------------------------ products


def of_products(case: Case, window: int) -> Point:
    """Evenly drawn events."""
    return _of_products(case, window, parallelised.stream(case, window + max(window, LEAST) + SINGLE))


def of_falling(window: int) -> Point:
    """Starts that B's hand on to one heap, each earlier than the one before."""
    blocks = 1 + -(-max(window, LEAST) // window)
    return _of_products(any_order(1), window, falling(window, blocks))


def falling(window: int, blocks: int) -> EventBatch:
    """In each block of a window's length A's of many keys, their B's from the last key to the first, a C."""
    half = window // 2
    keys = np.concatenate((np.arange(half), np.arange(half)[::-1]))
    kinds = np.repeat(np.array([0, 1], np.uint64), half)
    keys, kinds = np.tile(keys, blocks), np.tile(kinds, blocks)
    kinds[window - 1 :: window] = 2
    words = (np.uint64(1) << kinds).reshape(-1, 1)
    both = np.zeros((keys.size, 2, 2), np.uint64)
    both[:, 0, :] = keys[:, np.newaxis]
    known = np.ones((keys.size, 2), np.bool_)
    return EventBatch(
        np.arange(keys.size), words, both, known, np.zeros((keys.size, 1), np.int64), known[:, :1]
    )


def _of_products(case: Case, window: int, events: EventBatch) -> Point:
    recognizer = Recognizer(CountedProducts(case.tables, window))
    _push(recognizer, events, 0, window)
    before, last = recognizer.runs.made, events.stamps.size - SINGLE
    began = time.perf_counter()
    _push(recognizer, events, window, last)
    seconds = time.perf_counter() - began
    made, most, steps, items = recognizer.runs.made - before, 0, 0, 0
    for place in range(last, last + SINGLE):
        already = recognizer.runs.made
        for roots in recognizer.push(_part(events, place, place + 1)):
            of_roots = parallelised.steps_and_items(recognizer, roots)
            steps, items = steps + of_roots[0], items + of_roots[1]
        most = max(most, recognizer.runs.made - already)
    return _point(window, made, most, last - window, seconds, steps, items)


def _push(
    recognizer: Recognizer[PceaRuns] | Recognizer[ChainRuns], events: EventBatch, first: int, last: int
) -> None:
    for start in range(first, last, PIECE):
        for _ in recognizer.push(_part(events, start, min(start + PIECE, last))):
            pass


def _part(events: EventBatch, first: int, last: int) -> EventBatch:
    part = slice(first, last)
    keys, values = (events.keys[part], events.known[part]), (events.values, events.valid)
    if events.values.shape[0]:
        values = events.values[part], events.valid[part]
    return EventBatch(events.stamps[part], events.words[part], *keys, *values)


def _point(size: int, made: int, most: int, events: int, seconds: float, steps: int, items: int) -> Point:
    return Point(
        size,
        round(made / events, 4),
        most,
        round(steps / items, 3) if items else None,
        round(seconds / events * 1e9, 1),
    )


def check_falling(window: int = 60) -> None:
    """Counts the complex events of each C in a second way."""
    events = falling(window, 4)
    recognizer = Recognizer(CountedProducts(any_order(1).tables, window))
    found = {
        int(end): number
        for roots in recognizer.push(events)
        for end, number in zip(*recognizer.counts_by_end(roots), strict=True)
    }
    ends = range(window - 1, 4 * window, window)
    case = any_order(1)
    if found != {end: parallelised.plain_count(case, events, end, window) for end in ends}:
        raise ValueError("falling starts: the counts differ from a plain program's")


# -------------------------------------------------------------------------------------------- lists


def of_lists(case: chained.Case, size: int) -> Point:
    """Evenly drawn events, after `size` of them; without a window all are kept.

    There is room for everything from the beginning: how fast arrays grow is not what is measured.
    """
    measured = max(size // 4, 2_000)
    best = float("inf")
    for turn in range(max(1, LEAST // (10 * (size + measured)))):
        events = chained.stream(case, size + measured + SINGLE, turn)
        recognizer = case.recognizer(2 * events.stamps.size)
        for array in (
            *recognizer.runs.nodes[:-1],
            *recognizer.runs.entries[:-2],
            recognizer.runs.index.words,
        ):
            array.fill(0)
        _push(recognizer, events, 0, size)
        before, began = _in_use(recognizer), time.perf_counter()
        _push(recognizer, events, size, size + measured)
        seconds = time.perf_counter() - began
        made = _in_use(recognizer) - before
        best = min(best, seconds)
    most = steps = items = 0
    for place in range(size + measured, events.stamps.size):
        already = _in_use(recognizer)
        for roots in recognizer.push(_part(events, place, place + 1)):
            most = max(most, _in_use(recognizer) - already)
            if place >= events.stamps.size - READ:
                looked = int(recognizer.runs.entries.looked[0])
                items += _items_of_first(recognizer, roots)
                steps += int(recognizer.runs.entries.looked[0]) - looked
    return _point(size, made, most, measured, best, steps, items)


def _in_use(recognizer: Recognizer[ChainRuns]) -> int:
    """Run nodes and entries of lists, and how often entries were looked at."""
    return int(
        recognizer.runs.nodes.size.sum() + recognizer.runs.entries.size[0] + recognizer.runs.entries.looked[0]
    )


def _items_of_first(recognizer: Recognizer[ChainRuns], roots: Roots) -> int:
    """Enumerates the first two complex events, which look at what nobody has looked at; how long they are."""
    return sum(matches.event.size for matches in recognizer.matches(roots, 2, first_batch=1))


# --------------------------------------------------------------------------------------------- sets


def of_sets(window: int) -> Point:
    """Evenly drawn A, B and C, of which all matter."""
    recognizer, bits = _recognizer_of_sets(window)
    count = window + max(window, LEAST) + SINGLE
    words = bits[np.random.default_rng(1).integers(0, 3, count)]
    _push_sets(recognizer, words, 0, window)
    before, last = recognizer.runs.made, count - SINGLE
    began = time.perf_counter()
    _push_sets(recognizer, words, window, last)
    seconds = time.perf_counter() - began
    made, most = recognizer.runs.made - before, 0
    for place in range(last, count):
        already = recognizer.runs.made
        _push_sets(recognizer, words, place, place + 1)
        most = max(most, recognizer.runs.made - already)
    return _point(window, made, most, last - window, seconds, 0, 0)


def _recognizer_of_sets(window: int) -> tuple[Recognizer[CountedSets], NDArray[np.uint64]]:
    """A recognizer of the pattern, and the bits of A, B and C."""
    automaton = compile_pattern(parse_pattern(PATTERN)).automaton
    bits = {predicate.types[0]: 1 << bit for bit, predicate in enumerate(automaton.predicates)}
    words = np.array([bits[name] for name in "ABC"], np.uint64)
    return Recognizer(CountedSets(LazyAutomaton(automaton), Settings(window=window))), words


def _push_sets(recognizer: Recognizer[CountedSets], words: NDArray[np.uint64], first: int, last: int) -> None:
    for _ in _roots_of_sets(recognizer, words, first, last):
        pass


def _roots_of_sets(
    recognizer: Recognizer[CountedSets], words: NDArray[np.uint64], first: int, last: int
) -> Iterator[Roots]:
    for start in range(first, last, PIECE):
        places = np.arange(start, min(start + PIECE, last))
        keys = np.zeros((places.size, 2), np.uint64)
        yield from recognizer.push(
            EventBatch(places, words[places].reshape(-1, 1), partition=keys, ordinal=places)
        )


def check_sets(events: int = 14, window: int = 9) -> None:
    """Counts the complex events at each end as the reference does, in a few short streams."""
    tree = parse_query(f"SELECT * WHERE {PATTERN} WITHIN {window} EVENTS")
    for seed in range(10):
        kinds = np.random.default_rng(seed).integers(0, 3, events)
        recognizer, bits = _recognizer_of_sets(window)
        found = {
            int(end): number
            for roots in _roots_of_sets(recognizer, bits[kinds], 0, events)
            for end, number in zip(*recognizer.counts_by_end(roots), strict=True)
        }
        expected = evaluate_query(tree, [Event("ABC"[kind], {}) for kind in kinds])
        if {e: n for e, n in found.items() if n} != {e: len(each) for e, each in expected.items() if each}:
            raise ValueError(f"{PATTERN}: the counts differ from the reference's")


# ---------------------------------------------------------------------------------------------- main


def measured(curve: Curve, largest: int) -> dict[str, Any]:
    """Checks a curve, compiles by its smallest size, then measures it."""
    curve.check()
    curve.measured(SIZES[0])
    points = []
    for size in (size for size in SIZES if size <= largest):
        points.append(curve.measured(size))
        print(f"{curve.name}, {size:,}: {points[-1]}", flush=True)
    return {
        "name": curve.name,
        "plan": curve.plan,
        "over": curve.over,
        "nodes": curve.nodes,
        "shape": curve.shape,
        "points": [point._asdict() for point in points],
    }


def main() -> None:
    """Checks, counts, times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="no larger windows")
    parser.add_argument("--only", default="", help="a word in the names of the plans to run")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    parser.add_argument("--write", action="store_true", help="write GROWTH.md, growth.svg and growth.json")
    asked = parser.parse_args()
    began = time.perf_counter()
    chosen = [curve for curve in curves() if asked.only in f"{curve.plan}: {curve.name}"]
    lines = [measured(curve, asked.largest) for curve in chosen]
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba")),
        "took": f"{time.perf_counter() - began:.0f} s",
    }
    if asked.note:
        setting["times"] = asked.note
    figures = {"setting": setting, "curves": lines}
    print(page(figures))
    if asked.write:
        (HERE / "GROWTH.md").write_text(page(figures), encoding="utf-8")
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (HERE / "results" / "growth.json").write_text(f"{text}\n", encoding="utf-8")
        picture(figures).save(HERE / "results" / "growth.svg")


if __name__ == "__main__":
    main()
