"""Recognition with registers and with NEXT and LAST, against following every run alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.toys import Brute, Toy, ToyEvent, recognized, streams, tiny_rooms, toys
from estero.automata.registers import Action
from estero.engine import registers
from estero.engine.recognizer import Settings
from estero.engine.run_cea import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.run_split import LAST, NEXT, NO_ORDER

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
) -> None:
    settings = Settings(
        window=window,
        gaps=gaps,
        keyed=keyed,
        consume=consume,
        registers=toy.tables() if toy.registers else None,
        order=order,
        visible=np.array(visible, np.bool_) if visible else None,
    )
    brute = Brute(toy, window=window, gaps=gaps, order=order, visible=visible, consume=consume)
    with tiny_rooms():
        found = recognized(toy, settings, events, cuts)
    assert [set(each) for each in found] == brute.answers(events, keyed)
    assert all(len(set(each)) == len(each) for each in found)


many = settings(max_examples=6 * settings().max_examples)
cuts = st.lists(st.integers(1, 12), max_size=3)
windows = st.none() | st.integers(0, 8)
visibility = st.just(()) | st.tuples(st.booleans(), st.booleans(), st.booleans())


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
