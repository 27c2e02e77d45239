"""Events pushed out of order, in batches of any size, give the answer of the stream that they are.

However time is said to pass between them: what is behind it is late.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.reference.queries import Event
from laws.evaluators import by_end
from laws.test_plans_agree import check, layout_of
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import TABLE, queries, queries_by_start, streams, to_table
from strategies.steps import stepped_queries

MOST = settings.default.max_examples if settings.default else 10
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


class Naive:
    """The rule of lateness, word by word: what is late, and in which order the others are let go."""

    def __init__(self, lateness: int, *, strict: bool) -> None:
        self.lateness = lateness
        self.strict = strict
        self.times: list[int] = []
        self.closed: int | None = None
        self.held: list[tuple[int, int, Event]] = []
        self.gone: list[tuple[int, int, Event]] = []
        self.late = 0

    def push(self, events: list[Event], first: int) -> None:
        before, closed = self.watermark, self.closed
        last = self.gone[-1][0] if self.gone else None
        for number, event in enumerate(events, first):
            assert event.time is not None
            behind = before is not None and event.time < before
            passed = self.strict or (last is not None and event.time < last)
            if behind and (passed or (closed is not None and event.time < closed)):
                self.late += 1
                continue
            self.times.append(event.time)
            self.held.append((event.time, number, event))
        self.let_go(self.watermark)

    @property
    def watermark(self) -> int | None:
        behind = [max(self.times) - self.lateness] if self.times else []
        return max([*behind, *([] if self.closed is None else [self.closed])], default=None)

    def advance(self, time: int) -> None:
        self.closed = time if self.closed is None else max(time, self.closed)
        self.let_go(self.watermark)

    def let_go(self, until: int | None) -> None:
        ready = [each for each in self.held if until is not None and each[0] <= until]
        self.held = [each for each in self.held if each not in ready]
        self.gone += sorted(ready, key=lambda each: each[:2])


@settings(max_examples=min(30, MOST))
@given(
    tree=st.one_of(
        queries(),
        stepped_queries(),
        full_queries(max_operators=3),
        joined_queries(),
        queries_by_start(windowed=True),
    ),
    events=streams(max_size=12),
    data=st.data(),
    sizes=SIZES,
    lateness=st.integers(0, 6),
)
def test_pushed_events_have_the_answer_of_their_stream(
    tree: QueryTree, events: list[Event], data: st.DataObject, sizes: list[int], lateness: int
) -> None:
    tree = replace(tree, select=None)
    arriving = data.draw(st.permutations(events))
    columns = EventLayout.of("type", "time", time_unit="s", only_type="A")
    layout = StreamLayout({"": TABLE}, columns, lateness)
    plan = plan_of(tree, layout_of())
    recognizer = ContinuousRecognizer(plan, layout, layout.source())
    naive = Naive(lateness, strict=plan.decides_later)
    answers = []
    first, turn = 0, 0
    while first < len(arriving):
        batch = arriving[first : first + sizes[turn % len(sizes)]]
        answers += list(recognizer.push(to_table(batch)).batches())
        naive.push(batch, first)
        assert (recognizer.late, recognizer.held_back) == (naive.late, len(naive.held))
        if data.draw(st.booleans()):
            time = data.draw(st.integers(-2, 12))
            answers += list(recognizer.advance(time).batches())
            naive.advance(time)
            assert (recognizer.watermark, recognizer.held_back) == (naive.watermark, len(naive.held))
        if data.draw(st.booleans()):
            state = recognizer.snapshot()
            recognizer = ContinuousRecognizer(plan, layout, layout.source(), state=read(state))
            assert recognizer.snapshot() == state
        first += len(batch)
        turn += 1
    answers += list(recognizer.close().batches())
    naive.let_go(max(naive.times, default=None))
    check(tree, [event for _, _, event in naive.gone], by_end(answers))
