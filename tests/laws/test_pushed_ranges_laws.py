"""Several threads that recognize pushes give what one gives, also where a recognizer is restored."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from estero.answers.answer import Answer
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.recognize.threads import ranges
from estero.recognize.threads.pushed import PushedRanges
from estero.reference.queries import Event
from laws.test_plans_agree import layout_of
from laws.test_whole_queries import MOST
from strategies.joined import any_joined_queries
from strategies.patterns import TABLE, queries, streams, to_table
from strategies.whole import whole_queries

pytestmark = pytest.mark.long

LAYOUT = StreamLayout({"": TABLE}, EventLayout.of("type", "time", time_unit="s", only_type="A"))
WINDOWED = st.one_of(queries(), any_joined_queries(), whole_queries()).filter(lambda tree: tree.window)


def said(answer: Answer) -> list[str]:
    """All that an answer says: rows, their number, single rows, and shares."""
    rows = answer.to_arrow().to_pylist()
    count = answer.count()
    picked = [list(answer[place : place + 1]) for place in range(min(count, 3))]
    shares = [[list(part) for part in (answer.share(0, 2), answer.share(1, 2))]]
    return [repr(rows), repr(count), repr(picked), repr(shares)]


@settings(max_examples=MOST)
@given(
    tree=WINDOWED,
    events=streams(max_size=24),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    threads=st.sampled_from([2, 3, 8]),
    restored=st.booleans(),
)
def test_a_divided_push_is_that_of_one_thread(
    tree: QueryTree, events: list[Event], sizes: list[int], threads: int, restored: bool
) -> None:
    assume(tree.strategy not in (Strategy.LONGEST, Strategy.SHORTEST))
    plan = plan_of(replace(tree, select=None), layout_of())
    one = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source())
    several = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source(), threads=threads)
    first, turn = 0, 0
    while first < len(events):
        batch = to_table(events[first : first + sizes[turn % len(sizes)]])
        alone = said(one.push(batch))
        with patch.object(ranges, "SHORTEST", 1), patch.object(ranges, "HALOS", 1):
            assert said(several.push(batch)) == alone
        if restored:  # both, as the order within one end follows what is remembered
            one = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source(), state=read(one.snapshot()))
            state = read(several.snapshot())
            several = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source(), state=state, threads=threads)
        first, turn = first + batch.num_rows, turn + 1
    assert said(several.close()) == said(one.close())


@given(events=streams(min_size=16, max_size=16))
def test_there_are_pushes_that_are_divided(events: list[Event]) -> None:
    plan = plan_of(whole := _tree("SELECT * WHERE A ; B WITHIN 1 EVENTS"), layout_of())
    assert whole.window is not None
    recognizer = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source(), threads=2)
    asked = []
    whole_sets = PushedRanges._bounds  # what is divided, seen from outside

    def bounds(self: PushedRanges, stamps: NDArray[np.int64]) -> list[int]:
        asked.append(whole_sets(self, stamps))
        return asked[-1]

    with patch.object(ranges, "SHORTEST", 1), patch.object(PushedRanges, "_bounds", bounds):
        recognizer.push(to_table([replace(event, type="A") for event in events]))
    assert asked == [[0, 8, 16]]


def _tree(text: str) -> QueryTree:
    from estero.queries.texts import query

    return query(text).tree
