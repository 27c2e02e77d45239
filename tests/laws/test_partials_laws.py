"""Partial matches of a stream that is pushed: those of the whole stream, whatever the cuts and restarts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from absence_strategies import absent_queries
from estero.answers.answer import Answer
from estero.errors import QueryError
from estero.language.tree.query import QueryTree
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST, SIZES
from recognize.test_levels import sequences
from strategies import TABLE, streams, to_table

_KEY = "start", "end", "steps"
Row = tuple[object, ...]


def rows(table: pa.Table) -> set[Row]:
    """Start, end, level, and the positions under each label."""
    labels = [field.name for field in table.schema if b"estero:label" in (field.metadata or {})]
    return {
        (
            *(row[name] for name in _KEY),
            *(tuple(each["position"] for each in row[name] or ()) for name in labels),
        )
        for row in table.to_pylist()
    }


@settings(max_examples=max(60, MOST))
@given(
    st.one_of(sequences(), absent_queries().filter(lambda tree: tree.window is not None)),
    streams(max_size=10),
    SIZES,
    st.sampled_from([None, "3 seconds"]),
    st.booleans(),
)
def test_cut_and_restored_they_are_those_of_the_whole_stream(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: str | None, restored: bool
) -> None:
    tree = replace(tree, select=None)
    run = InProcessRun(plan_of(tree, layout_of()), source_of(events))
    try:
        wanted = rows(Answer(run).partials().to_arrow())
    except QueryError:
        return
    complete = {(each.start, each.end) for each in Answer(run)}
    query = estero.query(str(tree))
    recognizer = query.recognizer(
        TABLE, type="type", time="time", time_unit="s", lateness=lateness, partials=True
    )
    found: list[pa.Table] = []
    table, first, turn = to_table(events), 0, 0
    while first < table.num_rows:
        size = sizes[turn % len(sizes)]
        found.append(recognizer.push(table.slice(first, size)).to_arrow())
        if restored:
            recognizer = estero.restore(query, recognizer.snapshot(), partials=True)
        first, turn = first + size, turn + 1
    found.append(recognizer.close().to_arrow())
    together = pa.concat_tables(found)
    assert rows(together.filter(pa.compute.invert(together["complete"]))) == wanted, str(tree)
    whole = together.filter(together["complete"])
    assert set(zip(whole["start"].to_pylist(), whole["end"].to_pylist(), strict=True)) == complete
    assert together.filter(pa.compute.invert(together["complete"])).num_rows == len(wanted)
