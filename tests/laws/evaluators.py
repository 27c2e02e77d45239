"""Evaluates a query tree on a list of events by the in-process engine, in the form of the reference."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from estero.answers.answer import Answer
from estero.answers.answer_schema import label_of
from estero.events.sources import Source, open_source
from estero.language.check.ticks import in_ticks
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.language.tree.whole import with_whole
from estero.plan.automaton import in_partitions, with_registers
from estero.plan.draft import Draft
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import ComplexEvent, Event
from strategies.patterns import SCHEMA, to_table

ByEnd = dict[int, set[ComplexEvent]]


def opened(table: pa.Table) -> Source:
    """A table of events of `tests.strategies` as a source."""
    return open_source(table, EventLayout.of(type="type", time="time", time_unit="s", only_type="A"))


def planned(tree: QueryTree, table: pa.Table) -> InProcessRun:
    """The run of a query on a table of events of `tests.strategies`, showing every label."""
    return _run(tree, opened(table))


def in_process(tree: QueryTree, events: Sequence[Event]) -> ByEnd:
    """The complex events by end position."""
    return by_end(Answer(_run(tree, _source_of(events))).batches())


def _run(tree: QueryTree, source: Source) -> InProcessRun:
    layout = replace(source.layout, schema=SCHEMA)
    tree = with_whole(tree, SCHEMA.time)
    tree = replace(tree, pattern=in_ticks(tree.pattern, SCHEMA))
    draft = Draft(replace(tree, select=None), layout)
    found = in_partitions(draft)
    everything = with_registers(draft) if isinstance(found, str) else found
    return InProcessRun(replace(everything, tree=replace(everything.tree, select=tree.select)), source)


_LAST: list[tuple[Sequence[Event], Source]] = []
"""What was asked about last: a law asks several queries about one stream, and connecting takes longest."""
atexit.register(_LAST.clear)


def _source_of(events: Sequence[Event]) -> Source:
    if not (_LAST and _LAST[0][0] is events):
        _LAST[:] = [(events, opened(to_table(events)))]
    return _LAST[0][1]


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
