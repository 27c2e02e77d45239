"""Hierarchical conjunctive queries on the engine: what is found and counted is what the reference says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from automata.hierarchical import hierarchical_pcea
from automata.run_trees import is_true, key_of
from engine.pcea_runs import enumerated
from estero.automata.pcea import PCEA
from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import PceaTables, Transition, pcea_tables
from estero.language.check.atoms import named_atoms
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.distances import EventWindow
from estero.language.tree.literals import Value
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import ComplexEvent, Event
from estero.reference.values import compare
from strategies.conjunctive import SCHEMA, hierarchical_queries, streams

BITS_IN_WORD = 63


def tables_of(pcea: PCEA) -> PceaTables:
    """Transition k marks events with k."""
    transitions = [
        Transition(
            [(source.state, source.left, source.right) for source in each.sources],
            each.predicate,
            mark,
            each.target,
        )
        for mark, each in enumerate(pcea.transitions)
    ]
    return pcea_tables(len(pcea.states), transitions, sorted(pcea.final))


def batch_of(pcea: PCEA, events: Sequence[Event]) -> EventBatch:
    """Equal keys are given equal numbers; stamps are positions."""
    distinct: list[tuple[Value, ...]] = []
    words = np.zeros((len(events), 1 + len(pcea.predicates) // BITS_IN_WORD), np.uint64)
    keys = np.zeros((len(events), len(pcea.keys), 2), np.uint64)
    known = np.zeros((len(events), len(pcea.keys)), np.bool_)
    for place, event in enumerate(events):
        for bit, predicate in enumerate(pcea.predicates):
            word, shift = divmod(bit, BITS_IN_WORD)
            words[place, word] |= np.uint64(is_true(predicate, event) << shift)
        for column, key in enumerate(pcea.keys):
            values = key_of(key, event)
            if values is not None:
                known[place, column] = True
                keys[place, column] = number_of(distinct, values)
    return EventBatch(np.arange(len(events)), words, keys, known)


def number_of(distinct: list[tuple[Value, ...]], values: tuple[Value, ...]) -> int:
    """The place of the first equal values, which are put there if there are none."""
    for number, others in enumerate(distinct):
        if len(others) == len(values) and all(
            compare("=", one, two) for one, two in zip(others, values, strict=True)
        ):
            return number
    distinct.append(values)
    return len(distinct) - 1


@given(hierarchical_queries(), streams(most=9), st.sampled_from((1, 4096)))
def test_the_engine_finds_the_valuations_of_a_query_each_once(
    query: ConjunctiveTree, events: list[Event], capacity: int
) -> None:
    pcea = hierarchical_pcea(named_atoms(query, SCHEMA))
    window = query.window.events if isinstance(query.window, EventWindow) else None
    recognizer = Recognizer(PceaRuns(tables_of(pcea), window, capacity=capacity))
    found: Counter[ComplexEvent] = Counter()
    counted: Counter[int] = Counter()
    for roots in recognizer.push(batch_of(pcea, events)):
        for end, items in enumerated(recognizer, roots):
            labels: dict[str, set[int]] = {}
            for event, mark in items:
                for label in pcea.transitions[mark].labels:
                    labels.setdefault(label, set()).add(event)
            frozen = frozenset((label, frozenset(positions)) for label, positions in labels.items())
            found[ComplexEvent(items[0][0], end, frozen)] += 1
        for end, number in zip(*recognizer.counts_by_end(roots), strict=True):
            counted[int(end)] += number
    expected = evaluate_conjunctive(query, events)
    assert found == Counter(each for at_end in expected.values() for each in at_end)
    assert counted == {end: len(at_end) for end, at_end in expected.items() if at_end}
