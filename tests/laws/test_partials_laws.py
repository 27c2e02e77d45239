"""Partial matches are those of the reference, of batches and of what is pushed, whatever is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.answers.answer_schema import label_of
from estero.errors import QueryError
from estero.language.tree.expressions import Aggregate, Attribute
from estero.language.tree.levels import levels_of, prefix_query
from estero.language.tree.pattern import ending
from estero.language.tree.query import EveryLabel, QueryTree, SelectExpression
from estero.language.tree.selection import label_types
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.reference.partial_matches import evaluate_funnel, evaluate_partials
from estero.reference.queries import ComplexEvent, Event, is_answer
from laws.evaluators import by_end
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST
from strategies.partials import queries_with_levels
from strategies.patterns import TABLE, TICK, streams, to_table

Partials = dict[int, tuple[int, set[ComplexEvent]]]

SIZES = st.one_of(st.just([1]), st.just([1000]), st.lists(st.integers(1, 5), min_size=1, max_size=4))
"""How many events are pushed at once, in turn: one by one, all, or small pieces."""


def wanted(tree: QueryTree, events: list[Event], *, chosen: bool = False) -> Partials | None:
    """What the reference says; None where an absence depends on a later part."""
    try:
        return evaluate_partials(tree, events, tick=TICK, chosen=chosen)
    except QueryError:
        return None


def check(found: Iterable[pa.RecordBatch], right: Partials) -> None:
    """Each start has one row, of its level, with a complex event that NEXT may choose."""
    levels = {}
    for batch in found:
        for place, row in enumerate(batch.to_pylist()):
            ((complex_event,),) = by_end([batch.slice(place, 1)]).values()
            assert row["start"] not in levels
            levels[row["start"]] = row["steps"]
            assert complex_event in right[row["start"]][1]
    assert levels == {start: level for start, (level, _) in right.items()}


def counting(data: st.DataObject, tree: QueryTree) -> tuple[QueryTree, str]:
    """The query with a column that counts the events of one of its labels, and that label.

    Where it waits for deadlines, another column says when it is decided.
    """
    label = data.draw(st.sampled_from(tuple(label_types(tree.pattern))))
    shown = [SelectExpression(Aggregate("count", label), "how_many")]
    shown += [SelectExpression(Attribute("decided_time"), "known_at")] if ending(tree.pattern) else []
    return replace(tree, select=(EveryLabel(), *shown)), label


def check_counts(found: Iterable[pa.RecordBatch], tree: QueryTree, label: str) -> None:
    """The count is there where the label belongs to a step that came, and else NULL."""
    levels = levels_of(tree.pattern)
    for batch in found:
        (column,) = (field.name for field in batch.schema if label_of(field) == label)
        for row in batch.to_pylist():
            came = label in label_types(prefix_query(tree, levels[row["steps"] - 1]).pattern)
            assert row.get("known_at") is None
            assert row["how_many"] == (len(row[column]) if came else None)


def run_of(tree: QueryTree, events: list[Event]) -> InProcessRun:
    return InProcessRun(plan_of(tree, layout_of()), source_of(events))


@given(queries_with_levels(), streams(min_size=4, max_size=12), st.data())
def test_those_of_a_batch_are_those_of_the_reference(
    tree: QueryTree, events: list[Event], data: st.DataObject
) -> None:
    tree, label = counting(data, tree)
    right = wanted(tree, events)
    answer = Answer(run_of(tree, events))
    if right is None:
        with pytest.raises(QueryError, match="depends on a later part"):
            answer.partials().count()
        return
    check(answer.partials().batches(), right)
    check_counts(answer.partials().batches(), tree, label)
    assert answer.partials().count() == len(right)
    starts = answer.funnel().to_arrow()["starts"].to_pylist()
    assert starts == evaluate_funnel(tree, events, tick=TICK)


@given(queries_with_levels(), streams(min_size=4, max_size=12))
def test_so_are_those_of_what_is_chosen(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, limit=None, per=None)  # any so many are right
    right = wanted(tree, events, chosen=True)
    if right is None:
        return
    answer = Answer(run_of(tree, events))
    check(answer.partials(chosen=True).batches(), right)
    starts = answer.funnel(chosen=True).to_arrow()["starts"].to_pylist()
    assert starts == evaluate_funnel(tree, events, tick=TICK, chosen=True)


@settings(max_examples=max(10, MOST // 2))  # as long as thrice as many of a batch
@given(
    queries_with_levels(),
    streams(min_size=4, max_size=12),
    SIZES,
    st.sampled_from([None, "3 seconds"]),
    st.booleans(),
    st.data(),
)
def test_pushed_cut_and_restored_they_are_those_of_the_reference(
    tree: QueryTree,
    events: list[Event],
    sizes: list[int],
    lateness: str | None,
    restored: bool,
    data: st.DataObject,
) -> None:
    right = wanted(tree, events)
    if right is None:
        return
    tree, label = counting(data, tree)
    query = estero.query(str(tree))
    options: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s", "lateness": lateness}
    recognizer = query.recognizer(TABLE, **options, partials=True)
    found: list[pa.Table] = []
    table, first, turn = to_table(events), 0, 0
    while first < table.num_rows:
        size = sizes[turn % len(sizes)]
        found.append(recognizer.push(table.slice(first, size)).to_arrow())
        if restored:
            recognizer = estero.restore(query, recognizer.snapshot(), partials=True)
        first, turn = first + size, turn + 1
    found.append(recognizer.close().to_arrow())
    together = pa.concat_tables(found).combine_chunks()
    partial = together.filter(pc.invert(together["complete"])).to_batches()
    check(partial, right)
    check_counts(partial, tree, label)
    whole = together.filter(together["complete"]).to_batches()
    if ending(tree.pattern):
        assert all(each["known_at"].equals(each["decided_time"]) for each in whole)
    assert is_answer(tree, events, by_end(whole), tick=TICK)
