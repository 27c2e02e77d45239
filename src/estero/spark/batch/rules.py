"""The plans of a set of rules and a DataFrame of events → a DataFrame of the complex events of all of them.

Rules that tasks may divide in the same way share a pass: events are classified, moved and sorted for all of
them at once, and a task recognizes them as a process does (`GroupRecognition`). All passes are one job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from estero.answers.rule_metadata import RuleColumns
from estero.answers.rule_rows import common_rows, rule_schema
from estero.plan.division import Division, division_of
from estero.plan.plan import Layout, Plan, Window
from estero.plan.together import reading_of
from estero.recognize.rules.conditions.dispatch import Dispatcher
from estero.recognize.rules.passes import EventColumns, Pass, dispatched_passes
from estero.spark.batch.batch import keyed, known_time
from estero.spark.batch.distribute import distribute
from estero.spark.batch.halo import after_halo
from estero.spark.frames import arrow_type, classified_schema, columns_of_frame
from estero.spark.work import Batches, Work, classified_batch, shown_time, spark_schema, told_apart
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from estero.recognize.ended_sets import EndedSets
    from estero.recognize.rules.group_recognition import GroupRecognition
    from estero.recognize.until import Until


MANY: Final = 256
"""The number of conditions from which Python workers dispatch them instead of the JVM evaluating them."""


@dataclass(frozen=True, slots=True)
class RulesWork:
    """The work of a task for all rules of a pass; it travels to workers by pickle.

    `events` is the schema of the events classified for the `reading`, `answer` the common columns, to which
    the metadata columns `said` are added, and `known` the time up to which events are known, for rules that
    wait for a deadline.
    """

    reading: Pass
    events: pa.Schema
    time: pa.DataType | None
    answer: pa.Schema
    known: int | None
    said: RuleColumns

    def on_batches(self, batches: Batches) -> Batches:
        """The rows of the common table that end in a task's own events, as ``mapInArrow`` calls it."""
        spare_collector()
        groups: list[GroupRecognition] = []
        dispatcher, seen = Dispatcher(), 0
        for piece in after_halo(batches):
            if not groups:  # a task without events loads nothing
                groups, dispatcher = self._recognitions(), self.reading.dispatcher()
            classified = classified_batch(piece.rows, self.events, seen)
            seen += classified.num_rows
            held = dispatcher.held(classified)
            for group in groups:
                for ended in group.push(classified, held):
                    if piece.own:
                        yield from self._shown(group, ended)
        for group in groups:
            known = None if group.group.plan.wait is None else self.known
            for ended in group.recognition.ended(known):
                yield from self._shown(group, ended)

    def _recognitions(self) -> list[GroupRecognition]:
        from estero.recognize.rules.group_recognition import GroupRecognition  # for workers only

        asked, places = self.reading.classification, self.reading.places()
        return [
            GroupRecognition(group, asked, self.events, time=self.time, dispatched=places)
            for group in self.reading.groups
        ]

    def _shown(self, group: GroupRecognition, ended: EndedSets) -> Iterator[pa.RecordBatch]:
        for table in group.tables(ended):
            yield self.said.added(common_rows(table, self.answer))


