"""Long streams with many keys: restarted, held and made smaller on the way, recognition finds the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.queries.texts import query
from estero.recognize import state as going_on
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type

Counts = list[tuple[int, int]]
Begin = Callable[[bytes | None], Recognition]


def stream(count: int) -> pa.Table:
    drawn = np.random.default_rng(3)
    return pa.table(
        {
            "type": drawn.choice(["A", "B", "C"], count),
            "time": np.arange(count) * 3,
            "k": drawn.integers(0, 200, count),
            "n": drawn.integers(0, 1000, count),
            "m": drawn.integers(0, 5, count),
        }
    )


def prepared(text: str) -> tuple[Begin, pa.Table]:
    """How recognition of a query begins, and the classified stream."""
    source = open_source(stream(12_000), EventLayout.of(type="type", time="time", time_unit="ms"))
    plan = query(text).plan(source.layout)
    columns = source.classified_schema(plan.classification)
    classified = pa.Table.from_batches(source.read(plan.classification)).combine_chunks()

    def begin(state: bytes | None) -> Recognition:
        return Recognition(plan, columns, time=time_type(source), state=state)

    return begin, classified


def batches(classified: pa.Table) -> list[pa.RecordBatch]:
    """The stream in batches of very different sizes."""
    drawn = random.Random(1)
    found, first = [], 0
    while first < classified.num_rows:
        size = drawn.choice([1, 50, 700, 3000])
        found += classified.slice(first, size).to_batches()
        first += size
    return found


def going_through(begin: Begin, classified: pa.Table) -> Counts:
    recognition = begin(None)
    return [
        count
        for batch in batches(classified)
        for ended in recognition.recognize(batch)
        for count in recognition.reader.counts(ended)
    ]


def restarting(begin: Begin, classified: pa.Table) -> Counts:
    counts: Counts = []
    state: bytes | None = None
    for batch in batches(classified):
        recognition = begin(state)
        for ended in recognition.recognize(batch):
            counts += recognition.reader.counts(ended)
        state = recognition.snapshot()
    return counts


def holding(begin: Begin, classified: pa.Table) -> Counts:
    """What is found is asked for when its batch is over, twice, and what is out of reach is let go often."""
    counts: Counts = []
    recognition = begin(None)
    recognition.recognizer.holding = True
    for batch in batches(classified):
        recognition.let_go()
        found = list(recognition.recognize(batch))
        first = [count for ended in found for count in recognition.reader.counts(ended)]
        assert [count for ended in found for count in recognition.reader.counts(ended)] == first
        counts += first
    return counts


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY [k] WITHIN 3 SECONDS",
        "SELECT NEXT * WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [k] WITHIN 3 SECONDS",
        "SELECT * WHERE A AS a ; B+ AS b ; C FILTER a.n < b.n AND count(b) < 3 WITHIN 18 [time]",
        "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY [k] WITHIN 3 SECONDS CONSUME BY ANY",
        "SELECT * WHERE A AS a : B AS b ; C AS c WITHIN 50 EVENTS",
        "SELECT * WHERE A AS a ; B AS b ; C FILTER a.k = b.k AND b.k = C.k AND a.n < b.n WITHIN 2 SECONDS",
        "SELECT * WHERE A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k WITHIN 2 SECONDS",
        "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n != b.n AND a.m != b.m",
    ],
)
def test_a_long_stream_has_one_answer_however_it_is_gone_through(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(going_on, "_FEW", 64)
    begin, classified = prepared(text)
    expected = going_through(begin, classified)
    assert len(expected) > 50
    assert restarting(begin, classified) == expected
    assert holding(begin, classified) == expected
