"""Parallelised automata: what is found, counted and picked, against all runs tried one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pcea_runs import (
    Event,
    Items,
    Pcea,
    all_runs,
    batch_of,
    by_key_then_all,
    chain,
    enumerated,
    events_of,
    iteration,
    nested,
    pceas,
    recognized,
    star,
    streams,
)
from estero.engine.cursor import CONSUME_ANY, CONSUME_ANY_ASKED
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import Transition, pcea_tables

WINDOWS = st.none() | st.integers(0, 8)
ROOMS = st.sampled_from((1, 3, 4096))


@given(pceas(), streams(), WINDOWS, ROOMS, st.lists(st.integers(0, 9), max_size=3))
def test_every_run_is_found_once_however_the_stream_is_cut(
    pcea: Pcea, events: list[Event], window: int | None, capacity: int, cuts: list[int]
) -> None:
    expected = all_runs(pcea, events, window)
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    bounds = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    found = [run for low, high in pairwise(bounds) for run in recognized(recognizer, events[low:high])]
    assert Counter(found) == Counter(expected)
    assert [end for end, _ in found] == sorted(end for end, _ in found)
    assert recognizer.seen == len(events)


@given(
    st.sampled_from((chain(4), star(3), by_key_then_all(), nested())),
    st.lists(st.tuples(st.sampled_from("AABBCD"), st.integers(0, 2)), max_size=60),
    st.integers(1, 12),
    ROOMS,
)
def test_runs_of_long_streams_are_found_while_others_expire(
    pcea: Pcea, letters: list[tuple[str, int]], window: int, capacity: int
) -> None:
    events = events_of("".join(letter for letter, _ in letters), keys=[key for _, key in letters])
    expected = Counter(all_runs(pcea, events, window))
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    found: Counter[tuple[int, Items]] = Counter()
    for roots in recognizer.push(batch_of(events)):
        runs = Counter(enumerated(recognizer, roots))
        assert sum(recognizer.counts(roots)) == runs.total()
        found += runs
    assert found == expected


@given(pceas(), streams(), WINDOWS, ROOMS)
def test_counts_and_picks_agree_with_what_is_enumerated(
    pcea: Pcea, events: list[Event], window: int | None, capacity: int
) -> None:
    expected = all_runs(pcea, events, window)
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    by_end = Counter(end for end, _ in expected)
    counted: dict[int, int] = {}
    for roots in recognizer.push(batch_of(events)):
        counts = recognizer.counts(roots)
        ends, numbers = recognizer.counts_by_end(roots)
        counted.update(zip(ends.tolist(), numbers, strict=True))
        assert recognizer.counts_by_end(roots, 2)[1] == [min(number, 2) for number in numbers]
        picked = [
            tuple(zip(match.event.tolist(), match.marks.tolist(), strict=True))
            for place, count in enumerate(counts)
            for match in (recognizer.match_at(roots, place, index) for index in range(count))
        ]
        assert picked == [items for _, items in enumerated(recognizer, roots)]
    assert counted == by_end


@given(pceas(), streams(), WINDOWS, st.integers(1, 4))
def test_a_limit_holds_for_each_end(pcea: Pcea, events: list[Event], window: int | None, limit: int) -> None:
    expected = all_runs(pcea, events, window)
    found = list(recognized(Recognizer(PceaRuns(pcea.tables, window, capacity=2)), events, limit))
    assert not Counter(found) - Counter(expected)
    by_end = Counter(end for end, _ in expected)
    assert Counter(end for end, _ in found) == {end: min(limit, number) for end, number in by_end.items()}


def test_a_chain_comes_with_its_marks_newest_first() -> None:
    found = recognized(Recognizer(PceaRuns(chain(3).tables)), events_of("AABCC", keys=[1, 1, 1, 1, 2]))
    assert list(found) == [(3, ((1, 0), (2, 1), (3, 2))), (3, ((0, 0), (2, 1), (3, 2)))]


def test_a_star_gathers_its_atoms_in_any_order() -> None:
    recognizer = Recognizer(PceaRuns(star(3).tables))
    found = list(recognized(recognizer, events_of("CABBA", keys=[1, 1, 2, 1, 1])))
    assert found == [(3, ((0, 2), (1, 0), (3, 1))), (4, ((0, 2), (3, 1), (4, 0)))]


def test_a_null_key_matches_nothing_not_even_another() -> None:
    assert (
        list(recognized(Recognizer(PceaRuns(chain(2).tables)), events_of("ABAB", keys=[None, None, 1, None])))
        == []
    )


def test_a_constant_key_is_a_cross_product() -> None:
    gathers = Transition([(0, 1, 1), (1, 1, 1)], 2, 2, 2)
    pcea = Pcea(3, (Transition([], 0, 0, 0), Transition([], 1, 1, 1), gathers), (2,))
    found = recognized(Recognizer(PceaRuns(pcea.tables)), events_of("ABABC", keys=[1, 2, 3, 4, 5]))
    supports = {tuple(event for event, _ in items) for _, items in found}
    assert supports == {(0, 1, 4), (0, 3, 4), (1, 2, 4), (2, 3, 4)}


def test_an_event_marked_in_two_branches_has_an_item_for_each() -> None:
    both = (Transition([], 0, 5, 0), Transition([], 0, 4, 1), Transition([(0, 1, 1), (1, 1, 1)], 1, 6, 2))
    found = list(recognized(Recognizer(PceaRuns(Pcea(3, both, (2,)).tables)), events_of("AB")))
    assert found == [(1, ((0, 4), (0, 5), (1, 6)))]


def test_a_window_reaches_back_to_its_edge_and_no_further() -> None:
    events = events_of("AAAB", stamps=[0, 1, 1, 5])
    found = recognized(Recognizer(PceaRuns(chain(2).tables, window=4)), events)
    assert sorted(items[0][0] for _, items in found) == [1, 2]


def test_a_predicate_beyond_the_first_word_is_read() -> None:
    recognizer = Recognizer(PceaRuns(pcea_tables(1, [Transition([], 64, 3, 0)], [0])))
    batch = batch_of(events_of("AB"))
    wide = batch._replace(words=np.array([[0, 2], [2, 1]], np.uint64))
    assert [roots.event.tolist() for roots in recognizer.push(wide)] == [[0]]


@pytest.mark.parametrize("capacity", [1, 4096])
def test_consuming_forgets_everything_read_so_far(capacity: int) -> None:
    recognizer = Recognizer(PceaRuns(chain(2).tables, consume=CONSUME_ANY, capacity=capacity))
    found = [items for _, items in recognized(recognizer, events_of("AABBAB"))]
    assert found == [((1, 0), (2, 1)), ((0, 0), (2, 1)), ((4, 0), (5, 1))]


def test_consuming_when_asked_leaves_the_answer_readable() -> None:
    recognizer = Recognizer(PceaRuns(chain(2).tables, consume=CONSUME_ANY_ASKED))
    found = []
    for roots in recognizer.push(batch_of(events_of("AABBAB"))):
        if roots.event[0] != 2:
            recognizer.consume()
        found.append([(items[0][0], end) for end, items in enumerated(recognizer, roots)])
    assert found == [[(1, 2), (0, 2)], [(1, 3), (0, 3)], [(4, 5)]]


def test_consuming_unasked_is_refused() -> None:
    with pytest.raises(ValueError, match=r"consume was not asked for \(code 0\)"):
        Recognizer(PceaRuns(chain(2).tables)).consume()


def test_an_automaton_that_gathers_a_state_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"transition 1 gathers a state twice: \[0, 0\]"):
        pcea_tables(2, [Transition([], 0, 0, 0), Transition([(0, 0, 0), (0, 1, 1)], 0, 0, 1)], [1])


def test_an_automaton_with_a_state_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="transition 0 names a state that is not below 1"):
        pcea_tables(1, [Transition([], 0, 0, 1)], [0])


def test_a_batch_with_too_few_columns_is_refused() -> None:
    recognizer = Recognizer(PceaRuns(chain(2).tables))
    batch = batch_of(events_of("AB"))
    with pytest.raises(ValueError, match="the automaton reads 1 key columns, the batch has fewer"):
        list(recognizer.push(batch._replace(known=batch.known[:, :0])))
    with pytest.raises(ValueError, match="0 words are too few for 2 predicates"):
        list(recognizer.push(batch._replace(words=batch.words[:, :0])))


def test_breaking_off_an_enumeration_leaves_the_recognizer_usable() -> None:
    recognizer = Recognizer(PceaRuns(iteration().tables))
    for roots in recognizer.push(batch_of(events_of("A" * 40))):
        assert len(next(iter(recognizer.matches(roots))).start) > 0
    assert len(list(recognized(recognizer, events_of("A"), limit=3))) == 3
