"""``python -m benchmarks.growth``: what an event costs, in windows and streams from 100 to 1,000,000 events.

Each query goes the way of every query, from its text to a plan and its runs (`growth_rows`). What is made for
an event, on average and at most, and the steps for an item of an answer are counted, not timed, and the same
on every machine. Beside them stand the time for an event, and the shape that the theorems give. Answers on
short streams are compared with the reference before anything is measured. Prints the page; ``--write`` writes
GROWTH.md, results/growth.svg and results/growth.json, in which ``--only`` leaves the other rows as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import estero
from benchmarks.growth_page import LISTED, Point, page, picture
from benchmarks.growth_rows import PROMISED, ROWS, Row, check
from estero.engine.cursor import DONE
from estero.engine.runs.aged.aged_runs import AgedRuns
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.runs import Runs
from estero.engine.runs.spans.span_runs import SpanRuns
from estero.engine.runs.split.split_runs import SplitRuns
from estero.engine.runs.starts.start_runs import StartRuns
from estero.engine.tally import tally
from estero.engine.tally.long_counts import LongCounts
from estero.engine.walk.matches import new_matches
from estero.engine.walk.roots import Roots
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Plan
from estero.recognize.recognition import Recognition

HERE = Path(__file__).parent
FIGURES = HERE / "results" / "growth.json"
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
PIECE = 1 << 12
LEAST = 100_000
"""So many events are measured after a window has filled."""
REPEATED = 10_000
"""So many are measured of short streams, together."""
SINGLE = 512
"""The last ones come one by one: the most that one of them makes."""
READ = 10_000
"""So many items of answers are read, the first ones of each event."""
OCTAVE = tuple(2 ** (place / 4) for place in range(-2, 2))
"""Windows of numbers, in parts of a size."""
WINDOW = 10_000
"""Of queries with a window, when whole streams are timed."""


class Watched:
    """A recognition, and how much its runs have ever made, though what is out of reach is dropped."""

    def __init__(self, plan: Plan, events: Sequence[pa.RecordBatch]) -> None:
        self.recognition = Recognition(plan, events[0].schema)
        self.runs: Runs = self.recognition.recognizer.runs
        self._counts = plan.tree.limit is not None
        self._dropped = 0

    @property
    def made(self) -> int:
        """Nodes, entries and products ever made, how often entries were looked at, and nodes were counted.

        What LIMIT … PER leaves out is counted: nodes below which some complex events have left the window.
        """
        counted = self.runs.counter.steps if self._counts else 0
        return self._dropped + in_use(self.runs) + counted

    @property
    def states(self) -> int:
        """States in which an automaton has runs, or those of all spans, or how many runs are told apart."""
        match self.runs:
            case PlainRuns() | AgedRuns():
                pool = self.runs.store.entries  # a snapshot would go through all nodes
                return int(pool.next.size - pool.free[1])
            case StartRuns():
                groups = self.runs._groups  # noqa: SLF001 - the same
                return int(groups.next.size - groups.free[1])
            case SpanRuns():
                members = self.runs.store.members
                return int(members.next.size - members.free[1])
            case SplitRuns():
                elements = self.runs.store.elements
                return int(elements.next.size - elements.free[1])
            case _:
                return 0

    def push(self, events: Sequence[pa.RecordBatch]) -> Iterator[Roots]:
        """Recognises batch after batch."""
        load, ensure_capacity = self.runs.load, self.runs.ensure_capacity

        def loaded(*given: Any) -> None:
            before = in_use(self.runs)
            load(*given)
            self._dropped += before - in_use(self.runs)

        def with_capacity(held: Sequence[Roots] | None) -> None:
            before = in_use(self.runs)
            ensure_capacity(held)
            self._dropped += before - in_use(self.runs)

        with mock.patch.multiple(self.runs, load=loaded, ensure_capacity=with_capacity):
            for batch in events:
                for ended in self.recognition.recognize(batch):
                    if ended.sifted is None:  # else it was listed to choose among it
                        yield ended.roots

    def read(self, roots: Roots) -> tuple[int, int]:
        """Steps to the first two complex events, and their items."""
        looked = self.made
        found = self.recognition.recognizer.matches(roots, 2, first_batch=1)
        items = sum(matches.event.size for matches in found)
        return found.steps + self.made - looked, items

    def widest_gap(self, roots: Roots, most: int) -> tuple[float, int]:
        """The most steps to the next complex event, for an item of it and one more; and how many were listed.

        At most `most` are listed, one by one.
        """
        listing = self.recognition.recognizer.matches(roots)
        matches, sizes = new_matches(1, 64), np.zeros(2, np.int64)
        widest, listed = 0.0, 0
        before = listing.steps + self.made
        while listed < most:
            sizes[:] = 0
            code = listing.fill(matches, sizes)
            if sizes[0] == 0 and code == DONE:
                break
            if sizes[0] == 0:
                matches = new_matches(1, 2 * matches.event.size)
                continue
            after = listing.steps + self.made
            widest = max(widest, (after - before) / (int(sizes[1]) + 1))
            before, listed = after, listed + 1
        return widest, listed


def in_use(runs: Runs) -> int:
    """Nodes, entries and products that are held, and how often entries were looked at."""
    match runs:
        case CeaRuns() | StartRuns():
            return int(runs.arena.size[0])
        case ChainRuns():
            return int(runs.nodes.size.sum() + runs.entries.size[0] + runs.entries.looked[0])
        case PceaRuns():
            return int(runs.products.size[0] + runs.nodes.size[0])
        case _:
            raise TypeError(f"no one knows what {type(runs).__name__} make")


# -------------------------------------------------------------------------------------- recognition


def recognized(row: Row, size: int) -> Point:
    """What an event makes, in a window of `size` that is full, or after so many events of a stream."""
    measured = size // 4
    if row.windowed:
        measured = size * -(-LEAST // size) - SINGLE if row.falling else LEAST
    turns = 1 if row.windowed else max(1, REPEATED // measured)
    each = size + measured + SINGLE
    plan, events = classified(row, turns * each, size)
    made = most = steps = items = listed = 0
    gap = 0.0
    states: list[int] = []
    seconds = 0.0
    for begin in range(0, turns * each, each):
        watched = Watched(plan, events)
        _read(watched.push(pieces(events, begin, begin + size)))
        before, began = watched.made, time.perf_counter()
        _read(watched.push(pieces(events, begin + size, begin + size + measured)))
        seconds += time.perf_counter() - began
        made += watched.made - before
        states.append(watched.states)
        if begin + each < turns * each:
            continue
        for place in range(begin + size + measured, begin + each):
            before = watched.made
            for roots in watched.push(pieces(events, place, place + 1)):
                made_here = watched.made
                most = max(most, made_here - before)
                if items < READ:
                    of_roots = watched.read(roots)
                    steps, items = steps + of_roots[0], items + of_roots[1]
                if listed < LISTED and roots.event.size:
                    widest, more = watched.widest_gap(roots, LISTED - listed)
                    gap, listed = max(gap, widest), listed + more
                before += watched.made - made_here  # listing looks at entries, too
            most = max(most, watched.made - before)
            states.append(watched.states)
    count = turns * measured
    nodes = made / count + sum(states) / len(states)
    per_item = round(steps / items, 3) if items else None
    return Point(
        size,
        round(nodes, 4),
        most,
        per_item,
        round(seconds / count * 1e9, 1),
        round(gap, 2) if listed else None,
    )


def classified(row: Row, count: int, size: int) -> tuple[Plan, list[pa.RecordBatch]]:
    """The plan of a query, and so many events as its classification has them."""
    source = open_source(row.events(count, size), EventLayout.of(**row.columns))
    plan = estero.query(row.text(size)).plan(source.layout)
    events = list(source.read(plan.classification))
    if sum(batch.num_rows for batch in events) < count:
        raise ValueError(f"{row.name}: some events do not matter, so that fewer than {count:,} are measured")
    return plan, events


def pieces(events: Sequence[pa.RecordBatch], first: int, last: int) -> list[pa.RecordBatch]:
    """The events number `first` … `last` - 1, all of which matter, in pieces."""
    found, before = [], 0
    for batch in events:
        low, high = max(first - before, 0), min(last - before, batch.num_rows)
        found += [batch.slice(start, min(PIECE, high - start)) for start in range(low, high, PIECE)]
        before += batch.num_rows
    return found


def _read(found: Iterator[Roots]) -> None:
    for _ in found:
        pass


# ------------------------------------------------------------------------------------------ numbers


class Remembered(LongCounts):
    """Long counts, all of which are known here."""

    known: list[Remembered] = []  # noqa: RUF012 - emptied before each use

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.known.append(self)
        self._past: list[tuple[dict[Any, Any], ...]] = []

    def go_on(self, *given: Any) -> None:
        """As it goes on; what it drops is remembered here."""
        known = self._ways, self._stairs, self._inside
        super().go_on(*given)
        if self._ways is not known[0]:
            self._past.append(known)

    @property
    def words(self) -> int:
        """Words of 64 bits in the numbers that were worked out beyond words."""
        known = zip(*self._past, (self._ways, self._stairs, self._inside), strict=True)
        ways, stairs, inside = (dict(chain.from_iterable(each.items() for each in kind)) for kind in known)
        numbers = [number for table in (*ways.values(), *stairs.values()) for number in table.flat]
        return sum(-(-number.bit_length() // 64) for number in (*numbers, *inside.values()))


def counted(row: Row, size: int) -> Point:
    """What the number of an answer costs for an event behind the first window.

    One step in words, and words of longer numbers, the mean over windows of about that size: blocks are as
    long as powers of two, and words vary by a sixth with how windows lie to them.
    """
    nodes, ns = zip(*(counted_in(row, round(size * part)) for part in OCTAVE), strict=True)
    return Point(size, round(sum(nodes) / len(nodes), 4), None, None, round(sum(ns) / len(ns), 1))


def counted_in(row: Row, window: int) -> tuple[float, float]:
    """The same for one window, and nanoseconds for an event."""
    count = window + max(window, LEAST)
    filling, _ = words_and_seconds(row, window, window)
    words, seconds = words_and_seconds(row, window, count)
    return 1 + (words - filling) / (count - window), seconds / count * 1e9


def words_and_seconds(row: Row, size: int, count: int) -> tuple[int, float]:
    """Of the number of an answer over so many events."""
    table, query = row.events(count, size), estero.query(row.text(size))
    answer = query.run(table, **row.columns)
    Remembered.known.clear()
    with mock.patch.object(tally, "LongCounts", Remembered):
        began = time.process_time()
        (answer.share(1, 2) if row.asked == "count a share" else answer).count()
        seconds = time.process_time() - began
    words = sum(each.words for each in Remembered.known)
    Remembered.known.clear()
    return words, seconds


# ---------------------------------------------------------------------------------------------- main


def rate(row: Row, count: int) -> float:
    """Events a second from the text and a table in memory, classification included, to the last of them.

    Numbers in processor time, which says more of them where other programs run.
    """
    clock = time.perf_counter if row.asked == "recognize" else time.process_time
    table = row.events(count, count)
    query = estero.query(row.text(min(WINDOW, row.largest, count)))
    began = clock()
    answer = query.run(table, **row.columns)
    if row.asked == "recognize":
        recognizer = query.recognizer(table, **row.columns)
        for batch in table.to_batches(max_chunksize=1 << 16):
            recognizer.push(batch)
    else:
        (answer.share(1, 2) if row.asked == "count a share" else answer).count()
    return count / (clock() - began)


def measured(row: Row, largest: int) -> dict[str, Any]:
    """Checks a row, compiles by its smallest size, then measures it."""
    check(row)
    point = recognized if row.asked == "recognize" else counted
    point(row, SIZES[0])
    points = []
    for size in (size for size in SIZES if size <= min(largest, row.largest)):
        points.append(point(row, size))
        print(f"{row.name}, {size:,}: {points[-1]}", flush=True)
    plan, _ = classified(row, 10, 10)
    return {
        "name": row.name,
        "kernels": plan.kernels,
        "asked": row.asked,
        "over": "w" if row.windowed else "n",
        "shape": row.shape or PROMISED[plan.kernels],
        "rate": round(rate(row, largest if row.largest >= largest else min(largest, LEAST))),
        "points": [each._asdict() for each in points],
    }


def among_others(lines: list[dict[str, Any]], setting: dict[str, str], only: str) -> dict[str, Any]:
    """The figures that are there, with these lines in them; refused where others made them."""
    figures: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    before = figures["setting"]
    if any(before[name] != setting[name] for name in ("machine", "versions")):
        raise SystemExit(f"the other rows are of another machine or other versions: {before}")
    anew = {line["name"]: line for line in lines}
    figures["curves"] = [anew.pop(curve["name"], curve) for curve in figures["curves"]]
    if anew:
        raise SystemExit(f"these rows have no place among those of {FIGURES.name}: {', '.join(anew)}")
    said = "; ".join(
        (f"rows with `{only}`", *(setting[name] for name in ("took", "times") if name in setting))
    )
    figures["setting"] = before | {"measured anew": said}
    return figures


def main() -> None:
    """Checks, counts, times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="no larger windows and streams")
    parser.add_argument("--only", default="", help="a part of the queries to run; others stay written")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    parser.add_argument("--write", action="store_true", help="write GROWTH.md, growth.svg and growth.json")
    asked = parser.parse_args()
    began = time.perf_counter()
    lines = [measured(row, asked.largest) for row in ROWS if asked.only in row.name]
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "duckdb")),
        "took": f"{time.perf_counter() - began:.0f} s",
    }
    if asked.note:
        setting["times"] = asked.note
    figures = {"setting": setting, "curves": lines}
    if asked.write and asked.only:
        figures = among_others(lines, setting, asked.only)
    print(page(figures))
    if asked.write:
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        FIGURES.write_text(f"{text}\n", encoding="utf-8")
        (HERE / "GROWTH.md").write_text(page(figures), encoding="utf-8")
        picture(figures).save(HERE / "results" / "growth.svg")


if __name__ == "__main__":
    main()
