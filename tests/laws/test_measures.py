"""What SELECT computes is what the reference computes of each complex event, however the query is run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.language.tree.query import QueryTree
from estero.reference.measures import evaluate_measures
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import by_end
from laws.test_restart_laws import MOST, SIZES, picked, restarted
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import TICK, queries, streams
from strategies.selections import with_measures

ANY = with_measures(st.one_of(queries(), full_queries()))


def check(tree: QueryTree, events: list[Event], batches: Iterable[pa.RecordBatch]) -> None:
    """Each complex event comes once, and has the values that the reference computes of it."""
    kept = list(batches)
    assert by_end(kept) == evaluate_query(tree, events, tick=TICK)
    for batch in kept:
        for place, row in enumerate(batch.to_pylist()):
            ((complex_event,),) = by_end([batch.slice(place, 1)]).values()
            for name, value in evaluate_measures(tree, complex_event, events, tick=TICK).items():
                assert same(row[name], value), f"{name} of {complex_event}: {row[name]!r}, not {value!r}"


def same(found: Any, value: Any) -> bool:
    """Whether two values are equal, floats up to the last digits.

    The columns have one type, so integers of an expression that may give floats are floats.
    """
    if isinstance(value, list) and isinstance(found, list):
        return len(value) == len(found) and all(map(same, found, value))
    if isinstance(value, float | int) and isinstance(found, float) and not isinstance(value, bool):
        both = math.isnan(value) and math.isnan(found)
        return both or math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-9)
    return type(found) is type(value) and bool(found == value)


@given(ANY, streams())
def test_values_are_those_of_the_reference(tree: QueryTree, events: list[Event]) -> None:
    check(tree, events, Answer(picked(tree, events)).batches())


@settings(max_examples=min(30, MOST))
@given(with_measures(joined_queries()), streams(max_size=10))
def test_so_they_are_where_parts_are_joined(tree: QueryTree, events: list[Event]) -> None:
    check(tree, events, Answer(picked(tree, events)).batches())


@settings(max_examples=min(30, MOST))
@given(ANY, streams(), SIZES)
def test_a_restart_at_every_cut_changes_no_value(
    tree: QueryTree, events: list[Event], sizes: list[int]
) -> None:
    check(tree, events, restarted(picked(tree, events), sizes))


@settings(max_examples=min(30, MOST))
@given(ANY, streams(), st.integers(0, 20))
def test_values_go_with_their_complex_event(tree: QueryTree, events: list[Event], index: int) -> None:
    answer = Answer(picked(tree, events))
    rows = [repr(row) for row in answer.to_arrow().to_pylist()]
    assert [repr(row) for row in answer[index : index + 2].to_arrow().to_pylist()] == rows[index : index + 2]
