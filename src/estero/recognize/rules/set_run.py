"""A set of rules on one source of events: one pass over the events for all rules that have the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from estero.answers.rule_answers import RulesRun
from estero.answers.rule_rows import RuleTable, rule_schema
from estero.classify.column_names import POSITION, bits_name
from estero.events.sources import Source
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.in_process import InProcessRun
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.passes import EventColumns, Pass, passes_of
from estero.recognize.source_run import Progress, time_type


@dataclass(frozen=True, slots=True)
class RuleSetRun(RulesRun):
    """The plans of a set of rules, by name, over one source; every question reads the events anew.

    Events are known up to time `until`, in ticks, or the last one. `progress` is told behind each batch.
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
        """The run of one rule by itself."""
        return InProcessRun(self.plans[name], self.source, until=self.until, threads=self.threads)

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules; those that a batch of events decides together, by group."""
        for group, sets in self._sets(showing=True):
            for ended in sets:
                yield from group.tables(ended)

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""
        total = dict.fromkeys(self.plans, 0)
        for group, sets in self._sets(showing=False):
            for ended in sets:
                for name, number in zip(*group.counts(ended), strict=True):
                    total[name] += number
        return total

    def _sets(self, *, showing: bool) -> Iterator[tuple[GroupRecognition, Iterator[EndedSets]]]:
        """The compact sets of all rules, each batch's by group; they are to be read before the next."""
        plans = self.plans
        if not showing:
            plans = {name: plan.showing_nothing() for name, plan in plans.items()}
        passes = passes_of(plans, EventColumns(self.source.column_types, self.source.classified_schema))
        if self.source.one_shot and len(passes) > 1:
            self.source.hold()
        size = None if self.progress is None else self.source.size()
        for reading in passes:
            yield from self._of_pass(reading, size)
        if self.progress is not None and size is not None:
            self.progress.tell(size, size)

    def _of_pass(
        self, reading: Pass, size: int | None
    ) -> Iterator[tuple[GroupRecognition, Iterator[EndedSets]]]:
        events = self.source.classified_schema(reading.classification)
        time = time_type(self.source)
        dispatcher, places = reading.dispatcher(), reading.places()
        groups = [
            GroupRecognition(group, reading.classification, events, time=time, dispatched=places)
            for group in reading.groups
        ]
        for batch in self.source.read(reading.classification, self.threads):
            held = None if dispatcher is None else dispatcher.rows(batch, numbers_of(batch, bits_name(0)))
            for group in groups:
                yield group, group.push(batch, held)
            if self.progress is not None and batch.num_rows:
                self.progress.tell(int(np.asarray(batch.column(POSITION))[-1]) + 1, size)
        for group, rules in zip(groups, reading.groups, strict=True):
            known = InProcessRun(rules.plan, self.source, until=self.until).known()
            yield group, group.recognition.ended(known)