def recognize_rules(
    df: DataFrame,
    plans: Mapping[str, Plan],
    layout: Layout,
    *,
    positions: bool,
    partitions: int | None,
    until: Until | None,
    said: RuleColumns,
) -> DataFrame:
    """The complex events of all `plans`, by name, in the common columns: lazy, except for cutting ranges.

    Without `positions` these have events (`shown_of_rules`). `partitions` and `until` are as for
    `recognize_frame`. Raises `DataError` for a column that cannot cross, and ValueError for an `until` that
    no rule needs.
    """
    time = shown_time(df.schema, layout.schema.time)
    plans, answer = shown_of_rules(df.schema, plans, layout, positions=positions)
    waiting = [plan for plan in plans.values() if plan.wait is not None]
    if until is not None and not waiting:
        raise ValueError("until is for rules that end with NOT(…) FOR, and there is none: leave until out")
    known = known_time(df, Work.of(df.schema, waiting[0], positions=positions), until) if waiting else None
    frames, distributions = [], []
    for rules, division in passes_of(plans, positions=positions):
        events, own = keyed_rules(df, rules)
        for reading in dispatched_passes(own, event_columns(events.schema, own, ordinals=division.ordinals)):
            asked = reading.classification
            plans_read = [plan for group in reading.groups for plan in group.plans]
            widest = replace(plans_read[0], classification=asked, window=widest_window(plans_read))
            distributed = distribute(events, widest, division, partitions)
            classified = classified_schema(events.schema, asked, ordinals=division.ordinals)
            work = RulesWork(reading, classified, time, answer, known, said)
            distributions.append(distributed)
            frames.append(distributed.rows.mapInArrow(work.on_batches, spark_schema(said.schema(answer))))
    if not frames:
        return df.sparkSession.createDataFrame([], spark_schema(said.schema(answer)))
    matches = reduce(type(df).union, frames)
    for distributed in distributions:
        distributed.release_with(matches)
    return matches


def shown_of_rules(
    events: StructType, plans: Mapping[str, Plan], layout: Layout, *, positions: bool
) -> tuple[dict[str, Plan], pa.Schema]:
    """The plans as rows of the common columns need them, and these columns.

    Without `positions` an event is shown by the columns that it is ordered by: its time, and those that break
    ties. No other attribute crosses to Python only to be shown.
    """
    time = shown_time(events, layout.schema.time)
    if positions:
        return {name: plan.showing_only(()) for name, plan in plans.items()}, rule_schema(time)
    ordered = [] if layout.schema.time is None else [layout.schema.time]
    names = tuple(dict.fromkeys([*ordered, *layout.order]))
    shown = told_apart(pa.schema([(name, arrow_type(name, events)) for name in names]))
    return {name: plan.showing_only(names) for name, plan in plans.items()}, rule_schema(
        time, pa.struct(list(shown))
    )


def passes_of(
    plans: Mapping[str, Plan], *, positions: bool = True
) -> Iterator[tuple[dict[str, Plan], Division]]:
    """The rules that share a pass, in order of their first ones, and the division of the pass among tasks.

    They have the same keys, compare the same numbers, and are divided alike: if the stream is cut into ranges
    of time, by windows of one kind, because each range is preceded by the longest of them.
    """
    alike: dict[tuple[object, ...], tuple[dict[str, Plan], Division]] = {}
    for name, plan in plans.items():
        division = division_of(plan, positions=positions)
        asked = plan.classification
        by_place = division.cut and plan.window is not None and plan.window.in_positions
        shared = tuple(sorted(plan.shared.items()))
        key = (*reading_of(asked), asked.keep_all, shared, division, by_place)
        own = replace(plan, classification=replace(asked, keep_all=False)) if division.ordinals else plan
        alike.setdefault(key, ({}, division))[0][name] = own
    yield from alike.values()


def event_columns(events: StructType, plans: Mapping[str, Plan], *, ordinals: bool) -> EventColumns | None:
    """The columns for conditions that Python's workers dispatch; None if the JVM evaluates them.

    With the JVM fewer events cross, but it evaluates all conditions on each of them.
    """
    if sum(len(plan.classification.predicates) for plan in plans.values()) < MANY:
        return None
    types = {name: replace(column, stands=None) for name, column in columns_of_frame(events).items()}
    return EventColumns(types, partial(classified_schema, events, ordinals=ordinals))


def keyed_rules(df: DataFrame, plans: Mapping[str, Plan]) -> tuple[DataFrame, dict[str, Plan]]:
    """The events and the plans with a partition key if all events of an answer share a value."""
    events, first = keyed(df, next(iter(plans.values())))
    keys = first.classification.keys
    return events, {
        name: replace(plan, classification=replace(plan.classification, keys=keys))
        for name, plan in plans.items()
    }


def widest_window(plans: Iterable[Plan]) -> Window | None:
    """The longest window of some plans; None if one has none."""
    windows = [plan.window for plan in plans]
    known = [window for window in windows if window is not None]
    return max(known, key=lambda window: window.length) if len(known) == len(windows) else None
