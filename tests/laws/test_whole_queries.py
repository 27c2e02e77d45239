"""Whole queries, with all that the language has at once: rows are those that the reference allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from hypothesis import given, settings

from estero.answers.answer import Answer
from estero.language.tree.query import QueryTree
from estero.reference.measures import evaluate_measures
from estero.reference.queries import Event, is_answer
from laws.evaluators import by_end
from laws.test_limit_laws import suppressed_at, wanted
from laws.test_measures import same
from laws.test_restart_laws import SIZES, begun, picked
from laws.test_stream_laws import cut
from strategies import TICK, streams
from whole_strategies import whole_queries

MOST = settings.default.max_examples if settings.default else 10


def check(tree: QueryTree, events: list[Event], batches: Iterable[pa.RecordBatch]) -> None:
    """Rows are as many and such as the reference allows, each with its values, and with what was left out."""
    kept = [each for each in batches if each.num_rows]
    found = by_end(kept)
    assert is_answer(tree, events, found, tick=TICK)
    if tree.per is not None:
        assert suppressed_at(kept) == wanted(tree, events)
    for batch in kept:
        for place, row in enumerate(batch.to_pylist()):
            ((complex_event,),) = by_end([batch.slice(place, 1)]).values()
            for name, value in evaluate_measures(tree, complex_event, events, tick=TICK).items():
                assert same(row[name], value), f"{name} of {complex_event}: {row[name]!r}, not {value!r}"


def in_pieces(tree: QueryTree, events: list[Event], sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """The answer of a recognition that is written down and read again at every cut."""
    run = picked(tree, events)
    state: bytes | None = None
    for batch in cut(run, sizes):
        recognition = begun(run, state)
        yield from recognition.push(batch)
        state = recognition.snapshot()
    recognition = begun(run, state)
    for ended in recognition.ended():
        yield from recognition.tables(ended)


@settings(max_examples=2 * MOST)
@given(whole_queries(), streams(max_size=9))
def test_a_whole_query_is_what_the_reference_says(tree: QueryTree, events: list[Event]) -> None:
    run = picked(tree, events)
    batches = list(Answer(run).batches())
    check(tree, events, batches)
    assert run.count() == sum(batch.num_rows for batch in batches)


@given(whole_queries(), streams(max_size=9), SIZES)
def test_cut_and_restored_it_is_the_same(tree: QueryTree, events: list[Event], sizes: list[int]) -> None:
    check(tree, events, in_pieces(tree, events, sizes))
