"""What a stream without an end is read for: rules with the same keys, classified and ordered once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from estero.events.sources import Source
from estero.events.streams.batch_classifier import Incoming
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.plan import Plan
from estero.plan.together import together
from estero.recognize.ended_sets import EndedSets
from estero.recognize.intake import Intake
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.groups import RuleGroup, shape_of
from estero.recognize.source_run import time_type

GroupSets = list[tuple[GroupRecognition, EndedSets]]
"""Compact sets that have ended, each with the group whose it is."""


def reading_of(plan: Plan) -> object:
    """What plans have in common that share a reading."""
    known = plan.classification
    return known.keys, known.values, _decides_by_time(plan)


class RuleReading:
    """Rules with the same keys on one stream of events, which is numbered and ordered for all of them.

    It begins with one rule, at position 0, or where `after`, a reading of the same stream, is.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        layout: StreamLayout,
        source: Source,
        *,
        after: RuleReading | None = None,
    ) -> None:
        self.common: object = reading_of(plan)
        self._layout = layout
        self._source = source
        self._strict = _decides_by_time(plan)
        self._asked = plan.classification
        self.groups: list[GroupRecognition] = []
        self.intake: Intake = self._opened()
        if after is not None:
            self.intake.follow(after.intake, bits=False)
        self._group(name, plan)

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans of its rules, by name."""
        return {name: plan for group in self.groups for name, plan in group.plans.items()}

    def group_of(self, name: str) -> GroupRecognition:
        """The group that has a rule."""
        return next(group for group in self.groups if name in group.plans)

    # --------------------------------------------------------------------------------- its rules

    def add(self, name: str, plan: Plan) -> None:
        """Adds a rule, which sees the events that are pushed from now on."""
        self._ask({**self.plans, name: plan})
        shape = shape_of(plan)
        for group in self.groups:
            if shape is not None and group.group.shape == shape:
                group.add(name, plan)
                group.reads(self._asked, self.intake.schema)
                return
        self._group(name, plan)

    def remove(self, name: str) -> None:
        """Removes a rule; what was open of it is dropped."""
        for group in self.groups:
            group.leave_out(name)
        self.groups = [group for group in self.groups if group.plans]
        if self.groups and not self.intake.held_back:
            self._asked = together([plan.classification for plan in self.plans.values()])
            self._follow(bits=True)

    def _ask(self, plans: Mapping[str, Plan]) -> None:
        """Asks for more; the bits that were asked for keep their places."""
        asked = together([self._asked, *(plan.classification for plan in plans.values())])
        if asked != self._asked:
            self._asked = asked
            self._follow(bits=True)

    def _follow(self, *, bits: bool) -> None:
        before, self.intake = self.intake, self._opened()
        self.intake.follow(before, bits=bits)
        before.close()
        for group in self.groups:
            group.reads(self._asked, self.intake.schema)

    def _opened(self) -> Intake:
        return Intake(self._layout, self._source, self._asked, strict=self._strict)

    def _group(self, name: str, plan: Plan) -> None:
        group = GroupRecognition(
            RuleGroup((name,), (plan,), shape_of(plan)),
            self._asked,
            self.intake.schema,
            time=time_type(self._source),
            endless=True,
        )
        group.recognition.recognizer.holding = True
        self.groups.append(group)

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
