"""A set of rules on one source of events: one pass over the events for all rules that have the same keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from estero.answers.rule_answers import RulesRun
from estero.answers.rule_rows import RuleTable, rule_schema
from estero.automata.cea import EventPredicate
from estero.classify.column_names import POSITION, WORD, bits_name
from estero.classify.vectors.conditions import Condition
from estero.events.sources import Source
from estero.plan.plan import Classification, Plan
from estero.plan.together import together
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.in_process import InProcessRun
from estero.recognize.rules.dispatch import (
    Dispatcher,
    condition_columns,
    is_worth_it,
    plain_conditions,
    type_names,
)
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.groups import RuleGroup, groups_of, shape_of
from estero.recognize.source_run import Progress, time_type


@dataclass(frozen=True, slots=True)
class Pass:
    """What is classified in one reading of the events, and the groups of rules that it serves.

    Where conditions are dispatched, they are here by their predicates, and what is classified are types.
    """

    classification: Classification
    groups: tuple[RuleGroup, ...]
    conditions: Mapping[EventPredicate, Condition] = field(default_factory=dict)


def passes_of(plans: Mapping[str, Plan], source: Source | None = None) -> list[Pass]:
    """The readings that a set of rules needs, in order of their first rules.

    Rules share one where they partition by the same keys, and compare the same values of several events.
    With a `source` conditions on its events are dispatched where that serves many rules.
    """
    alike: dict[tuple[object, object], dict[str, Plan]] = {}
    for name, plan in plans.items():
        known = plan.classification
        alike.setdefault((known.keys, known.values), {})[name] = plan
    return [reading for own in alike.values() for reading in _passes(own, source)]


def _passes(plans: Mapping[str, Plan], source: Source | None) -> Iterator[Pass]:
    """The readings of rules with the same keys and values: one, or two where some are dispatched."""
    dispatched = {} if source is None else _dispatched(plans, source)
    others = {name: plan for name, plan in plans.items() if name not in dispatched}
    readings = [_dispatching(dispatched)] if dispatched else []
    if others:
        asked = together([plan.classification for plan in others.values()])
        readings.append(Pass(asked, tuple(groups_of(others))))
    yield from sorted(readings, key=lambda reading: list(plans).index(reading.groups[0].names[0]))


def _dispatching(rules: Mapping[str, tuple[Plan, Mapping[EventPredicate, Condition]]]) -> Pass:
    plans = {name: plan for name, (plan, _) in rules.items()}
    conditions = {key: value for _, own in rules.values() for key, value in own.items()}
    return Pass(_of_types(plans.values()), tuple(groups_of(plans, may_grow=True)), conditions)


def _of_types(plans: Iterable[Plan]) -> Classification:
    """What is asked of events whose conditions are dispatched: their types, and the columns to look at."""
    asked = together([plan.classification for plan in plans])
    types = tuple(EventPredicate((name,)) for name in type_names(asked.predicates))
    payload = tuple(dict.fromkeys((*asked.payload, *condition_columns(asked.predicates))))
    return replace(asked, predicates=types, payload=payload)


def _dispatched(
    plans: Mapping[str, Plan], source: Source
) -> dict[str, tuple[Plan, Mapping[EventPredicate, Condition]]]:
    """The rules whose conditions can be dispatched, with these; none where that does not pay."""
    able = {name: plan for name, plan in plans.items() if shape_of(plan) is not None}
    if not is_worth_it(len(able)):
        return {}
    reading = _of_types(able.values())
    if len(reading.predicates) > WORD:
        return {}
    predicates = {one: None for plan in able.values() for one in plan.classification.predicates}
    plain = plain_conditions(predicates, source.column_types, source.classified_schema(reading))
    dispatched: dict[str, tuple[Plan, Mapping[EventPredicate, Condition]]] = {
        name: (plan, {one: plain[one] for one in plan.classification.predicates})
        for name, plan in able.items()
        if all(one in plain for one in plan.classification.predicates)
    }
    return dispatched if is_worth_it(len(dispatched)) else {}


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
        passes = passes_of(plans, self.source)
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
        dispatcher, places = None, None
        if reading.conditions:
            names = type_names(reading.classification.predicates)
            bits = {name: 1 << place for place, name in enumerate(names)}
            dispatcher = Dispatcher(reading.conditions, bits)
            places = {predicate: place for place, predicate in enumerate(reading.conditions)}
        groups = [
            GroupRecognition(group, reading.classification, events, time=time, dispatched=places)
            for group in reading.groups
        ]
        for batch in self.source.read(reading.classification, self.threads):
            if dispatcher is None:
                for group in groups:
                    yield group, group.push(batch)
            else:
                held = dispatcher.rows(batch, numbers_of(batch, bits_name(0)))
                for group in groups:
                    yield group, group.push_dispatched(batch, held)
            if self.progress is not None and batch.num_rows:
                self.progress.tell(int(np.asarray(batch.column(POSITION))[-1]) + 1, size)
        for group, rules in zip(groups, reading.groups, strict=True):
            known = InProcessRun(rules.plan, self.source, until=self.until).known()
            yield group, group.recognition.ended(known)
