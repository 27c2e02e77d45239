"""LIMIT behind filters: so many of each end as there are, and not much more is looked at."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import estero
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.rules import PlanName, plan_of
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type

TEXT = "SELECT * WHERE A AS a ; B AS b FILTER b.n > a.n AND b.m < a.m WITHIN 300 EVENTS"
PARTS = "SELECT * WHERE A AS a ; (B AS b FILTER b.n > a.n AND b.m < a.m)+ WITHIN 9 EVENTS"


def table(events: int, *, most: int = 50) -> pa.Table:
    draw = random.Random(3)
    rows = [
        {"type": draw.choice("AAB"), "n": draw.randrange(50), "m": draw.randrange(most)}
        for _ in range(events)
    ]
    return pa.Table.from_pylist(rows)


def run(text: str, events: pa.Table, only: PlanName) -> InProcessRun:
    source = open_source(events, EventLayout.of(type="type"))
    return InProcessRun(plan_of(estero.query(text).tree, source.layout, only=only), source)


def found(text: str, events: pa.Table, only: PlanName) -> Counter[tuple[int, str]]:
    rows = [row for each in run(text, events, only).tables() for row in each.to_pylist()]
    assert [row["end"] for row in rows] == sorted(row["end"] for row in rows)
    return Counter((row["end"], repr(sorted(row.items()))) for row in rows)


@pytest.mark.parametrize("limit", [1, 3, 40, 20_000])
@pytest.mark.parametrize(("text", "only"), [(TEXT, "chain"), (PARTS, "CEA")])
def test_each_end_has_as_many_as_there_are_or_the_limit(text: str, only: PlanName, limit: int) -> None:
    events = table(400)
    everything, limited = found(text, events, only), found(f"{text} LIMIT {limit}", events, only)
    assert limited <= everything
    counts = Counter(end for end, _ in everything.elements())
    expected = {end: min(limit, count) for end, count in counts.items()}
    assert Counter(end for end, _ in limited.elements()) == expected
    assert dict(run(f"{text} LIMIT {limit}", events, only).counts()) == expected


class LookedAt:
    """Counts what a recognizer enumerates."""

    def __init__(self, recognition: Recognition) -> None:
        self.count = 0
        self._matches = recognition.recognizer.matches

    def matches(self, roots: Roots, limit: int, capacity: int) -> Iterator[Matches]:
        for chunk in self._matches(roots, limit, capacity):
            self.count += len(chunk.start)
            yield chunk


def test_where_most_pass_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("b.m < a.m", "b.m <= a.m")
    asked = run(f"{text} LIMIT 1", table(3_000, most=2), "chain")
    events = asked.source.classified_schema(asked.plan.classification)
    recognition = Recognition(asked.plan, events, time=time_type(asked.source))
    looked = LookedAt(recognition)
    monkeypatch.setattr(recognition.recognizer, "matches", looked.matches)
    ends = 0
    for batch in asked.source.read(asked.plan.classification):
        ends += sum(each.num_rows for each in recognition.push(batch))
    everything = sum(count for _, count in run(text, table(3_000, most=2), "chain").counts())
    assert everything > 40 * ends
    assert looked.count < 8 * ends
