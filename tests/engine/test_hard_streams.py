"""Streams that hurt where a bound does not hold, through every index: nodes, delay, expiry, huge answers."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import chain_steps, pcea_runs
from engine.pcea_runs import Pcea, batch_of, enumerated, events_of, recognized
from engine.test_pcea_bounds import steps_and_items
from estero.engine.cursor import CONSUME_ANY_ASKED
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import Transition
from estero.engine.store.value_trees import FREE_ROWS, USED
from estero.engine.walk.roots import Roots

LETTERS = "ABC"


def keys_of(name: str, length: int) -> list[int]:
    """The keys of a stream; of a hot key three events in four."""
    return {
        "all keys equal": [0] * length,
        "all keys distinct": list(range(length)),
        "a hot key": [0 if place % 4 else place for place in range(length)],
    }[name]


KEYED = ["all keys equal", "all keys distinct", "a hot key"]


def falling_starts(third: int, seed: int) -> tuple[Pcea, list[pcea_runs.Event]]:
    """A ; B with one key, and then a C of a larger value: B's hand on starts that fall, and wait in order."""
    pair = Transition([], 0, 0, 0), Transition([(0, 0, 0)], 1, 1, 1)
    pcea = Pcea(3, (*pair, Transition([(1, 1, 1, "<", 0, 0)], 2, 2, 2)), (2,))
    keys = [*range(third), *range(third - 1, -1, -1), *([0] * third)]
    values = np.random.default_rng(seed).permutation(3 * third).tolist()
    return pcea, events_of("A" * third + "B" * third + "C" * third, keys=keys, values=values)


def ordered_streams(length: int, seed: int = 1) -> dict[str, tuple[Pcea, list[pcea_runs.Event]]]:
    values = np.random.default_rng(seed).permutation(length).tolist()
    letters = (LETTERS * length)[:length]
    keyed = {
        name: (pcea_runs.rising(3), events_of(letters, keys=keys_of(name, length), values=values))
        for name in KEYED
    }
    equal = pcea_runs.rising(3, "<="), events_of(letters, values=[7] * length)
    return {**keyed, "all values equal": equal, "falling starts": falling_starts(length // 3, seed)}


@pytest.mark.parametrize("name", list(ordered_streams(3)))
@pytest.mark.parametrize("window", [None, 30, 400])
def test_an_order_makes_logarithm_squared_many_nodes(name: str, window: int | None) -> None:
    """In a window of w events a tree has a height of log w to the base 4/3, two spines have 2 log w nodes."""
    pcea, events = ordered_streams(900)[name]
    tables = pcea.tables
    recognizer = Recognizer(PceaRuns(tables, window, capacity=1 << 18))
    for number, event in enumerate(events):
        before = int(recognizer.runs.nodes.size[0])
        for _ in recognizer.push(batch_of([event])):
            pass
        waiting = min(number + 2, window or len(events))
        height, spines = math.log(waiting) / math.log(4 / 3) + 1, 2 * math.log2(number + 2)
        steps = tables.ordered_steps + len(tables.place_key)
        assert recognizer.runs.nodes.size[0] - before <= steps * 2 * height * (1 + spines)


@pytest.mark.parametrize("name", list(ordered_streams(3)))
@pytest.mark.parametrize("window", [None, 10, 200])
def test_the_delay_behind_an_order_is_linear_in_the_answer(name: str, window: int | None) -> None:
    pcea, events = ordered_streams(240)[name]
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=8))
    for roots in recognizer.push(batch_of(events)):
        found = steps_and_items(recognizer, roots, 300)
        assert all(steps <= 2 * items for steps, items in found)


@pytest.mark.parametrize("name", list(ordered_streams(3)))
@settings(max_examples=10)
@given(window=st.none() | st.integers(5, 25), seed=st.integers(0, 999))
def test_hard_streams_have_the_runs_that_trying_finds(name: str, window: int | None, seed: int) -> None:
    pcea, events = ordered_streams(27, seed)[name]
    found = Counter(recognized(Recognizer(PceaRuns(pcea.tables, window, capacity=1)), events))
    assert found == Counter(pcea_runs.all_runs(pcea, events, window))


