"""The reading of events for a set of rules: one pass over them for all rules that have the same keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from estero.answers.rule_rows import RuleTable
from estero.classify.column_names import POSITION
from estero.recognize.ended_sets import EndedSets
from estero.recognize.in_process import InProcessRun
from estero.recognize.rules.group_recognition import GroupRecognition, RuleCounts
from estero.recognize.rules.groups import RuleGroup
from estero.recognize.rules.passes import EventColumns, Pass, passes_of
from estero.recognize.rules.rule_lanes import Dispatched, RuleLane, read_along, shares_of_groups
from estero.recognize.source_run import time_type
from estero.recognize.threads import ranges
from estero.recognize.threads.divided import at_least
from estero.system.collection import without_collection

if TYPE_CHECKING:
    from estero.recognize.rules.set_run import RuleSetRun

T = TypeVar("T")


def tables(run: RuleSetRun) -> Iterator[RuleTable]:
    """The complex events of all rules; those that a batch of events decides come together, by group."""
    yield from _answered(run, GroupRecognition.tables, showing=True)


def placed_rows(run: RuleSetRun) -> Iterator[pa.RecordBatch]:
    """The rows of the complex events of all rules in the common table."""
    yield from _answered(run, GroupRecognition.placed_rows, showing=True)


def counts(run: RuleSetRun) -> dict[str, int]:
    """The exact number of complex events of each rule, by name."""
    total = dict.fromkeys(run.plans, 0)
    for counted in _answered(run, _counts, showing=False):
        for name, number in zip(*counted, strict=True):
            total[name] += number
    return total


def _answered(
    run: RuleSetRun, answers: Callable[[GroupRecognition, EndedSets], Iterable[T]], *, showing: bool
) -> Iterator[T]:
    """The items of the compact sets of all rules, pass by pass and batch by batch."""
    plans, source = run.plans, run.source
    with without_collection():
        if not showing:
            plans = {name: plan.showing_nothing() for name, plan in plans.items()}
        passes = passes_of(plans, EventColumns(source.column_types, source.classified_schema))
    if source.one_shot and len(passes) > 1:
        source.hold()
    size = None if run.progress is None else source.size()
    for reading in passes:
        read = source.read(reading.classification, run.threads)
        first, batches = at_least(read, ranges.SHORTEST)
        lanes = _lanes(run, reading, answers, 1 if first is None else run.threads)
        yield from read_along(lanes, _dispatched(run, reading, batches, size))
    if run.progress is not None and size is not None:
        run.progress.tell(size, size)


def _lanes(
    run: RuleSetRun,
    reading: Pass,
    answers: Callable[[GroupRecognition, EndedSets], Iterable[T]],
    lanes: int,
) -> list[RuleLane[T]]:
    events = run.source.classified_schema(reading.classification)
    time, places = time_type(run.source), reading.places()

    def opened(group: RuleGroup) -> GroupRecognition:
        return GroupRecognition(
            group, reading.classification, events, time=time, dispatched=places, spanning=True
        )

    def known(group: RuleGroup) -> int | None:
        return InProcessRun(group.plan, run.source, until=run.until).known()

    shares = shares_of_groups(reading.groups, lanes)
    return [RuleLane(list(map(opened, share)), answers, known) for share in shares]


def _dispatched(
    run: RuleSetRun, reading: Pass, batches: Iterable[pa.RecordBatch], size: int | None
) -> Iterator[Dispatched]:
    dispatcher = reading.dispatcher()
    for batch in batches:
        yield Dispatched(batch, dispatcher.held(batch))
        if run.progress is not None and batch.num_rows:
            run.progress.tell(int(np.asarray(batch.column(POSITION))[-1]) + 1, size)


def _counts(group: GroupRecognition, ended: EndedSets) -> Iterator[RuleCounts]:
    yield group.counts(ended)
