"""Recognition under MAX, NEXT and LAST without registers, against following every run alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.toys import Brute, Toy, ToyEvent, ToyRow, batch_of, recognized, streams, tiny_pools
from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import LazyAutomaton
from estero.automata.strategies import MaxAutomaton
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.recognizer import Recognizer
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.kinds import cea_runs
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.spans.run_spans import MAX
from estero.engine.runs.spans.span_runs import SpanRuns
from estero.engine.runs.split.ranks import LAST, NEXT
from estero.engine.store.arena import NONE, PREFER, Arena
from estero.engine.store.schema import new
from estero.engine.store.tecs import newer, output
from estero.language.syntax.parser import parse_pattern

A, B, C = 1, 2, 4
CONSUMES = (CONSUME_NONE, CONSUME_ANY, CONSUME_PARTITION, CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED)
ORDERS = (MAX, NEXT, LAST)

many = settings(max_examples=6 * settings().max_examples)


@st.composite
def automata(draw: st.DrawFn) -> CEA:
    """Automata without any sense over two bits; runs begin with or without a mark."""
    states = draw(st.integers(2, 5))
    labels = st.sampled_from([frozenset(), frozenset({"x"}), frozenset({"x"}), frozenset({"y"})])
    guards = st.sampled_from(
        [Guard(), Guard(frozenset({0})), Guard(frozenset({1})), Guard(frozenset(), frozenset({1}))]
    )
    steps = st.builds(Transition, st.integers(0, states - 2), guards, labels, st.integers(1, states - 1))
    stays = st.builds(
        lambda state: Transition(state, Guard(), frozenset(), state), st.integers(1, states - 1)
    )
    drawn = draw(st.lists(steps, min_size=2, max_size=9)), draw(st.lists(stays, max_size=states))
    transitions = tuple(dict.fromkeys(each for some in drawn for each in some if each.source < states - 1))
    predicates = (EventPredicate(("A", "B")), EventPredicate(("A",)))
    return CEA(states, frozenset({0}), frozenset({states - 1}), transitions, predicates)


def written_out(automaton: LazyAutomaton) -> Toy:
    """The same automaton, worked out for bits 0 to 3."""
    rows = {}
    state = 0
    while state < len(automaton.subsets):
        for bits in range(4):
            row = automaton.row(state, automaton.class_of(bits))
            rows[state, bits] = ToyRow(row.skip, row.edges)
        state += 1
    final = frozenset(number for number in range(state) if automaton.accepts(number))
    return Toy(rows, final, ((),) * len(automaton.label_sets))


def check(
    cea: CEA,
    events: Sequence[ToyEvent],
    cuts: Sequence[int],
    *,
    order: int,
    window: int | None,
    keyed: bool,
    consume: int,
) -> None:
    lazy = LazyAutomaton(cea)
    brute = Brute(written_out(lazy), window=window, order=order, consume=consume)
    automaton = MaxAutomaton(LazyAutomaton(cea)) if order == MAX else LazyAutomaton(cea)
    asked = Settings(window=window, keyed=keyed, consume=consume, order=order)
    with tiny_pools():
        found = recognized(automaton, asked, events, cuts)
    assert [set(each) for each in found] == brute.answers(events, keyed)
    assert all(len(set(each)) == len(each) for each in found)


@many
@given(
    automata(),
    streams(12, 0, 2),
    st.lists(st.integers(1, 12), max_size=3),
    st.sampled_from(ORDERS),
    st.none() | st.integers(0, 8),
    st.booleans(),
    st.sampled_from(CONSUMES),
)
def test_strategies_choose_in_every_window(
    cea: CEA,
    events: list[ToyEvent],
    cuts: list[int],
    order: int,
    window: int | None,
    keyed: bool,
    consume: int,
) -> None:
    check(cea, events, cuts, order=order, window=window, keyed=keyed, consume=consume)


LONG = [
    "A+ ; B",
    "A ; B+ ; C",
    "A+ ; B+ ; C",
    "A{3,} ; B",
    "A{2,4} ; B",
    "A ; B? ; C",
    "(A ; B)+ ; C",
    "(A OR B)+ ; (B OR C)+",
    "A ; B ; C",
    "A : B+ : C",
]


def stream(count: int) -> list[ToyEvent]:
    draw = random.Random(count)
    return [ToyEvent(draw.choice((A, B, C)), (), 0, place, place) for place in range(count)]


def engine_for(text: str, order: int, window: int | None) -> Recognizer[CeaRuns]:
    cea = compile_pattern(parse_pattern(text)).automaton
    automaton = MaxAutomaton(LazyAutomaton(cea)) if order == MAX else LazyAutomaton(cea)
    return Recognizer(cea_runs(automaton, Settings(window=window, order=order)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("text", LONG)
def test_windows_of_any_length_have_few_spans(text: str, order: int) -> None:
    engine = engine_for(text, order, 2_000)
    for _ in engine.push(batch_of(stream(6_000), 0)):
        pass
    assert isinstance(engine.runs, SpanRuns)
    spans = engine.runs.store.spans
    assert spans.next.size - spans.free[1] <= 8


@pytest.mark.parametrize("order", ORDERS)
def test_memory_follows_the_window(order: int) -> None:
    engine = engine_for("A ; B+ ; C", order, 50)
    capacities = []
    for first in range(0, 24_000, 1_000):
        events = [
            ToyEvent(each.bits, (), 0, first + each.ordinal, first + each.stamp) for each in stream(1_000)
        ]
        for _ in engine.push(batch_of(events, 0)):
            pass
        capacities.append(engine.runs.arena.kind.size)
    assert capacities[-1] == capacities[6]


@pytest.mark.parametrize("order", [NEXT, LAST])
def test_counting_one_of_a_long_window_takes_few_steps(order: int) -> None:
    engine = engine_for("A ; B+ ; C", order, 3_000)
    for roots in engine.push(batch_of(stream(5_000), 0)):
        assert engine.counts(roots) == [1] * len(roots.event)
    assert engine.runs.counter.steps == 0


def test_the_way_to_any_window_is_logarithmic() -> None:
    arena, count = new(Arena, 50_000), 10_000
    node = output(arena, 0, 0, NONE)
    for event in range(1, count):
        node = newer(arena, output(arena, 0, event, NONE), node, event - 1)
    for oldest in range(0, count, 97):
        here, steps = node, 0
        while arena.kind[here] <= PREFER:
            here = arena.right[here] if oldest <= arena.event[here] else arena.left[here]
            steps += 1
        assert arena.event[here] == oldest
        assert steps <= 3 * np.log2(count)
