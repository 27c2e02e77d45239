"""A set of rules over one source of events: one pass for all rules with the same keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from estero.answers.rule_answers import RulesRun
from estero.answers.rule_rows import RuleTable, rule_schema
from estero.classify.column_names import POSITION
from estero.events.sources import Source
from estero.plan.plan import Plan
from estero.recognize.ended_sets import EndedSets
from estero.recognize.in_process import InProcessRun
from estero.recognize.rules.group_recognition import GroupRecognition, RuleCounts
from estero.recognize.rules.groups import RuleGroup
from estero.recognize.rules.passes import EventColumns, Pass, passes_of
from estero.recognize.rules.rule_lanes import Dispatched, RuleLane, read_along, shares_of_groups
from estero.recognize.source_run import Progress, time_type
from estero.recognize.threads import ranges
from estero.recognize.threads.divided import at_least
from estero.system.collection import without_collection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuleSetRun(RulesRun):
    """The plans of a set of rules, by name, over one source; each method reads the events again.

    Events are known up to time `until`, in ticks, or up to the last one. `progress` is called after each
    batch. If there are many events, the rules are divided among up to `threads` threads.
    """

    plans: Mapping[str, Plan]
    source: Source
    until: int | None = None
    progress: Progress | None = None
    threads: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self.plans)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table."""
        return rule_schema(time_type(self.source))

    def alone(self, name: str) -> InProcessRun:
        """The run of one rule."""
        return InProcessRun(self.plans[name], self.source, until=self.until, threads=self.threads)

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules; those that a batch of events decides come together, by group."""
        yield from self._answered(GroupRecognition.tables, showing=True)

    def placed_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the complex events of all rules in the common table."""
        yield from self._answered(GroupRecognition.placed_rows, showing=True)

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""
        total = dict.fromkeys(self.plans, 0)
        for counted in self._answered(_counts, showing=False):
            for name, number in zip(*counted, strict=True):
                total[name] += number
        return total

    def _answered(
        self, answers: Callable[[GroupRecognition, EndedSets], Iterable[T]], *, showing: bool
    ) -> Iterator[T]:
        """The items of the compact sets of all rules, pass by pass and batch by batch."""
        with without_collection():
            plans = self.plans
            if not showing:
                plans = {name: plan.showing_nothing() for name, plan in plans.items()}
            passes = passes_of(plans, EventColumns(self.source.column_types, self.source.classified_schema))
        if self.source.one_shot and len(passes) > 1:
            self.source.hold()
        size = None if self.progress is None else self.source.size()
        for reading in passes:
            read = self.source.read(reading.classification, self.threads)
            first, batches = at_least(read, ranges.SHORTEST)
            lanes = self._lanes(reading, answers, 1 if first is None else self.threads)
            yield from read_along(lanes, self._dispatched(reading, batches, size))
        if self.progress is not None and size is not None:
            self.progress.tell(size, size)

    def _lanes(
        self, reading: Pass, answers: Callable[[GroupRecognition, EndedSets], Iterable[T]], lanes: int
    ) -> list[RuleLane[T]]:
        events = self.source.classified_schema(reading.classification)
        time, places = time_type(self.source), reading.places()

        def opened(group: RuleGroup) -> GroupRecognition:
            return GroupRecognition(
                group, reading.classification, events, time=time, dispatched=places, spanning=True
            )

        def known(group: RuleGroup) -> int | None:
            return InProcessRun(group.plan, self.source, until=self.until).known()

        shares = shares_of_groups(reading.groups, lanes)
        return [RuleLane(list(map(opened, share)), answers, known) for share in shares]

    def _dispatched(
        self, reading: Pass, batches: Iterable[pa.RecordBatch], size: int | None
    ) -> Iterator[Dispatched]:
        dispatcher = reading.dispatcher()
        for batch in batches:
            yield Dispatched(batch, dispatcher.held(batch))
            if self.progress is not None and batch.num_rows:
                self.progress.tell(int(np.asarray(batch.column(POSITION))[-1]) + 1, size)


def _counts(group: GroupRecognition, ended: EndedSets) -> Iterator[RuleCounts]:
    yield group.counts(ended)
