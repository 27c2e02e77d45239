"""Patterns that are chains on the ED-index: what is found and counted is what the reference says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from automata.chain_runs import complex_event
from automata.run_trees import is_true, key_of
from automata.test_chain import CHAINS, chain_for
from engine.chain_steps import enumerated
from estero.automata.chain import Chain, ChainColumns, chain_columns
from estero.engine.batch import BITS_IN_WORD, EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.run_chain import ChainStep, ChainTables, chain_tables
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.literals import Value
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern
from strategies.patterns import streams

UNORDERED = [text for text in CHAINS if not chain_for(text).ordered and not chain_for(text).residuals]

MORE = (
    "A+ AS x ; B AS y FILTER x.k = y.k AND x.n = y.n",
    "(A AS x ; B AS y ; C AS z FILTER x.n != y.n AND y.n != z.n AND y.k = z.k)",
    "(A AS x ; B AS y FILTER x.n != y.n AND x.s != y.s)+",
    "A AS x ; (B OR C) AS y FILTER x.n != y.k AND x.k != y.n",
)


def tables_of(chain: Chain, columns: ChainColumns) -> ChainTables:
    """Transition k marks events with k."""
    steps = [
        ChainStep(each.source, each.predicate, mark, each.target, each.left, each.right, each.unequal)
        for mark, each in enumerate(columns.transitions)
    ]
    return chain_tables(len(chain.states), steps, sorted(chain.final))


def batch_of(chain: Chain, columns: ChainColumns, events: Sequence[Event]) -> EventBatch:
    """Equal keys are given equal numbers."""
    numbers: dict[object, int] = {}
    words = np.zeros((len(events), 1 + len(chain.predicates) // BITS_IN_WORD), np.uint64)
    keys = np.zeros((len(events), max(1, len(columns.keys)), 2), np.uint64)
    known = np.zeros(keys.shape[:2], np.bool_)
    for place, event in enumerate(events):
        for bit, predicate in enumerate(chain.predicates):
            word, shift = divmod(bit, BITS_IN_WORD)
            words[place, word] |= np.uint64(is_true(predicate, event) << shift)
        for column, key in enumerate(columns.keys):
            values = key_of(key, event)
            number: object = ("NULL", key.null) if values is None else tuple(map(plain, values))
            if values is not None or key.null is not None:
                known[place, column] = True
                keys[place, column] = numbers.setdefault(number, len(numbers))
    return EventBatch(np.arange(len(events)), words, keys, known)


def plain(value: Value) -> object:
    """What is equal for equal values: one NaN is like another."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else (value,)


@pytest.mark.parametrize("text", [*UNORDERED, *MORE])
@given(events=streams(max_size=8), capacity=st.sampled_from((1, 4096)))
def test_the_engine_finds_the_complex_events_of_a_chain_each_once(
    text: str, events: list[Event], capacity: int
) -> None:
    chain = chain_for(text)
    columns = chain_columns(chain)
    recognizer = Recognizer(ChainRuns(tables_of(chain, columns), capacity=capacity))
    found: Counter[ComplexEvent] = Counter()
    counted: Counter[int] = Counter()
    for roots in recognizer.push(batch_of(chain, columns, events)):
        for _, items in enumerated(recognizer, roots):
            labelled = [(label, event) for event, mark in items for label in chain.transitions[mark].labels]
            found[complex_event(frozenset(labelled))] += 1
        for end, number in zip(*recognizer.counts_by_end(roots), strict=True):
            counted[int(end)] += number
    expected = evaluate_pattern(parse_pattern(text), events)
    assert found == Counter(expected)
    assert counted == Counter(each.end for each in expected)


def test_there_are_enough_patterns_with_disequalities() -> None:
    assert (
        sum(any(each.different for each in chain_for(text).transitions) for text in (*UNORDERED, *MORE)) >= 6
    )


def test_an_order_has_no_columns() -> None:
    with pytest.raises(ValueError, match="some neighbours are compared by an order"):
        chain_columns(chain_for("A AS x ; B AS y FILTER x.n < y.n"))
