"""What a stream without an end is read for: rules with the same keys, classified and ordered once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.events.sources import Source
from estero.events.streams.batch_classifier import Incoming
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.plan import Classification, Plan
from estero.plan.together import together
from estero.recognize.ended_sets import EndedSets
from estero.recognize.intake import Intake
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.groups import RuleGroup, groups_of, shape_of
from estero.recognize.source_run import time_type

GroupSets = list[tuple[GroupRecognition, EndedSets]]
"""Compact sets that have ended, each with the group whose it is."""


def reading_of(plan: Plan) -> object:
    """What plans have in common that share a reading."""
    known = plan.classification
    return known.keys, known.values, _decides_by_time(plan)


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """What a state has of a group: at each of its places a rule and the era since which it sees events.

    None stands where a rule was taken out. `recognition` is the state of the recognition.
    """

    places: tuple[tuple[str, int] | None, ...]
    recognition: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KeptReading:
    """What a state has of a reading: that of its intake, and its groups, in order."""

    intake: dict[str, NDArray[Any]]
    groups: tuple[KeptGroup, ...]


class RuleReading:
    """Rules with the same keys on one stream of events, which is numbered and ordered for all of them.

    It begins without rules at position 0, or where `after`, a reading of the same stream, is; `begin` or
    `add` is called next. Rules to come have this in `common` (`reading_of`).
    """

    def __init__(
        self,
        plan: Plan | None,
        layout: StreamLayout,
        source: Source,
        *,
        after: RuleReading | None = None,
    ) -> None:
        self.common: object = None if plan is None else reading_of(plan)
        self._layout = layout
        self._source = source
        self._strict = plan is not None and _decides_by_time(plan)
        self._nothing = _nothing_of(source) if plan is None else _without_conditions(plan.classification)
        self._asked = self._nothing
        self.groups: list[GroupRecognition] = []
        self.intake: Intake = self._opened()
        if after is not None:
            self.intake.follow(after.intake, bits=False)

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans of its rules, by name."""
        return {name: plan for group in self.groups for name, plan in group.plans.items()}

    def homes(self) -> dict[str, GroupRecognition]:
        """The groups of its rules, by their names."""
        return {name: group for group in self.groups for name in group.plans}

    # --------------------------------------------------------------------------------- its rules

    def begin(self, plans: Mapping[str, Plan]) -> None:
        """Begins with these rules, all at once: to add them one by one takes as long for each as for all."""
        groups = groups_of(plans, may_grow=True)
        self._read_for([plan for group in groups for plan in group.plans])
        for group in groups:
            self._group(group, dict.fromkeys(range(len(group.names)), 0))

    def add(self, name: str, plan: Plan) -> None:
        """Adds a rule, which sees the events that are pushed from now on."""
        since = self._next_era()
        shape = shape_of(plan)
        for group in self.groups:
            if shape is not None and group.group.shape == shape:
                group.add(name, plan, since)
                self._ask()
                group.reads(self._asked, self.intake.schema)
                return
        self._ask(plan)
        self._group(RuleGroup((name,), (plan,), shape), {0: since})

    def remove(self, name: str) -> None:
        """Removes a rule; what was open of it is dropped."""
        for group in self.groups:
            group.leave_out(name)
        self.groups = [group for group in self.groups if group.plans]
        self._ask()

    def _next_era(self) -> int:
        """The era that begins now: what was pushed before is not for a rule that is added."""
        era = (self.intake.era or 0) + bool(self.intake.held_back)
        self.intake.era = era
        return era if self.intake.held_back else 0

    def _ask(self, further: Plan | None = None) -> None:
        """Asks for what the rules ask for, in the order of groups, and for a `further` one."""
        plans = [*self.plans.values(), *([] if further is None else [further])]
        self._read_for(plans)

    def _read_for(self, plans: Sequence[Plan]) -> None:
        asked = together([self._nothing, *(plan.classification for plan in plans)])
        if asked == self._asked:
            return
        self._asked = asked
        before, self.intake = self.intake, self._opened()
        self.intake.follow(before, bits=True)
        before.close()
        for group in self.groups:
            group.reads(self._asked, self.intake.schema)

    def _opened(self) -> Intake:
        return Intake(self._layout, self._source, self._asked, strict=self._strict, eras=True)

    def _group(self, rules: RuleGroup, since: Mapping[int, int], state: bytes | None = None) -> None:
        group = GroupRecognition(
            rules,
            self._asked,
            self.intake.schema,
            time=time_type(self._source),
            endless=True,
            since=since,
            state=state,
        )
        group.recognition.recognizer.holding = True
        self.groups.append(group)

    # ------------------------------------------------------------------------ stopping and going on

    def snapshot(self) -> KeptReading:
        """All that is needed to go on."""
        return KeptReading(self.intake.snapshot(), tuple(map(_kept, self.groups)))

    @classmethod
    def resumed(
        cls, kept: KeptReading, plans: Mapping[str, Plan], layout: StreamLayout, source: Source
    ) -> RuleReading:
        """The reading that goes on from a snapshot; `plans` has those of its rules, by name.

        Raises `DataError` where a rule was planned otherwise, and ValueError where these are no groups.
        """
        groups = [_group_of(group.places, plans) for group in kept.groups]
        own = [plan for rules, since in groups for place, plan in enumerate(rules.plans) if place in since]
        reading = cls(own[0] if own else None, layout, source)
        if any(reading_of(plan) != reading.common for plan in own):
            raise ValueError("rules of one reading have several keys")
        reading._read_for(own)
        reading.intake.resume(kept.intake)
        for (rules, since), group in zip(groups, kept.groups, strict=True):
            reading._group(rules, since, group.recognition.tobytes())
        return reading

    # ------------------------------------------------------------------------------- recognition

    def push(self, incoming: Incoming) -> GroupSets:
        """What events that were looked at decide."""
        return self._decided_with(self.intake.admit(incoming))

    def flush(self) -> GroupSets:
        """What all events decide that are held back."""
        return self._decided_with(self.intake.flush())

    def advance(self, ticks: int) -> GroupSets:
        """What is decided as no event before a time comes any more."""
        sets = self._decided_with(self.intake.advance(ticks))
        for group in self.groups:
            group.recognition.expire(position=self.intake.position, time=self.intake.passed)
        return sets

    def close(self, known: int | None) -> GroupSets:
        """What is decided as the stream ends, whose events are known up to time `known`."""
        relevant = self.intake.flush()
        times = [time for time in (known, self.intake.watermark) if time is not None]
        sets: GroupSets = []
        for group in self.groups:
            sets += [(group, ended) for ended in group.push(relevant)]
            sets += [(group, ended) for ended in group.recognition.ended(max(times, default=None))]
        self.intake.close()
        return sets

    def let_go(self) -> None:
        """Frees what is out of reach; what was recognized before must have been read."""
        for group in self.groups:
            group.recognition.let_go()

    def _decided_with(self, relevant: pa.RecordBatch) -> GroupSets:
        position, time = self.intake.position - 1, self.intake.watermark
        sets: GroupSets = []
        for group in self.groups:
            sets += [(group, ended) for ended in group.push(relevant)]
            decided: Iterator[EndedSets] = group.recognition.decided(position=position, time=time)
            sets += [(group, ended) for ended in decided]
        return sets


