"""Whole queries, with all that the language has at once: rows are those that the reference allows."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.tree.query import QueryTree
from estero.recognize.in_process import InProcessRun
from estero.reference.measures import evaluate_measures
from estero.reference.queries import Event, is_answer
from laws.evaluators import by_end
from laws.test_absence_laws import restarted
from laws.test_limit_laws import suppressed_at, wanted
from laws.test_measures import same
from laws.test_restart_laws import SIZES, picked
from strategies.alike import alike_event, alike_run, alike_tree
from strategies.nested import nested_event, nested_run, nested_tree
from strategies.parameters import with_parameters
from strategies.patterns import TICK, streams
from strategies.whole import whole_queries

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


FORMS = st.sampled_from(["plain", "nested", "alike", "bound"])
"""As they are; inside of structs and lists; of names that differ in case only; with parameters."""


def asked(tree: QueryTree, events: list[Event], form: str) -> tuple[QueryTree, list[Event], InProcessRun]:
    """The query and the events in a form, and the run of the one on the other."""
    if form == "nested":
        tree, events = nested_tree(tree), list(map(nested_event, events))
        return tree, events, nested_run(tree, events)
    if form == "alike":
        tree, events = alike_tree(tree), list(map(alike_event, events))
        return tree, events, alike_run(tree, events)
    if form == "bound":
        text, values = with_parameters(tree)
        tree = estero.Query(text).bind(values).tree
    return tree, events, picked(tree, events)


@settings(max_examples=2 * MOST)
@given(whole_queries(), streams(max_size=9), FORMS)
def test_a_whole_query_is_what_the_reference_says(tree: QueryTree, events: list[Event], form: str) -> None:
    tree, events, run = asked(tree, events, form)
    batches = list(Answer(run).batches())
    check(tree, events, batches)
    assert run.count() == sum(batch.num_rows for batch in batches)


@given(whole_queries(), streams(max_size=9), SIZES, FORMS)
def test_cut_and_restored_it_is_the_same(
    tree: QueryTree, events: list[Event], sizes: list[int], form: str
) -> None:
    tree, events, run = asked(tree, events, form)
    check(tree, events, restarted(run, sizes))
