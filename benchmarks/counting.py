"""``python -m benchmarks.counting``: what numbers and single complex events cost, over windows of any length.

Over evenly drawn A, B and C, of which all matter: seconds to recognize alone, to count, to count one share of
two, to the first complex event of that share, to the complex event in the middle of the answer, and for ten
drawn ones. Before anything is timed, numbers are compared with those of a plain program, and so is the end of
the complex event in the middle. Prints a table, and writes it as JSON to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import estero
from estero.answers.answer import Answer
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.recognize.recognition import Recognition

WINDOWS = (100, 1_000, 10_000, 100_000, 1_000_000)
CHECKED = 3_000
PLAIN = "A AS a ; B AS b ; C AS c"
ITERATION = "A AS a ; B+ AS b ; C AS c"


class Wrong(Exception):
    """A number is not what it must be: nothing is timed."""


def kinds_of(events: int) -> NDArray[np.int64]:
    """Evenly drawn 0, 1 and 2, for A, B and C."""
    return np.random.default_rng(1).integers(0, 3, events)


def table_of(events: int) -> pa.Table:
    """The same as events."""
    return pa.table({"type": np.array(list("ABC"))[kinds_of(events)], "t": np.arange(events)})


def text_of(pattern: str, window: int) -> str:
    """The query."""
    return f"SELECT * WHERE {pattern} WITHIN {window} EVENTS"


def answer_over(pattern: str, window: int, events: int) -> Answer:
    """The answer that is asked."""
    return estero.query(text_of(pattern, window)).run(table_of(events), type="type", time="t")


def plain_counts(pattern: str, window: int, events: int) -> list[int]:
    """How many complex events end at each event: for each A before it those with some of the B's between."""
    kinds = kinds_of(events).tolist()
    counts = []
    for end, kind in enumerate(kinds):
        count = between = 0
        for start in range(end - 1, max(end - window, 0) - 1, -1) if kind == 2 else ():
            between += kinds[start] == 1
            if kinds[start] == 0:
                count += between if pattern == PLAIN else 2**between - 1
        counts.append(count)
    return counts


def check(pattern: str, window: int, events: int = CHECKED) -> None:
    """Compares numbers with a plain program's; raises `Wrong`."""
    answer, counts = answer_over(pattern, window, events), plain_counts(pattern, window, events)
    total, before = sum(counts), list(accumulate(counts))
    if answer.count() != total or sum(answer.share(number, 7).count() for number in range(7)) != total:
        raise Wrong(f"{pattern}, {window:,} events: {answer.count()} complex events, not {total}")
    for index in (0, total // 3, total - 1):
        if answer[index].end != bisect_right(before, index):
            raise Wrong(f"{pattern}, {window:,} events: complex event {index} ends at {answer[index].end}")


def seconds(ask: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    ask()
    return time.perf_counter() - begun


def recognize(pattern: str, window: int, events: int) -> None:
    """Recognizes alone."""
    source = open_source(table_of(events), EventLayout.of(type="type", time="t"))
    plan = estero.query(text_of(pattern, window)).plan(source.layout)
    recognition = Recognition(plan, source.classified_schema(plan.classification))
    for batch in source.read(plan.classification):
        for _ in recognition.recognize(batch):
            pass


def measured(pattern: str, window: int, events: int) -> dict[str, Any]:
    """Each question is asked of an answer that knows nothing yet."""

    def fresh() -> Answer:
        return answer_over(pattern, window, events)

    total = fresh().count()  # what is imported late is imported here
    questions: dict[str, Callable[[], object]] = {
        "recognize": lambda: recognize(pattern, window, events),
        "count": lambda: fresh().count(),
        "count a share": lambda: fresh().share(1, 2).count(),
        "first of a share": lambda: next(iter(fresh().share(1, 2))),
        "the one in the middle": lambda: fresh()[total // 2],
        "ten drawn": lambda: list(fresh().sample(10, seed=1)),
    }
    taken = {name: round(seconds(ask), 3) for name, ask in questions.items()}
    return {"pattern": pattern, "window": window, "events": events, "bits": total.bit_length(), **taken}


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--largest", type=int, default=100_000, help="no larger windows")
    parser.add_argument("--out", type=Path, default=None, help="where to write the figures, as JSON")
    asked = parser.parse_args()
    rows = []
    for pattern in (PLAIN, ITERATION):
        for window in (window for window in WINDOWS if window <= asked.largest):
            check(pattern, window)
            rows.append(measured(pattern, window, asked.events))
            print(json.dumps(rows[-1]), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