def _decides_by_time(plan: Plan) -> bool:
    return plan.decides_later or bool(plan.deadlines)


def _without_conditions(known: Classification) -> Classification:
    """What is asked of events with the keys and values of these where there is no rule."""
    return replace(known, predicates=(), payload=(), keep_all=False)


def _nothing_of(source: Source) -> Classification:
    """What is asked of the events of a source where there is no rule."""
    layout = source.layout
    return Classification(
        predicates=(),
        schema=layout.schema,
        type_column=layout.type_column,
        only_type=layout.only_type,
        order=layout.order,
    )


def _kept(group: GroupRecognition) -> KeptGroup:
    since = group.since
    places = [(name, since[place]) if place in since else None for place, name in enumerate(group.names)]
    return KeptGroup(tuple(places), np.frombuffer(group.recognition.snapshot(), np.uint8))


def _group_of(
    places: Sequence[tuple[str, int] | None], plans: Mapping[str, Plan]
) -> tuple[RuleGroup, dict[int, int]]:
    """The group with rules at these places, and the eras since which they see events.

    A place whose rule was taken out has the plan of another one. Raises ValueError for rules that do not go
    together.
    """
    there = {place: rule for place, rule in enumerate(places) if rule is not None}
    own = {place: plans[name] for place, (name, _) in there.items()}
    if not own:
        raise ValueError("a group without rules")
    some = next(iter(own.values()))
    shape = shape_of(some)
    if len(places) > 1 and (shape is None or any(shape_of(plan) != shape for plan in own.values())):
        raise ValueError("rules of one group have several shapes")
    names = ("" if rule is None else rule[0] for rule in places)
    rules = RuleGroup(tuple(names), tuple(own.get(place, some) for place in range(len(places))), shape)
    return rules, {place: era for place, (_, era) in there.items()}
