"""Small chain automata, streams for them, and all their runs found by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.run_chain import ChainStep, ChainTables, chain_tables
from estero.engine.walk.roots import Roots

Items = tuple[tuple[int, int], ...]
"""(event, mark) of one complex event, ascending."""

COLUMNS = 3
MOST_RUNS = 5_000


class Event(NamedTuple):
    """The bits of an event and its values (None: NULL); the first column is the same everywhere."""

    bits: int
    values: tuple[int | None, ...]


class Chain(NamedTuple):
    """A chain automaton."""

    states: int
    steps: tuple[ChainStep, ...]
    final: tuple[int, ...]

    @property
    def tables(self) -> ChainTables:
        return chain_tables(self.states, self.steps, self.final)


def iteration(unequal: Sequence[tuple[int, int]] = (), left: int = 0, right: int = 0) -> Chain:
    """One or more events of predicate 0, neighbours compared."""
    return Chain(1, (ChainStep(None, 0, 0, 0), ChainStep(0, 0, 0, 0, left, right, unequal)), (0,))


def sequence(length: int, unequal: Sequence[tuple[int, int]] = (), key: int = 0) -> Chain:
    """Events of predicates 0, 1, … in this order, neighbours with the same key and compared."""
    steps = [ChainStep(k - 1, k, k, k, key, key, unequal) for k in range(1, length)]
    return Chain(length, (ChainStep(None, 0, 0, 0), *steps), (length - 1,))


def events_of(letters: str, *columns: Sequence[int | None]) -> list[Event]:
    """One event for each letter; A has bit 0, B bit 1, …; columns 1, 2, … as given, the others 0."""
    return [
        Event(
            1 << (ord(letter) - ord("A")),
            (0, *(column[place] for column in columns), *([0] * (COLUMNS - 1 - len(columns)))),
        )
        for place, letter in enumerate(letters)
    ]


def batch_of(events: Sequence[Event]) -> EventBatch:
    """The arrays of these events; values in both words, NULLs with some value beside them."""
    rows = [event.values for event in events]
    keys = np.array([[value or 0 for value in row] for row in rows], np.uint64).reshape(-1, COLUMNS)
    known = np.array([[value is not None for value in row] for row in rows], np.bool_)
    return EventBatch(
        np.arange(len(events)),
        np.array([event.bits for event in events], np.uint64).reshape(-1, 1),
        np.stack((keys, keys + np.uint64(7)), axis=2),
        known.reshape(-1, COLUMNS),
    )


def recognized(
    recognizer: Recognizer[ChainRuns], events: Sequence[Event], limit: int | None = None
) -> Iterator[tuple[int, Items]]:
    """(end, items) of each complex event that ends among `events`, in order of enumeration."""
    for roots in recognizer.push(batch_of(events)):
        yield from enumerated(recognizer, roots, limit)


def enumerated(
    recognizer: Recognizer[ChainRuns], roots: Roots, limit: int | None = None, first_batch: int = 2
) -> Iterator[tuple[int, Items]]:
    """(end, items) of each complex event of `roots`."""
    for matches in recognizer.matches(roots, limit, first_batch):
        for number, end in enumerate(matches.end.tolist()):
            low, high = matches.offsets[number : number + 2].tolist()
            items = zip(matches.event[low:high].tolist(), matches.marks[low:high].tolist(), strict=True)
            found = tuple(items)
            assert matches.start[number] == found[0][0]
            yield end, found


def all_runs(chain: Chain, events: Sequence[Event]) -> list[tuple[int, Items]]:
    """(end, items) of every accepting run, by the definition of a run."""
    runs: list[tuple[int, Items]] = []
    accepted = []
    for place, event in enumerate(events):
        fresh: list[tuple[int, Items]] = []
        for step in chain.steps:
            if not event.bits >> step.predicate & 1:
                continue
            own = (place, step.mark)
            if step.source is None:
                fresh.append((step.target, (own,)))
            else:
                fresh += [
                    (step.target, (*items, own))
                    for state, items in runs
                    if state == step.source and follows(step, events[items[-1][0]], event)
                ]
        runs += fresh
        if len(runs) > MOST_RUNS:
            reject()
        accepted += [(place, items) for state, items in fresh if state in chain.final]
    return accepted


def follows(step: ChainStep, before: Event, event: Event) -> bool:
    """Whether two neighbours compare as a step asks for."""
    one, other = before.values[step.left], event.values[step.right]
    pairs = [(before.values[left], event.values[right]) for left, right in step.unequal]
    known = None not in (one, other) and all(None not in pair for pair in pairs)
    return known and one == other and all(left != right for left, right in pairs)


def chains() -> st.SearchStrategy[Chain]:
    """Automata of up to three states and six transitions, unambiguous or not; marks tell these apart."""
    return st.integers(1, 3).flatmap(_chains_with)


def _chains_with(states: int) -> st.SearchStrategy[Chain]:
    state, column, predicate = st.integers(0, states - 1), st.integers(0, COLUMNS - 1), st.integers(0, 2)
    compared = st.integers(1, COLUMNS - 1)
    unequal = st.lists(st.tuples(compared, compared), max_size=3)
    begins = st.tuples(st.none(), predicate, state, st.just(0), st.just(0), st.just([]))
    follow = st.tuples(state, predicate, state, st.just(0) | column, st.just(0) | column, unequal)
    rows = st.tuples(st.lists(begins, min_size=1, max_size=2), st.lists(follow, min_size=1, max_size=4))
    steps = rows.map(
        lambda both: tuple(
            ChainStep(source, bit, mark, target, left, right, tuple(pairs))
            for mark, (source, bit, target, left, right, pairs) in enumerate([*both[0], *both[1]])
        )
    )
    final = st.sets(state, min_size=1).map(lambda found: tuple(sorted(found)))
    return st.builds(Chain, st.just(states), steps, final)


def streams(longest: int = 10) -> st.SearchStrategy[list[Event]]:
    """Events with any bits, few values and NULLs."""
    value = st.sampled_from((0, 0, 1, 1, 2, None))
    return st.lists(
        st.builds(Event, st.integers(0, 7), st.tuples(st.just(0), value, value)), max_size=longest
    )
