"""Recognition with registers and with NEXT and LAST, against following every run alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.toys import (
    Brute,
    Found,
    Steps,
    Toy,
    ToyEvent,
    ToyRow,
    batch_of,
    recognized,
    streams,
    tiny_pools,
    toys,
)
from estero.automata.registers import Action
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
from estero.engine.runs.split import registers
from estero.engine.runs.split.ranks import LAST, NEXT, NO_ORDER
from estero.engine.runs.split.registers import EQUAL, GREATER, STORE, program_of
from estero.engine.store.arena import NONE, UNION, Arena, mark_live, move_live
from estero.engine.store.schema import new

A, B, C = 1, 2, 3
CONSUMES = (CONSUME_NONE, CONSUME_ANY, CONSUME_PARTITION, CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED)


def check(
    toy: Toy,
    events: Sequence[ToyEvent],
    cuts: Sequence[int] = (),
    *,
    window: int | None = None,
    gaps: bool = False,
    keyed: bool = False,
    order: int = NO_ORDER,
    visible: Sequence[bool] = (),
    consume: int = CONSUME_NONE,
    first_bit: int | None = None,
    ordinals: bool = False,
) -> None:
    settings = Settings(
        window=window,
        gaps=gaps,
        keyed=keyed,
        consume=consume,
        registers=toy.tables() if toy.registers else None,
        order=order,
        visible=np.array(visible, np.bool_) if visible else None,
        first_bit=first_bit,
        ordinals=ordinals,
    )
    brute = Brute(
        toy,
        window=window,
        gaps=gaps,
        order=order,
        visible=visible,
        consume=consume,
        first_bit=first_bit,
        ordinals=ordinals,
    )
    with tiny_pools():
        found = recognized(toy, settings, events, cuts)
    assert [set(each) for each in found] == brute.answers(events, keyed)
    assert all(len(set(each)) == len(each) for each in found)


many = settings(max_examples=6 * settings().max_examples)
cuts = st.lists(st.integers(1, 12), max_size=3)
windows = st.none() | st.integers(0, 8)
visibility = st.just(()) | st.tuples(st.booleans(), st.booleans(), st.booleans())


def sequence(letters: Sequence[int], repeats: Sequence[int], steps: Steps = ((), (), ())) -> Toy:
    """One event after the other, those at the places `repeats` repeat; letter n has label set n - 1."""
    rows = {}
    for state, letter in enumerate(letters):
        for bits in (A, B, C):
            edges = [(letter - 1, state + 1)] if bits == letter else []
            if state - 1 in repeats and bits == letters[state - 1]:
                edges.append((bits - 1, state))
            rows[state, bits] = ToyRow(-1 if state == 0 else state, tuple(sorted(edges)))
    registers = 1 + max((step[1] for each in steps for step in each), default=-1)
    return Toy(rows, frozenset({len(letters)}), steps, registers)


def stream(bits: Sequence[int], values: Sequence[int | None] | None = None) -> list[ToyEvent]:
    return [
        ToyEvent(each, (values[place],) if values else (), 0, place, place) for place, each in enumerate(bits)
    ]


def marked(found: Sequence[Sequence[Found]]) -> list[list[list[int]]]:
    return [[[event for event, _ in marks] for _, _, marks in each] for each in found]


def test_an_event_joins_those_with_its_value_and_those_without_one() -> None:
    toy = sequence([A, B], [], (((STORE, 0, 0),), ((EQUAL, 0, 0),), ()))
    events = stream([A, A, A, B, B], [7, 8, None, 8, None])
    settings = Settings(registers=toy.tables())
    assert marked(recognized(toy, settings, events)) == [[], [], [], [[1, 3]], []]


def test_rising_values_are_followed_from_every_start() -> None:
    toy = sequence([A, B], [0], (((GREATER, 0, 0), (STORE, 0, 0)), ((GREATER, 0, 0),), ()))
    events = stream([A, A, A, B], [1, 3, 2, 4])
    found = marked(recognized(toy, Settings(registers=toy.tables()), events))
    assert sorted(found[3]) == [[0, 1, 3], [0, 2, 3], [0, 3], [1, 3], [2, 3]]


def test_next_takes_the_first_events_and_last_the_latest() -> None:
    events = stream([A, A, B, B, C])
    assert marked(recognized(sequence([A, B, C], [1]), Settings(order=NEXT), events))[4] == [[0, 2, 3, 4]]
    assert marked(recognized(sequence([A, B, C], [1]), Settings(order=LAST), events))[4] == [[1, 2, 3, 4]]
    late = Settings(order=NEXT, window=3)
    assert marked(recognized(sequence([A, B, C], [1]), late, events))[4] == [[1, 2, 3, 4]]


@pytest.mark.parametrize("order", [NEXT, LAST])
def test_ranks_are_renumbered_before_their_bits_run_out(order: int) -> None:
    bits = random.Random(order).choices([A, B, C, A | B], k=400)
    toy = sequence([A, B, C], [1])
    toy.rows |= {(0, A | B): ToyRow(-1, ((0, 1),)), (1, A | B): ToyRow(1, ((0, 2), (1, 2)))}
    check(toy, stream(bits), window=6, order=order, visible=(True, True, True))
    check(toy, stream(bits), window=6, order=order, visible=(False, True, True))


@many
@given(st.data(), st.integers(0, 1), cuts, st.booleans(), st.booleans())
def test_the_first_event_of_a_stream_gets_its_bit(
    data: st.DataObject, number: int, cuts: list[int], keyed: bool, ordinals: bool
) -> None:
    toy = data.draw(toys(number, 1))
    events = data.draw(streams(8, 1, 2 if keyed else 1, gaps=ordinals or not keyed))
    check(toy, events, cuts, keyed=keyed, first_bit=1, ordinals=ordinals)


@pytest.mark.long
def test_keys_are_remembered_where_their_first_event_matters() -> None:
    keys = 80_000  # more than the first capacity for nodes

    def settings(ordinals: bool) -> Settings:
        return Settings(window=3, keyed=True, first_bit=1, ordinals=ordinals)

    def engine_after(ordinals: bool) -> tuple[Recognizer[CeaRuns], list[int]]:
        toy = Toy(
            {(0, A): ToyRow(1), (0, C): ToyRow(1), (1, A): ToyRow(1), (1, C): ToyRow(2, ((0, 2),))},
            frozenset({2}),
            ((),),
        )
        engine = Recognizer(cea_runs(toy, settings(ordinals)))
        ends = []
        for first in range(0, 2 * keys, 4_000):
            events = [ToyEvent(A, (), key % keys, key // keys, key) for key in range(first, first + 4_000)]
            for roots in engine.push(batch_of(events, 0)):
                ends += roots.event.tolist()
        return engine, ends

    forgetful, ends = engine_after(ordinals=True)
    assert forgetful.runs._keys.size[0] < keys
    remembering, ends = engine_after(ordinals=False)
    assert remembering.runs._keys.size[0] == keys
    assert ends == []


def test_memory_follows_the_window() -> None:
    toy = sequence([A, B, C], [1], (((STORE, 0, 0),), ((EQUAL, 0, 0),), ()))
    engine = Recognizer(cea_runs(toy, Settings(window=50, registers=toy.tables(), order=NEXT)))
    draw = random.Random(3)
    capacities = []
    for turn in range(12):
        places = range(turn * 1_000, (turn + 1) * 1_000)
        events = [ToyEvent(draw.choice([A, B, C]), (draw.randrange(4),), 0, at, at) for at in places]
        for _ in engine.push(batch_of(events, 1)):
            pass
        capacities.append(engine.runs.arena.kind.size)
    assert capacities[-1] == capacities[3]


def test_what_the_settings_lack_is_said() -> None:
    toy = sequence([A, B], [], (((STORE, 0, 0),), ((EQUAL, 0, 0),), ()))
    with pytest.raises(ValueError, match="events have no values for the registers"):
        next(
            Recognizer(cea_runs(toy, Settings(registers=toy.tables()))).push(
                batch_of(stream([A]), 0)._replace(values=np.empty((0, 0), np.int64))
            )
        )
    with pytest.raises(ValueError, match="bit 63 needs more than 1 words"):
        Recognizer(cea_runs(toy, Settings(first_bit=63)))
    with pytest.raises(ValueError, match="consume was not asked for"):
        Recognizer(cea_runs(toy, Settings())).consume()
    with pytest.raises(ValueError, match="label set 0 are not in the order of their actions"):
        program_of(sequence([A, B], [], (((STORE, 0, 0), (EQUAL, 0, 0)), (), ())).tables())


def test_a_compaction_drops_a_child_whose_place_has_been_taken() -> None:
    arena = new(Arena, 8)
    starts = [0, 1, 5, 6]
    for place, start in enumerate(starts):
        arena.kind[place], arena.left[place], arena.right[place] = 0, NONE, NONE
        arena.event[place] = arena.start[place] = start
    arena.kind[4], arena.left[4], arena.right[4], arena.start[4] = UNION, 2, 1, 5
    arena.size[0] = 5
    live, moved = np.zeros(5, np.int8), np.full(5, 99, np.int32)
    mark_live(arena, np.array([4, 3], np.int32), 5, live)
    move_live(arena, live, moved)
    assert arena.size[0] == 2
    assert moved[4] == moved[2] == 0


def test_actions_are_numbered_as_in_the_automata() -> None:
    assert {action.name: action.value for action in Action} == {
        action.name: getattr(registers, action.name) for action in Action
    }


@many
@given(
    st.data(), st.integers(0, 3), st.integers(1, 2), cuts, windows, st.booleans(), st.sampled_from(CONSUMES)
)
def test_registers(
    data: st.DataObject,
    number: int,
    values: int,
    cuts: list[int],
    window: int | None,
    keyed: bool,
    consume: int,
) -> None:
    toy = data.draw(toys(number, values))
    events = data.draw(streams(12, values, 2 if keyed else 1))
    check(toy, events, cuts, window=window, keyed=keyed, consume=consume)


@many
@given(
    st.data(),
    st.sampled_from([NEXT, LAST]),
    st.integers(0, 2),
    visibility,
    cuts,
    windows,
    st.booleans(),
    st.sampled_from(CONSUMES),
)
def test_next_and_last(
    data: st.DataObject,
    order: int,
    number: int,
    visible: tuple[bool, ...],
    cuts: list[int],
    window: int | None,
    keyed: bool,
    consume: int,
) -> None:
    toy = data.draw(toys(number, 1))
    events = data.draw(streams(12, 1, 2 if keyed else 1))
    check(toy, events, cuts, window=window, keyed=keyed, order=order, visible=visible, consume=consume)


@many
@given(st.data(), st.sampled_from([NO_ORDER, NEXT, LAST]), st.integers(0, 2), cuts, windows, st.booleans())
def test_events_that_were_not_seen(
    data: st.DataObject, order: int, number: int, cuts: list[int], window: int | None, keyed: bool
) -> None:
    toy = data.draw(toys(number, 1, quiet_gaps=True))
    events = data.draw(streams(12, 1, 2, gaps=True))
    if not keyed:
        events = [
            ToyEvent(event.bits, event.values, 0, 2 * place + event.key % 2, event.stamp)
            for place, event in enumerate(events)
        ]
    check(toy, events, cuts, window=window, gaps=True, keyed=keyed, order=order)
