"""Chain automata on the ED-index: what is found, counted and picked; bounds; huge answers; versions."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chain_steps import (
    Chain,
    Event,
    Items,
    all_runs,
    batch_of,
    chains,
    enumerated,
    events_of,
    iteration,
    recognized,
    sequence,
    streams,
)
from estero.engine.cursor import CONSUME_ANY, CONSUME_ANY_ASKED, CONSUME_NONE, DONE, FULL
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.run_chain import ChainStep, chain_tables
from estero.engine.walk.lists import ListCounter
from estero.engine.walk.matches import new_matches
from estero.engine.walk.roots import Roots

ROOMS = st.sampled_from((1, 3, 4096))


@given(chains(), streams(), ROOMS, st.lists(st.integers(0, 10), max_size=3))
def test_every_run_is_found_once_however_the_stream_is_cut(
    chain: Chain, events: list[Event], capacity: int, cuts: list[int]
) -> None:
    expected = all_runs(chain, events)
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=capacity))
    bounds = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    found = [run for low, high in pairwise(bounds) for run in recognized(recognizer, events[low:high])]
    assert Counter(found) == Counter(expected)
    assert [end for end, _ in found] == sorted(end for end, _ in found)
    assert recognizer.seen == len(events)
    assert recognizer.oldest == 0


@given(chains(), streams(8), st.data())
def test_runs_that_go_on_alike_wait_together(chain: Chain, events: list[Event], data: st.DataObject) -> None:
    twin = chain.states  # goes on as another state does
    state = data.draw(st.integers(0, twin - 1))
    led = data.draw(st.lists(st.booleans(), min_size=len(chain.steps), max_size=len(chain.steps)))
    steps = [
        step._replace(target=twin) if to_twin and step.target == state else step
        for step, to_twin in zip(chain.steps, led, strict=True)
    ]
    steps += [step._replace(source=twin) for step in steps if step.source == state]
    final = (*chain.final, twin) if data.draw(st.booleans()) else chain.final
    doubled = Chain(twin + 1, tuple(steps), final)
    assert doubled.tables.place_key.size == chain.tables.place_key.size
    found = list(recognized(Recognizer(ChainRuns(doubled.tables, capacity=3)), events))
    assert Counter(found) == Counter(all_runs(doubled, events))


@given(
    st.sampled_from((iteration([(1, 1)]), iteration([(1, 2), (2, 1)], 1, 1), sequence(3, [(1, 1)], 2))),
    st.lists(st.tuples(st.sampled_from("AABC"), st.integers(0, 2), st.integers(0, 1)), max_size=12),
    ROOMS,
)
def test_counts_and_picks_agree_with_what_is_enumerated(
    chain: Chain, rows: list[tuple[str, int, int]], capacity: int
) -> None:
    events = events_of(
        "".join(letter for letter, _, _ in rows), [one for _, one, _ in rows], [two for _, _, two in rows]
    )
    expected = all_runs(chain, events)
    counted: dict[int, int] = {}
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=capacity))
    for roots in recognizer.push(batch_of(events)):
        ends, numbers = recognizer.counts_by_end(roots)
        counted.update(zip(ends.tolist(), numbers, strict=True))
        picked = [
            tuple(zip(match.event.tolist(), match.marks.tolist(), strict=True))
            for place, count in enumerate(recognizer.counts(roots))
            for match in (recognizer.match_at(roots, place, index) for index in range(count))
        ]
        assert picked == [items for _, items in enumerated(recognizer, roots)]
    assert counted == Counter(end for end, _ in expected)


@given(chains(), streams(8), ROOMS)
def test_counts_agree_for_any_automaton(chain: Chain, events: list[Event], capacity: int) -> None:
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=capacity))
    counted: Counter[int] = Counter()
    for roots in recognizer.push(batch_of(events)):
        for end, number in zip(roots.event.tolist(), recognizer.counts(roots), strict=True):
            counted[end] += number
    assert counted == Counter(end for end, _ in all_runs(chain, events))


@given(chains(), streams(), st.integers(1, 4))
def test_a_limit_holds_for_each_end(chain: Chain, events: list[Event], limit: int) -> None:
    expected = all_runs(chain, events)
    found = list(recognized(Recognizer(ChainRuns(chain.tables, capacity=2)), events, limit))
    assert not Counter(found) - Counter(expected)
    by_end = Counter(end for end, _ in expected)
    assert Counter(end for end, _ in found) == {end: min(limit, number) for end, number in by_end.items()}


def test_neighbours_differ_and_the_newest_come_first() -> None:
    found = recognized(Recognizer(ChainRuns(sequence(2, [(1, 1)]).tables)), events_of("AAAB", [1, 2, 3, 2]))
    assert [items[0][0] for _, items in found] == [2, 0]


def test_null_is_neither_equal_nor_different() -> None:
    events = events_of("ABAB", [None, 1, 2, None])
    assert list(recognized(Recognizer(ChainRuns(sequence(2, [(1, 1)]).tables)), events)) == []
    assert list(recognized(Recognizer(ChainRuns(sequence(2, key=1).tables)), events)) == []


def test_what_is_left_of_an_end_can_be_skipped() -> None:
    recognizer = Recognizer(ChainRuns(iteration().tables))
    for roots in recognizer.push(batch_of(events_of("AAAA"))):
        found = recognizer.matches(roots, first_batch=1)
        ends = []
        for matches in found:
            ends += matches.end.tolist()
            found.skip_end(ends[-1])
    assert Counter(ends) == {0: 1, 1: 2, 2: 2, 3: 8}


def test_an_automaton_that_compares_the_first_event_is_refused() -> None:
    with pytest.raises(ValueError, match="transition 0 compares the first event with one before it"):
        chain_tables(1, [ChainStep(None, 0, 0, 0, unequal=[(1, 1)])], [0])


def test_a_batch_with_too_few_columns_is_refused() -> None:
    recognizer = Recognizer(ChainRuns(sequence(2, [(1, 2)]).tables))
    batch = batch_of(events_of("AB"))
    with pytest.raises(ValueError, match="the automaton reads 3 key columns, the batch has fewer"):
        list(recognizer.push(batch._replace(keys=batch.keys[:, :2])))


# ------------------------------------------------------------------------------------------ consuming


@pytest.mark.parametrize("capacity", [1, 4096])
def test_consuming_forgets_everything_read_so_far(capacity: int) -> None:
    chain = sequence(2, [(1, 1)])
    recognizer = Recognizer(ChainRuns(chain.tables, consume=CONSUME_ANY, capacity=capacity))
    values = [0, 1, 2, 3, 0, 4]
    for turn in range(50):
        found = [items for _, items in recognized(recognizer, events_of("AABBAB", values))]
        first = 6 * turn
        expected = [((1, 0), (2, 1)), ((0, 0), (2, 1)), ((4, 0), (5, 1))]
        assert found == [tuple((first + event, mark) for event, mark in items) for items in expected]
        assert recognizer.oldest == first + 6
    assert recognizer.runs.nodes.mark.size <= max(capacity, 30)
    assert recognizer.runs.entries.node.size <= max(capacity, 30)


def test_consuming_when_asked_leaves_the_answer_readable() -> None:
    recognizer = Recognizer(ChainRuns(sequence(2).tables, consume=CONSUME_ANY_ASKED))
    found = []
    for roots in recognizer.push(batch_of(events_of("AABBAB"))):
        if roots.event[0] != 2:
            recognizer.consume()
        found.append([(items[0][0], end) for end, items in enumerated(recognizer, roots)])
        assert recognizer.counts(roots) == [len(found[-1])]
    assert found == [[(1, 2), (0, 2)], [(1, 3), (0, 3)], [(4, 5)]]


def test_consuming_unasked_is_refused() -> None:
    with pytest.raises(ValueError, match=r"consume was not asked for \(code 0\)"):
        Recognizer(ChainRuns(sequence(2).tables)).consume()


@given(chains(), streams(), st.sampled_from((CONSUME_NONE, CONSUME_ANY)))
def test_what_is_needed_is_what_a_snapshot_keeps(chain: Chain, events: list[Event], consume: int) -> None:
    recognizer = Recognizer(ChainRuns(chain.tables, consume=consume))
    for _ in recognizer.push(batch_of(events)):
        pass
    kept = recognizer.snapshot()
    assert recognizer.needed == sum(
        map(len, (kept.events, kept.arrays["nodes.mark"], kept.arrays["entries.node"]))
    )


# --------------------------------------------------------------------------------------------- bounds


def hard_streams(length: int) -> dict[str, tuple[Chain, list[Event]]]:
    """Streams that would hurt if a bound did not hold, each with an automaton."""
    rng = np.random.default_rng(5)
    half = length // 2
    few = rng.integers(0, 2, (2, length)).tolist()
    return {
        "one other far back": (iteration([(1, 1)]), events_of("A" * length, [1, *([0] * (length - 1))])),
        "long runs": (iteration([(1, 1)]), events_of("A" * length, [place // 30 for place in range(length)])),
        "two of few values": (iteration([(1, 1), (2, 2)]), events_of("A" * length, *few)),
        "crossed": (iteration([(1, 2), (2, 1)]), events_of("A" * length, *few)),
        "halves": (sequence(2, [(1, 1)]), events_of("A" * half + "B" * half, few[0])),
        "keys": (iteration([(1, 1)], 2, 2), events_of("A" * length, few[0], [k % 9 for k in range(length)])),
    }


@pytest.mark.parametrize("name", list(hard_streams(2)))
def test_an_event_costs_a_time_that_depends_on_the_automaton_alone(name: str) -> None:
    chain, events = hard_streams(600)[name]
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=1 << 13))
    attributes = recognizer.runs.tables.place_unequal.shape[1]
    pointers = recognizer.runs.sequences.parent.size
    for event in events:
        before = [int(size) for size in (*recognizer.runs.nodes.size, *recognizer.runs.entries.size)]
        looked = int(recognizer.runs.entries.looked[0])
        for _ in recognizer.push(batch_of([event])):
            pass
        after = [int(size) for size in (*recognizer.runs.nodes.size, *recognizer.runs.entries.size)]
        assert sum(after) - sum(before) <= 2 * len(chain.steps)
        assert recognizer.runs.entries.looked[0] - looked <= len(chain.steps) * pointers * (attributes + 1)


@pytest.mark.parametrize("name", list(hard_streams(2)))
def test_the_delay_is_linear_in_the_answer(name: str) -> None:
    chain, events = hard_streams(240)[name]
    recognizer = Recognizer(ChainRuns(chain.tables))
    attributes = recognizer.runs.tables.place_unequal.shape[1]
    for roots in recognizer.push(batch_of(events)):
        found = recognizer.matches(roots)
        code, number = FULL, 0
        while code != DONE and number < 300:
            sizes = np.zeros(2, np.int64)
            steps, looked = found.steps, int(recognizer.runs.entries.looked[0])
            code = found.fill(new_matches(1, 1_000), sizes)
            items = int(sizes[1])
            assert found.steps - steps <= items
            assert recognizer.runs.entries.looked[0] - looked <= (attributes + 1) * items
            number += 1


# -------------------------------------------------------------------------------------- huge answers


@pytest.mark.parametrize("capacity", [1, 4096])
def test_2_to_the_80_runs_are_counted_started_and_abandoned(capacity: int) -> None:
    recognizer = Recognizer(ChainRuns(iteration([(1, 1)]).tables, capacity=capacity))
    events = events_of("A" * 81, list(range(81)))
    counts: dict[int, int] = {}
    for roots in recognizer.push(batch_of(events)):
        ends, numbers = recognizer.counts_by_end(roots)
        counts.update(zip(ends.tolist(), numbers, strict=True))
        last = roots.part(*np.searchsorted(roots.event, [80, 81]).tolist())
        found = [items for _, items in islice(enumerated(recognizer, last), 1_000)]
    assert counts == {end: 2**end for end in range(81)}
    assert len(set(found)) == 1_000
    assert recognizer.counts(last) == [1, 2**80 - 1]
    assert recognizer.counts(last, enough=10) == [1, 10]
    assert recognizer.match_at(last, 1, 2**80 - 2).event.tolist() == [0, 80]
    assert recognizer.match_at(last, 1, 999).event.tolist()[-2:] == [79, 80]


def test_whether_there_are_enough_is_told_without_long_numbers() -> None:
    recognizer = Recognizer(ChainRuns(iteration([(1, 1)]).tables, capacity=1 << 13))
    counter = ListCounter(2)
    limited = [
        number
        for roots in recognizer.push(batch_of(events_of("A" * 2_000, [place % 7 for place in range(2_000)])))
        for number in counter.of_roots(recognizer.runs.compact, roots, 1_000)[2::2]
    ]
    assert limited[:5] == [1, 3, 7, 15, 31]
    assert set(limited[12:]) == {1_000}
    assert counter.long_numbers == 0


def test_large_counts_with_disequalities_are_exact() -> None:
    values = np.random.default_rng(3).integers(0, 3, (2, 150)).tolist()
    recognizer = Recognizer(ChainRuns(iteration([(1, 1), (2, 2)]).tables))
    found = [
        number
        for roots in recognizer.push(batch_of(events_of("A" * 150, *values)))
        for number in recognizer.counts_by_end(roots)[1]
    ]
    expected: list[int] = []
    for one, two in zip(*values, strict=True):
        before = zip(expected, *values, strict=False)
        expected.append(1 + sum(number for number, left, right in before if left != one and right != two))
    assert found == expected
    assert max(expected) > 2**64


# ------------------------------------------------------------------------------------------- versions


def test_an_enumeration_does_not_see_what_is_inserted_after_it_began() -> None:
    chain = iteration([(1, 1)])
    rng = np.random.default_rng(11)
    events = events_of("A" * 12, rng.integers(0, 3, 12).tolist())
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=4))
    expected: list[tuple[int, Items]] = []
    found: list[tuple[int, Items]] = []
    reading = []
    for event in events:
        for roots in recognizer.push(batch_of([event])):
            kept = Roots(roots.event.copy(), roots.root.copy(), roots.oldest.copy())
            expected += enumerated(recognizer, kept)
            begun = enumerated(recognizer, kept, first_batch=1)
            found.append(next(begun))
            reading.append(begun)
    found += [run for begun in reading for run in begun]
    assert Counter(found) == Counter(expected) == Counter(all_runs(chain, events))
