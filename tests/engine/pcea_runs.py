"""Small parallelised automata, streams for them, and all their runs found by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from operator import ge, gt, le, lt, ne
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import RANGES, PceaTables, Source, Transition, pcea_tables
from estero.engine.walk.roots import Roots

Items = tuple[tuple[int, int], ...]
"""(event, mark) of one complex event, ascending."""

COLUMNS = 2
MOST_RUNS = 3_000
COMPARED = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne}
LEAST, MOST = -(1 << 63), (1 << 63) - 1


class Event(NamedTuple):
    """The bits of an event, its keys (None: NULL), its stamp and its values (None: NULL)."""

    bits: int
    keys: tuple[int | None, ...]
    stamp: int
    values: tuple[int | None, ...] = (None,) * COLUMNS


class Pcea(NamedTuple):
    """A parallelised automaton."""

    states: int
    transitions: tuple[Transition, ...]
    final: tuple[int, ...]

    @property
    def tables(self) -> PceaTables:
        return pcea_tables(self.states, self.transitions, self.final)


def chain(length: int) -> Pcea:
    """Events of predicates 0, 1, … in this order, each with the key of the one before."""
    follow = [Transition([(k - 1, 0, 0)], k, k, k) for k in range(1, length)]
    return Pcea(length, (Transition([], 0, 0, 0), *follow), (length - 1,))


def star(atoms: int) -> Pcea:
    """One event of each predicate, in any order, all with one key."""
    leaves = [Transition([], k, k, k) for k in range(atoms)]
    closing = [
        Transition([(other, 0, 0) for other in range(atoms) if other != k], k, k, atoms) for k in range(atoms)
    ]
    return Pcea(atoms + 1, (*leaves, *closing), (atoms,))


def by_key_then_all() -> Pcea:
    """A ; B with one key, and then C with any: so the starts that B's hand on are in any order."""
    pair = Transition([], 0, 0, 0), Transition([(0, 0, 0)], 1, 1, 1)
    return Pcea(3, (*pair, Transition([(1, 1, 1)], 2, 2, 2)), (2,))


def nested() -> Pcea:
    """A ; B with one key and, beside it, B ; A with any, gathered by a C, again and again."""
    pairs = (
        Transition([], 0, 0, 0),
        Transition([(0, 0, 0)], 1, 1, 1),
        Transition([], 1, 2, 2),
        Transition([(2, 1, 1)], 0, 3, 3),
    )
    gathers = Transition([(1, 0, 0), (3, 1, 1)], 2, 4, 4), Transition([(4, 0, 0)], 2, 5, 4)
    return Pcea(5, (*pairs, *gathers), (4,))


def iteration() -> Pcea:
    """Events of predicate 0 of one key, one or more of them."""
    return Pcea(1, (Transition([], 0, 0, 0), Transition([(0, 0, 0)], 0, 0, 0)), (0,))


def rising(length: int, operator: str = "<") -> Pcea:
    """Events of predicates 0, 1, … in this order, with one key, each of value 0 with the one before."""
    follow = [Transition([(k - 1, 0, 0, operator, 0, 0)], k, k, k) for k in range(1, length)]
    return Pcea(length, (Transition([], 0, 0, 0), *follow), (length - 1,))


def rising_iteration(operator: str = "<") -> Pcea:
    """Events of predicate 0 and one key, one or more, each so with the one before, and one of predicate 1."""
    again = Transition([(0, 0, 0, operator, 0, 0)], 0, 0, 0)
    return Pcea(2, (Transition([], 0, 0, 0), again, Transition([(0, 0, 0)], 1, 1, 1)), (1,))


def rising_pair() -> Pcea:
    """A rising A ; B of one key, then a C, any key, of less than B's second value: starts in any order."""
    pair = Transition([], 0, 0, 0), Transition([(0, 0, 0, "<", 0, 0)], 1, 1, 1)
    return Pcea(3, (*pair, Transition([(1, 1, 1, ">", 1, 1)], 2, 2, 2)), (2,))


def rising_star() -> Pcea:
    """An A below, a B above and any D of one key, gathered by a C."""
    leaves = [Transition([], k, k, place) for place, k in enumerate((0, 1, 3))]
    gathers = Transition([(0, 0, 0, "<=", 0, 0), (1, 0, 0, ">=", 0, 1), (2, 0, 0)], 2, 2, 3)
    return Pcea(4, (*leaves, gathers), (3,))


def events_of(
    letters: str,
    keys: Sequence[int | None] | None = None,
    stamps: Sequence[int] | None = None,
    values: Sequence[int | None] | None = None,
) -> list[Event]:
    """One event for each letter; A has bit 0, B bit 1, …; the keys are column 0, column 1 is always 0.

    Both columns of values are the same.
    """
    return [
        Event(
            1 << (ord(letter) - ord("A")),
            (keys[place] if keys else 0, 0),
            stamps[place] if stamps else place,
            (values[place] if values else 0,) * COLUMNS,
        )
        for place, letter in enumerate(letters)
    ]


def batch_of(events: Sequence[Event]) -> EventBatch:
    """The arrays of these events; keys in both words, NULLs with some key beside them."""
    rows = [event.keys for event in events]
    keys = np.array([[key or 0 for key in row] for row in rows], np.uint64).reshape(-1, COLUMNS)
    values = [event.values for event in events]
    return EventBatch(
        np.array([event.stamp for event in events], np.int64),
        np.array([event.bits for event in events], np.uint64).reshape(-1, 1),
        np.stack((keys, keys + np.uint64(7)), axis=2),
        np.array([[key is not None for key in row] for row in rows], np.bool_).reshape(-1, COLUMNS),
        np.array([[value or 0 for value in row] for row in values], np.int64).reshape(-1, COLUMNS),
        np.array([[value is not None for value in row] for row in values], np.bool_).reshape(-1, COLUMNS),
    )


