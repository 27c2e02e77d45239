"""Evaluates a query tree on a list of events by the in-process engine, in the form of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from estero.language.query import QueryTree
from estero.pipeline.answer import Answer
from estero.pipeline.in_process import InProcessRun
from estero.pipeline.report import label_of
from estero.pipeline.sources import open_source
from estero.plan import Layout, Plan, plan_query
from estero.semantics import ComplexEvent, Event
from strategies import SCHEMA, to_table

ByEnd = dict[int, set[ComplexEvent]]


def planned(tree: QueryTree, table: pa.Table) -> InProcessRun:
    """The run of a query on a table of events of `tests.strategies`, showing every label."""
    source = open_source(table, type="type", time="time", time_unit="s", only_type="A")
    layout = Layout(SCHEMA, source.type_column, source.only_type, source.order, source.time_tick_ns)
    return InProcessRun(_showing_all(plan_query(tree, layout), layout), source)


def _showing_all(plan: Plan, layout: Layout) -> Plan:
    everything = plan_query(replace(plan.tree, select=None), layout)
    return replace(everything, tree=plan.tree)


def in_process(tree: QueryTree, events: Sequence[Event]) -> ByEnd:
    """The complex events by end position."""
    return by_end(Answer(planned(tree, to_table(events))).batches())


def by_end(batches: Iterable[pa.RecordBatch]) -> ByEnd:
    """Public tables in the form of the reference; fails on a complex event that comes twice."""
    found: ByEnd = {}
    for batch in batches:
        labels = {field.name: label_of(field) for field in batch.schema}
        for row in batch.to_pylist():
            marked = frozenset(
                (label, frozenset(event["position"] for event in row[name]))
                for name, label in labels.items()
                if label is not None and row[name]
            )
            complex_event = ComplexEvent(row["start"], row["end"], marked)
            same_end = found.setdefault(row["end"], set())
            assert complex_event not in same_end, f"{complex_event} comes twice"
            same_end.add(complex_event)
    return found
