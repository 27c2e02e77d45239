"""Kernels that are not compiled compute what compiled ones do, however many bits their columns have."""

from __future__ import annotations

import numpy as np
import pytest

import estero
from engine import chain_steps, pcea_runs
from engine.narrow_numbers import Narrow, NarrowColumn, NarrowError, narrow_numbers_watched
from estero import testing
from estero.engine.cursor import CONSUME_ANY
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_chain import ChainStep
from estero.engine.runs.joined.run_pcea import Transition

WIDE = 200
"""So many transitions end at an event; eight bits count 127."""

LETTERS = "ABACBABCAABCBCAB"
EVENTS = testing.events(
    " ".join(f"{each}(k={place % 2}, v={place * 7 % 5})@{place}s" for place, each in enumerate(LETTERS))
)

QUERIES = {
    "one event at a time": "SELECT * WHERE A+ ; B WITHIN 9 EVENTS",
    "forgotten": "SELECT * WHERE A ; B PARTITION BY [k] CONSUME BY PARTITION",
    "contiguous": "SELECT * WHERE A : B : A",
    "registers": "SELECT NEXT * WHERE (A AS a) ; (B AS b)+ ; C AS c FILTER b.v >= prev(b.v) AND a.v < c.v",
    "spans": "SELECT MAX * WHERE A+ ; B+ WITHIN 9 EVENTS",
    "ages": "SELECT * WHERE (A OR B)+[<= 2 SECONDS] ; C",
    "starts": "SELECT LONGEST DISJOINT * WHERE A ; B+ WITHIN 8 SECONDS",
    "shortest": "SELECT SHORTEST * WHERE A ; (B OR C)+ ; C WITHIN 8 SECONDS",
    "deadlines": "SELECT * WHERE A ; NOT(C) FOR 2 SECONDS ; B",
    "joins": "SELECT * WHERE (A AS a ALL B AS b ALL C AS c) FILTER a.k = b.k AND b.k = c.k WITHIN 9 EVENTS",
    "lists": "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.v != b.v",
    "orders": "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.v < b.v WITHIN 9 EVENTS",
    "throttled": "SELECT * WHERE A ; B WITHIN 9 SECONDS LIMIT 2 PER 3 SECONDS",
    "atoms": "Q(x) <- A(x, _), B(x, _), A(x, _)",
}


@pytest.mark.parametrize("name", QUERIES)
def test_no_kernel_computes_with_narrow_numbers(name: str) -> None:
    asked = estero.query(QUERIES[name])
    with narrow_numbers_watched():
        answer = asked.run(EVENTS, type="type", time="time")
        found = answer.to_arrow()
        counted, sampled = answer.count(), answer.sample(2).count()
        recognizer = asked.recognizer(EVENTS.schema, type="type", time="time")
        pushed = [recognizer.push(EVENTS.slice(0, 9)).count()]
        recognizer = estero.restore(asked, recognizer.snapshot())
        pushed += [recognizer.push(EVENTS.slice(9)).count(), recognizer.close().count()]
    assert counted == sum(pushed) == found.num_rows > 0
    assert sampled == min(2, counted)


def test_levels_and_long_counts_are_watched() -> None:
    many = testing.events("A " * 200 + "B")
    asked = estero.query("SELECT * WHERE A+ ; B WITHIN 300 EVENTS")
    with narrow_numbers_watched():
        answer = asked.run(many, type="type")
        assert answer.count() == 2**200 - 1
        assert asked.run(many, type="type").funnel().to_arrow().num_rows == 2


def test_an_event_may_end_more_runs_than_eight_bits_count() -> None:
    """All of them are reported, and what they are made of is forgotten."""
    marks = range(1, 1 + WIDE)
    chain = chain_steps.Chain(2, (ChainStep(None, 0, 0, 0), *(ChainStep(0, 1, m, 1) for m in marks)), (1,))
    joins = (Transition([], 0, 0, 0), *(Transition([(0, 0, 0)], 1, m, 1) for m in marks))
    pcea = pcea_runs.Pcea(2, joins, (1,))
    with narrow_numbers_watched():
        listed = Recognizer(ChainRuns(chain.tables, capacity=512, consume=CONSUME_ANY))
        ends = [end for end, _ in chain_steps.recognized(listed, chain_steps.events_of("ABB"))]
        heaped = Recognizer(PceaRuns(pcea.tables, None, capacity=512, consume=CONSUME_ANY))
        others = [end for end, _ in pcea_runs.recognized(heaped, pcea_runs.events_of("ABB"))]
    assert ends == others == [1] * len(marks)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16])
def test_a_tiny_number_is_read_to_be_tested(dtype: type) -> None:
    number = np.array([1, 2], dtype).view(NarrowColumn)[1]
    assert isinstance(number, Narrow)
    assert number == 2
    with pytest.raises(NarrowError, match=r"__radd__ of a number of (8|16) bits"):
        0 + number


def test_a_total_of_narrow_numbers_begins_with_a_wide_one() -> None:
    column = np.array([1, 2, 3], np.int32).view(NarrowColumn)
    total = column[0] + column[1]
    with pytest.raises(NarrowError, match=r"let it begin with np.int64\(0\)"):
        total + column[2]
    assert np.int64(0) + column[0] + column[1] + column[2] == 6
    with pytest.raises(NarrowError, match="does not fit in 32 bits"):
        column[2] * 2**31