def recognized(
    recognizer: Recognizer[PceaRuns], events: Sequence[Event], limit: int | None = None
) -> Iterator[tuple[int, Items]]:
    """(end, items) of each complex event that ends among `events`, in order of enumeration."""
    for roots in recognizer.push(batch_of(events)):
        yield from enumerated(recognizer, roots, limit)


def enumerated(
    recognizer: Recognizer[PceaRuns], roots: Roots, limit: int | None = None
) -> Iterator[tuple[int, Items]]:
    """(end, items) of each complex event of `roots`."""
    for matches in recognizer.matches(roots, limit):
        for number, end in enumerate(matches.end.tolist()):
            low, high = matches.offsets[number : number + 2].tolist()
            items = zip(matches.event[low:high].tolist(), matches.marks[low:high].tolist(), strict=True)
            found = tuple(items)
            assert matches.start[number] == found[0][0]
            yield end, found


def all_runs(pcea: Pcea, events: Sequence[Event], window: int | None) -> list[tuple[int, Items]]:
    """(end, items) of every accepting run, by the definition of a run tree.

    Runs that have left the window are given up: no run that gathers them comes back into it.
    """
    runs: dict[int, list[tuple[int, Items]]] = {state: [] for state in range(pcea.states)}
    accepted = []
    total = 0
    for place, event in enumerate(events):
        fresh: list[tuple[int, tuple[int, Items]]] = []
        for transition in pcea.transitions:
            if not event.bits >> transition.predicate & 1:
                continue
            gathered = [
                [items for entered, items in runs[source[0]] if _gathers(source, events[entered], event)]
                for source in transition.sources
            ]
            for below in product(*gathered):
                own: Items = ((place, transition.mark),)
                items = tuple(sorted(sum(below, own)))
                if window is None or event.stamp - events[items[0][0]].stamp <= window:
                    fresh.append((transition.target, (place, items)))
                total += 1
                assume(total <= MOST_RUNS)
        for state, run in fresh:
            runs[state].append(run)
            if state in pcea.final:
                accepted.append(run)
    return accepted


def _gathers(source: Source, before: Event, event: Event) -> bool:
    key = before.keys[source[1]]
    if key is None or key != event.keys[source[2]]:
        return False
    if len(source) == 3:
        return True
    _, _, _, operators, left, *right = source
    waiting, values = before.values[left], [event.values[column] for column in right]
    return waiting is not None and all(
        value is not None and bool(COMPARED[operator](waiting, value))
        for operator, value in zip(operators.split(), values, strict=True)
    )


def pceas(*, ordered: bool = False) -> st.SearchStrategy[Pcea]:
    """Automata of up to four states and seven transitions, unambiguous or not; marks tell these apart.

    `ordered`: with sources that compare by order beside those that do not.
    """
    return st.integers(1, 4).flatmap(lambda states: _pceas_with(states, ordered))


def _pceas_with(states: int, ordered: bool) -> st.SearchStrategy[Pcea]:
    state, column = st.integers(0, states - 1), st.integers(0, COLUMNS - 1)
    keys: st.SearchStrategy[Any] = st.tuples(column, column)
    if ordered:
        order, ends = st.sampled_from(list(COMPARED)), st.sampled_from(list(RANGES))
        ranges = st.tuples(column, column, ends, column, column, column)
        keys = st.tuples(column, column, order, column, column) | ranges | keys
    gathered = st.dictionaries(state, keys, max_size=3)
    sources = gathered.map(lambda joins: [(source, *columns) for source, columns in joins.items()])
    nothing: st.SearchStrategy[list[Source]] = st.just([])
    begins = st.tuples(nothing, st.integers(0, 2), state)
    follows = st.tuples(sources, st.integers(0, 2), state)
    transitions = st.tuples(
        st.lists(begins, min_size=1, max_size=3), st.lists(follows, min_size=1, max_size=4)
    ).map(
        lambda both: tuple(
            Transition(found, predicate, mark, target)
            for mark, (found, predicate, target) in enumerate([*both[0], *both[1]])
        )
    )
    final = st.sets(state, min_size=1).map(lambda found: tuple(sorted(found)))
    return st.builds(Pcea, st.just(states), transitions, final)


def streams(longest: int = 9) -> st.SearchStrategy[list[Event]]:
    """Events with any bits, keys and values of few kinds and NULLs, stamps with ties and gaps."""
    key = st.sampled_from((0, 0, 0, 1, 1, None))
    value = st.sampled_from((0, 1, 2, 3, LEAST, MOST, None))
    rows = st.tuples(st.integers(0, 7), st.tuples(key, key), st.integers(0, 2), st.tuples(value, value))
    return st.lists(rows, max_size=longest).map(_with_stamps)


def _with_stamps(
    rows: Sequence[tuple[int, tuple[int | None, ...], int, tuple[int | None, ...]]],
) -> list[Event]:
    stamps = np.cumsum([step for _, _, step, _ in rows]).tolist()
    return [
        Event(bits, keys, stamp, values) for (bits, keys, _, values), stamp in zip(rows, stamps, strict=True)
    ]
