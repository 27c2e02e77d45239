"""Which events matter, beside their definition; and that a long stream is read without the others."""

from __future__ import annotations

from itertools import combinations_with_replacement
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.automata.needs import Need, needs
from estero.classify.vectors import within_reach as module
from estero.classify.vectors.within_reach import within_reach
from estero.events.sources import Source
from estero.plan.plan import Layout, Window
from estero.plan.reach import Reach, reach_of
from estero.recognize import source_run

BITS = st.frozensets(st.sampled_from([0, 1, 62, 63, 64]), min_size=1, max_size=2)
NEEDS = st.builds(
    lambda kinds, side: Need(kinds, first=side == "first", last=side == "last"),
    st.frozensets(BITS, min_size=1, max_size=3),
    st.sampled_from(["first", "last", ""]),
)
NUMBER = 100_000


def is_near(need: Need, event: int, stamps: list[int], bits: list[frozenset[int]], length: int) -> bool:
    """Whether an event has what is needed before it or after it, or may have it in another batch."""
    marked = [place for place, own in enumerate(bits) if any(kind <= own for kind in need.kinds)]
    if not need.last and stamps[event] - length <= max(
        [stamps[0], *(stamps[place] for place in marked if place <= event)]
    ):
        return True
    return not need.first and stamps[event] + length >= min(
        [stamps[-1], *(stamps[place] for place in marked if place >= event)]
    )


def is_served(need: Need, span: list[frozenset[int]]) -> bool:
    """Whether events that a complex event spans have what is needed."""
    able = span[:1] if need.first else span[-1:] if need.last else span
    return any(kind <= own for own in able for kind in need.kinds)


@given(
    st.lists(NEEDS, min_size=1, max_size=3),
    st.lists(
        st.tuples(st.integers(0, 5), st.frozensets(st.sampled_from([0, 1, 2, 62, 63, 64]))),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 9),
)
def test_events_matter_that_have_all_needs_near(
    asked: list[Need], events: list[tuple[int, frozenset[int]]], length: int
) -> None:
    stamps = np.cumsum([step for step, _ in events])
    bits = [own for _, own in events]
    words = [
        np.array([sum(1 << bit % 63 for bit in own if bit // 63 == word) for own in bits]) for word in (0, 1)
    ]
    with patch.object(module, "_RARE", 10**9):
        kept = within_reach(Reach(tuple(asked), Window(length, in_positions=True)), stamps, words)
    near = {
        event
        for event in range(len(events))
        if all(is_near(need, event, stamps.tolist(), bits, length) for need in asked)
    }
    if kept is not None and len(asked) == 1:
        assert near == set(kept.tolist())
    if kept is not None:
        for first, last in combinations_with_replacement(range(len(events)), 2):
            if stamps[last] - stamps[first] <= length and all(
                is_served(need, bits[first : last + 1]) for need in asked
            ):
                assert set(range(first, last + 1)) <= set(kept.tolist())


def test_limits_of_64_bits_leave_nothing_out() -> None:
    stamps = np.array([-(2**63), 0, 2**63 - 1])
    need = Need(frozenset({frozenset({0})}), last=True)
    assert within_reach(Reach((need,), Window(5)), stamps, [np.array([0, 1, 0])]) is None


@pytest.mark.parametrize("window", ["5 EVENTS", "5 [t]"])
@pytest.mark.parametrize("condition", ["b.n = 7", "b.n % 1000 = 7"])
def test_a_long_stream_is_read_without_the_others(window: str, condition: str) -> None:
    """With a condition of plain comparisons, and with one that is SQL's."""
    number = np.arange(NUMBER)
    table = pa.table({"type": np.where(number % 2, "A", "B"), "t": number, "n": number % 10_000})
    query = estero.query(
        f"SELECT * WHERE A AS a ; B AS b FILTER {condition.replace('b.n', 'b[n')}] WITHIN {window}"
    )
    read, whole = [], Source.read

    def noted(*arguments: object) -> object:
        for batch in whole(*arguments):  # type: ignore[arg-type]
            read.append(batch.num_rows)
            yield batch

    def counted(many: int) -> tuple[int, int]:
        read.clear()
        with patch.object(Source, "read", noted), patch.object(source_run, "_MANY", many):
            return query.run(table, type="type", time="t").count(), sum(read)

    (all_found, all_read), (found, few_read) = counted(10 * NUMBER), counted(source_run._MANY)
    assert found == all_found
    assert few_read < all_read // 10


def test_what_looks_beyond_the_window_reads_all() -> None:
    for text in (
        "SELECT * WHERE A ; B",
        "SELECT * WHERE START(A ; B) WITHIN 5 EVENTS",
        "SELECT * WHERE A ; NOT(B) FOR 5 SECONDS WITHIN 1 MINUTE",
    ):
        plan = estero.query(text).plan(layout())
        assert reach_of(plan) is None, text


def layout() -> Layout:
    """That of events with a type and a time."""
    from estero.events.sources import open_source
    from estero.language.tree.schema import EventLayout

    table = pa.table({"type": ["A"], "t": pa.array([0], pa.timestamp("s"))})
    return open_source(table, EventLayout.of(type="type", time="t")).layout


def test_needs_are_what_every_run_has() -> None:
    plan = estero.query("SELECT * WHERE (A OR B) ; C ; (D OR E) WITHIN 5 EVENTS").plan(layout())
    assert needs(plan.machine) == (
        Need(frozenset({frozenset({0}), frozenset({1})}), first=True),
        Need(frozenset({frozenset({3}), frozenset({4})}), last=True),
        Need(frozenset({frozenset({2})})),
    )