def test_when_everything_has_expired_no_order_finds_it_and_little_is_kept() -> None:
    stamps = [0] * 500 + [1] * 500 + [9] * 500
    events = events_of("A" * 500 + "B" * 500 + "C" * 500, stamps=stamps, values=list(range(1_500)))
    recognizer = Recognizer(PceaRuns(pcea_runs.rising(3).tables, window=5, capacity=64))
    assert list(recognized(recognizer, events)) == []
    assert recognizer.oldest == 1_000
    again = events_of("ABC", stamps=[10, 11, 12], values=[1, 2, 3])
    assert list(recognized(recognizer, again)) == [(1_502, ((1_500, 0), (1_501, 1), (1_502, 2)))]
    rows = recognizer.runs.ordered.sizes
    assert rows[USED] - rows[FREE_ROWS] <= 2 * 1_000


def test_of_2_to_the_80_rising_subsequences_the_first_thousand_come() -> None:
    recognizer = Recognizer(PceaRuns(pcea_runs.rising_iteration().tables))
    events = events_of("A" * 81 + "B", values=[*range(81), 0])
    for roots in recognizer.push(batch_of(events)):
        assert sum(recognizer.counts(roots)) == 2**81 - 1
        found = [items for _, items in islice(enumerated(recognizer, roots), 1_000)]
        assert len(set(found)) == 1_000
        assert all(one[0] < other[0] for items in found for one, other in pairwise(items))
        last = recognizer.match_at(roots, 0, 2**81 - 2)
        assert last.event[-1] == 81


# ---------------------------------------------------------------------------------- disequalities


def unlike_streams(length: int) -> dict[str, tuple[chain_steps.Chain, list[chain_steps.Event]]]:
    """Neighbours with one key (column 2) that differ in column 1."""
    few = np.random.default_rng(3).integers(0, 2, length).tolist()
    chain = chain_steps.iteration([(1, 1)], 2, 2)
    keyed = {name: (chain, chain_steps.events_of("A" * length, few, keys_of(name, length))) for name in KEYED}
    values = {
        "all values equal": [4] * length,
        "all values distinct": list(range(length)),
    }
    apart = {name: (chain, chain_steps.events_of("A" * length, each)) for name, each in values.items()}
    return {**keyed, **apart}


@pytest.mark.parametrize("name", list(unlike_streams(3)))
def test_lists_cost_the_same_however_long_they_are(name: str) -> None:
    """As many nodes, entries and looks for the last events as for the first ones, at most."""
    chain, events = unlike_streams(3_000)[name]
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=1 << 13))
    costs = []
    for event in events:
        before = cost_of(recognizer)
        for _ in recognizer.push(chain_steps.batch_of([event])):
            pass
        costs.append(cost_of(recognizer) - before)
    assert max(costs) <= 2 * len(chain.steps) + len(chain.steps) * recognizer.runs.sequences.parent.size * 2
    assert max(costs[1_500:]) <= max(costs[:1_500])


def cost_of(recognizer: Recognizer[ChainRuns]) -> int:
    """Nodes and entries made, entries looked at."""
    return int(
        recognizer.runs.nodes.size[0] + recognizer.runs.entries.size[0] + recognizer.runs.entries.looked[0]
    )


@pytest.mark.parametrize("name", list(unlike_streams(3)))
def test_hard_lists_have_the_runs_that_trying_finds(name: str) -> None:
    chain, events = unlike_streams(11)[name]
    found = Counter(chain_steps.recognized(Recognizer(ChainRuns(chain.tables, capacity=1)), events))
    assert found == Counter(chain_steps.all_runs(chain, events))


def test_when_everything_is_forgotten_lists_find_nothing_of_it() -> None:
    chain = chain_steps.sequence(2, [(1, 1)])
    recognizer = Recognizer(ChainRuns(chain.tables, consume=CONSUME_ANY_ASKED, capacity=1))
    before = chain_steps.events_of("A" * 500 + "B", list(range(501)))
    for roots in recognizer.push(chain_steps.batch_of(before)):
        kept = Roots(roots.event.copy(), roots.root.copy(), roots.oldest.copy())
        recognizer.consume()
        assert recognizer.counts(kept) == [500]
    assert list(chain_steps.recognized(recognizer, chain_steps.events_of("BBAB", [0, 1, 2, 3]))) == [
        (504, ((503, 0), (504, 1)))
    ]
    assert recognizer.runs.entries.size[0] <= 502
