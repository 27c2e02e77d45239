"""A pass over an endless stream: rules with the same keys, whose events are classified and ordered once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.remembered import Remembered
from estero.classify.vectors.batch_columns import OddValueError
from estero.events.sources import Source
from estero.events.streams.batch_classifier import Incoming
from estero.events.streams.few_events import FewEvents
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.paths import is_path
from estero.plan.plan import Classification, Plan
from estero.plan.together import reading_of as together_with
from estero.plan.together import together
from estero.recognize.ended_sets import EndedSets
from estero.recognize.metrics import Extent, Meter
from estero.recognize.recognizers.intake import Intake
from estero.recognize.rules.conditions.dispatch import AskedLayers, Dispatcher, is_worth_it
from estero.recognize.rules.conditions.plain_conditions import (
    condition_columns,
    plain_conditions,
    type_names,
)
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.groups import RuleGroup, groups_of, is_dispatchable, shape_of
from estero.recognize.rules.handover import Handover
from estero.recognize.rules.kept_events import KeptEvents
from estero.recognize.rules.passes import checked_in
from estero.recognize.source_run import time_type

GroupSets = list[tuple[GroupRecognition, EndedSets]]
"""Compact sets that have ended, with their groups."""


def reading_of(plan: Plan, source: Source) -> object:
    """The part of plans that must be equal for them to share a pass over a source."""
    return *together_with(plan.classification, checked_in(source.column_types)), _decides_by_time(plan)


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """The state of a group: the rule at each of its places, and the era since which it sees events.

    A place without a rule has None. `recognition` is the state of the recognition, and `dispatched` says
    whether its conditions are dispatched. Another group returns the answers of rules at `withheld` places.
    """

    places: tuple[tuple[str, int] | None, ...]
    recognition: NDArray[np.uint8]
    dispatched: bool
    withheld: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptReading:
    """The state of a pass: its intake, its groups in order, and the dispatched types.

    `waiting` has, for each rule to be handed over, its name and the time and position that it waits for.
    """

    intake: dict[str, NDArray[Any]]
    groups: tuple[KeptGroup, ...]
    types: tuple[str, ...]
    waiting: tuple[tuple[str, int | None, int | None], ...] = ()


class RuleReading:
    """Rules with the same keys over one stream of events, which is numbered and ordered once for all.

    It begins without rules at position 0, or where `after`, a pass over the same stream, is; call `begin` or
    `add` next. All its rules have the same `common` part (`reading_of`). If the layout keeps events, only the
    watermark decides which events are late, so that it is the same for all passes and for the events kept.
    """

    def __init__(
        self,
        plan: Plan | None,
        layout: StreamLayout,
        source: Source,
        *,
        after: RuleReading | None = None,
    ) -> None:
        self.common: object = None if plan is None else reading_of(plan, source)
        self._layout = layout
        self._source = source
        self._strict = bool(layout.keep) or (plan is not None and _decides_by_time(plan))
        self._nothing = _nothing_of(source) if plan is None else _without_conditions(plan.classification)
        self._asked = self._nothing
        self._dispatch = Dispatcher()
        self.groups: list[GroupRecognition] = []
        self._homes = Remembered[dict[str, GroupRecognition]](1)
        self._to_replay: dict[str, Plan] = {}
        self._handovers: list[Handover] = []
        self.intake: Intake = self._opened()
        if after is not None:
            self.intake.follow(after.intake, bits=False)

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans of its rules, by name."""
        return {name: plan for group in self.groups for name, plan in group.plans.items()} | self._to_replay

    def homes(self) -> dict[str, GroupRecognition]:
        """The groups of its rules, by the names of the rules."""
        asked = [*self.groups, *(group.plans for group in self.groups)]
        return self._homes.of(asked, lambda: {name: one for one in self.groups for name in one.plans})

    # --------------------------------------------------------------------------------- its rules

    def begin(self, plans: Mapping[str, Plan]) -> None:
        """Begins with these rules; adding each of them separately would take as long as adding all."""
        self._put(plans)

    def _put(self, plans: Mapping[str, Plan], kept: KeptEvents | None = None) -> list[GroupRecognition]:
        """Adds rules in groups of their own, which see all events from their beginning on."""
        dispatched = self._dispatched(plans) if is_worth_it(len(self.plans) + len(plans)) else {}
        others = {name: plan for name, plan in plans.items() if name not in dispatched}
        groups = [(group, True) for group in groups_of(dispatched, may_grow=True)]
        groups += [(group, False) for group in groups_of(others, may_grow=True)]
        self._ask([(plan, is_dispatched) for group, is_dispatched in groups for plan in group.plans], kept)
        return [
            self._group(group, dict.fromkeys(range(len(group.names)), 0), dispatched=is_dispatched)
            for group, is_dispatched in groups
        ]

    def add(self, name: str, plan: Plan) -> None:
        """Adds a rule, which sees the events that are pushed from now on."""
        since = self._next_era()
        shape = shape_of(plan)
        dispatched = is_worth_it(1 + len(self.plans)) and bool(self._dispatched({name: plan}))
        for group in self.groups:
            if shape is not None and group.group.shape == shape and group.is_dispatched == dispatched:
                group.add(name, plan, since)
                self._ask()
                group.reads(self._asked, self.intake.schema)
                return
        self._ask([(plan, dispatched)])
        self._group(RuleGroup((name,), (plan,), shape), {0: since}, dispatched=dispatched)

    def add_from_past(self, name: str, plan: Plan) -> None:
        """Adds a rule that also sees past events; `replay` must be called next."""
        self._to_replay[name] = plan

    def replay(self, kept: KeptEvents) -> None:
        """Replays the events kept to the rules that were just added; what these decide is dropped.

        Replaying to several rules takes hardly longer than to one. They are in groups of their own, because
        groups that have gone on take no past events; until they move there, they are recognized in both.
        """
        plans, self._to_replay = self._to_replay, {}
        if not plans:
            return
        elder = list(self.groups)
        groups = self._put(plans, kept)
        for first, events in kept.parts():
            relevant = self.intake.again(events, first)
            held = self._dispatch.held(relevant)
            for group in groups:
                list(group.push(relevant, held))  # recognition must be read to its end
                group.recognition.let_go()
        position, time = self.intake.position - 1, self.intake.watermark
        for group in groups:
            list(group.recognition.decided(position=position, time=time))
            group.recognition.let_go()
        self._begin_handovers(groups, elder)

    def _begin_handovers(self, groups: Sequence[GroupRecognition], elder: Sequence[GroupRecognition]) -> None:
        """Has older groups of the same shapes recognize the rules of new groups, too."""
        since = self._next_era()
        for group in groups:
            target = next((one for one in elder if one.is_like(group)), None)
            if target is None:
                continue
            for name, plan in group.plans.items():
                if plan.window is not None:
                    target.add(name, plan, since, reported=False)
                    self._handovers.append(Handover.begun(name, plan.window, self.intake))
            target.reads(self._asked, self.intake.schema)

    def _hand_over(self) -> None:
        """Moves rules to the groups of their shapes that have the same answers by now."""
        for handover in [one for one in self._handovers if one.is_due(self.intake)]:
            self._handovers.remove(handover)
            (target,) = [group for group in self.groups if handover.name in group.rules.withheld_names]
            for group in self.groups:
                if handover.name in group.plans:
                    group.leave_out(handover.name)
            target.report(handover.name)
            self._drop_empty()

    def _drop_empty(self) -> None:
        """Drops groups that return no answers; rules that were to move there stay where they are."""
        self.groups = [group for group in self.groups if group.plans]
        withheld = {name for group in self.groups for name in group.rules.withheld_names}
        self._handovers = [one for one in self._handovers if one.name in withheld]

    def _dispatched(self, plans: Mapping[str, Plan]) -> dict[str, Plan]:
        """The rules whose conditions can be dispatched, which are dispatched from now on."""
        able = {name: plan for name, plan in plans.items() if is_dispatchable(plan)}
        predicates = {one: None for plan in able.values() for one in plan.classification.predicates}
        if not predicates or not self._dispatch.has_bits_for(predicates):
            return {}
        types = tuple(EventPredicate((name,)) for name in type_names(predicates))
        columns = tuple(condition_columns(predicates))
        schema = self._nothing.schema.reading(filter(is_path, columns))
        looked_at = replace(self._nothing, schema=schema, predicates=types, payload=columns)
        events = self._source.classified_schema(looked_at)
        plain = plain_conditions(predicates, self._source.column_types, events)
        dispatched = {
            name: plan
            for name, plan in able.items()
            if all(one in plain for one in plan.classification.predicates)
        }
        asked = {one: None for plan in dispatched.values() for one in plan.classification.predicates}
        self._dispatch.add({one: plain[one] for one in asked})
        return dispatched

    def remove(self, name: str) -> None:
        """Removes a rule and its open runs."""
        if self._to_replay.pop(name, None) is not None:
            return
        for group in self.groups:
            group.leave_out(name)
        self._drop_empty()
        self._ask()
        self._forget_conditions()

    def _forget_conditions(self) -> None:
        """Drops the dispatched conditions of removed rules once they are the majority."""
        dispatched = [group for group in self.groups if group.is_dispatched]
        asked = [plan.classification.predicates for group in dispatched for plan in group.plans.values()]
        if self._dispatch.has_many_beside(sum(map(len, asked))):
            self._dispatch.keep({predicate for predicates in asked for predicate in predicates})
            for group in dispatched:
                group.reads(self._asked, self.intake.schema)

    def _next_era(self) -> int:
        """The era that begins now: rules added later do not see events of earlier eras."""
        era = (self.intake.era or 0) + bool(self.intake.held_back)
        self.intake.era = era
        return era if self.intake.held_back else 0

    def _ask(self, further: Sequence[tuple[Plan, bool]] = (), kept: KeptEvents | None = None) -> None:
        """Classifies events for the rules, in the order of groups, and for `further` plans.

        Each of these has a plan, and says whether its conditions are dispatched.
        """
        plans = [(plan, group.is_dispatched) for group in self.groups for plan in group.plans.values()]
        self._read_for([*plans, *further], kept)

    def _read_for(self, plans: Sequence[tuple[Plan, bool]], kept: KeptEvents | None = None) -> None:
        """Classifies events for plans, each of which says whether its conditions are dispatched.

        If events are `kept`, those in the reorder buffer are classified, too.
        """
        types = tuple(EventPredicate((name,)) for name in self._dispatch.types)
        own = [
            _looked_at(plan.classification) if is_dispatched else plan.classification
            for plan, is_dispatched in plans
        ]
        encoded = any(is_dispatched for _, is_dispatched in plans)
        asked = together([replace(self._nothing, predicates=types, encoded=encoded), *own])
        if asked == self._asked and (kept is None or not self.intake.held_back):
            return
        self._asked = asked
        before, self.intake = self.intake, self._opened()
        self.intake.follow(before, bits=True, held=None if kept is None else kept.held())
        before.close()
        for group in self.groups:
            group.reads(self._asked, self.intake.schema)

    def _opened(self) -> Intake:
        intake = Intake(self._layout, self._source, self._asked, strict=self._strict, eras=True)
        # The intake is a part of this: references that count would leave both to the garbage collector.
        reading = weakref.proxy(self)
        intake.ask = partial(RuleReading._asked_if_wanted, reading)
        intake.may_want = partial(RuleReading._may_want, reading)
        return intake

    def _may_want(self, events: FewEvents) -> bool:
        """Whether a rule may want one of a few events."""
        return self._dispatch.may_want(events) or not all(group.is_dispatched for group in self.groups)

    def _asked_if_wanted(self, events: pa.RecordBatch) -> AskedLayers | None:
        """What events say to the conditions, if these are all that rules ask; None where they want none."""
        if not all(group.is_dispatched for group in self.groups):
            raise OddValueError
        return self._dispatch.asked_if_wanted(events)

    def _group(
        self,
        rules: RuleGroup,
        since: Mapping[int, int],
        state: bytes | None = None,
        *,
        dispatched: bool,
        withheld: Collection[int] = (),
    ) -> GroupRecognition:
        group = GroupRecognition(
            rules,
            self._asked,
            self.intake.schema,
            time=time_type(self._source),
            endless=True,
            dispatched=self._dispatch.places if dispatched else None,
            since=since,
            withheld=withheld,
            state=state,
        )
        group.recognition.recognizer.holding = True
        self.groups.append(group)
        return group

    # ---------------------------------------------------------------------------- what is held

    @property
    def size(self) -> int:
        """The number of nodes, entries, partitions and events in memory, within reach or not."""
        return sum(group.recognition.size for group in self.groups) + self.intake.held_back

    def extent(self) -> Extent:
        """The size of the state needed to go on, with the reorder buffer; see `Recognition.extent`."""
        extent = Extent.of_all(group.recognition.extent() for group in self.groups)
        return extent._replace(bytes=extent.bytes + self.intake.held_bytes)

    @property
    def waiting(self) -> int:
        """The number of events of all rules that wait for deadlines."""
        return sum(group.recognition.waiting for group in self.groups)

    # ------------------------------------------------------------------------ stopping and going on

    def snapshot(self) -> KeptReading:
        """The state, from which `resumed` goes on."""
        waiting = tuple((one.name, one.latest, one.position) for one in self._handovers)
        groups, types = tuple(map(_kept, self.groups)), tuple(self._dispatch.types)
        return KeptReading(self.intake.snapshot(), groups, types, waiting)

    @classmethod
    def resumed(
        cls, kept: KeptReading, plans: Mapping[str, Plan], layout: StreamLayout, source: Source
    ) -> RuleReading:
        """The pass that goes on from a snapshot; `plans` has the plans of its rules by name.

        Raises `DataError` if a rule has another plan than before, and ValueError if these are not groups.
        """
        groups = [_group_of(group.places, plans) for group in kept.groups]
        own = [plan for rules, since in groups for place, plan in enumerate(rules.plans) if place in since]
        reading = cls(own[0] if own else None, layout, source)
        if any(reading_of(plan, source) != reading.common for plan in own):
            raise ValueError("rules of one reading have several keys")
        reading._take_up(kept, groups)
        return reading

    def _take_up(self, kept: KeptReading, groups: Sequence[tuple[RuleGroup, dict[int, int]]]) -> None:
        self._dispatch = Dispatcher(kept.types)
        plans = [
            (name, rules.plans[place], group.dispatched)
            for (rules, since), group in zip(groups, kept.groups, strict=True)
            for place, name in enumerate(rules.names)
            if place in since
        ]
        dispatched = {name: plan for name, plan, is_dispatched in plans if is_dispatched}
        if len(self._dispatched(dispatched)) != len(dispatched):
            raise ValueError("conditions that were dispatched cannot be")
        self._read_for([(plan, is_dispatched) for _, plan, is_dispatched in plans])
        self.intake.resume(kept.intake)
        for (rules, since), group in zip(groups, kept.groups, strict=True):
            state = group.recognition.tobytes()
            self._group(rules, since, state, dispatched=group.dispatched, withheld=group.withheld)
        for name, latest, position in kept.waiting:
            window = self.plans[name].window
            if window is None or sum(name in group.rules.withheld_names for group in self.groups) != 1:
                raise ValueError("a rule waits for what never comes")
            self._handovers.append(Handover(name, window, latest, position))

    # ------------------------------------------------------------------------------- recognition

    def push(self, incoming: Sequence[Incoming], meter: Meter) -> GroupSets:
        """The compact sets that the admitted parts of a batch decide."""
        sets: GroupSets = []
        for part in incoming:
            relevant = self.intake.admit(part)
            meter.classified(part.relevant if part.passes else relevant.num_rows)
            sets += self._decided_with(relevant, part.said)
            meter.recognized(0)
        return sets

    def flush(self, meter: Meter) -> GroupSets:
        """The compact sets that all events in the reorder buffer decide."""
        relevant = self.intake.flush()
        meter.classified(relevant.num_rows)
        return self._decided_with(relevant)

    def advance(self, ticks: int, meter: Meter) -> GroupSets:
        """The compact sets that are decided because no more events before a time will arrive."""
        relevant = self.intake.advance(ticks)
        meter.classified(relevant.num_rows)
        sets = self._decided_with(relevant)
        self.expire()
        return sets

    def expire(self) -> None:
        """Closes windows whose events have all arrived."""
        for group in self.groups:
            group.recognition.expire(position=self.intake.position, time=self.intake.passed)

    def close(self, known: int | None, meter: Meter) -> GroupSets:
        """The compact sets that the end of the stream decides, with events known up to time `known`."""
        relevant = self.intake.flush()
        meter.classified(relevant.num_rows)
        times = [time for time in (known, self.intake.watermark) if time is not None]
        sets = self._pushed(relevant, lambda group: group.recognition.ended(max(times, default=None)))
        self.intake.close()
        return sets

    @property
    def can_shed(self) -> bool:
        """Whether there is a partition that can be dropped."""
        return any(group.recognition.can_shed for group in self.groups)

    def shed(self) -> int:
        """Drops the oldest partitions of each group and returns their number, 0 if there are none."""
        return sum(group.recognition.shed() for group in self.groups)

    def let_go(self) -> None:
        """Frees memory out of reach; earlier compact sets must have been read before."""
        self._hand_over()
        for group in self.groups:
            group.recognition.let_go()

    def _decided_with(self, relevant: pa.RecordBatch, asked: AskedLayers | None = None) -> GroupSets:
        position, time = self.intake.position - 1, self.intake.watermark
        return self._pushed(
            relevant, lambda group: group.recognition.decided(position=position, time=time), asked
        )

    def _pushed(
        self,
        relevant: pa.RecordBatch,
        decided: Callable[[GroupRecognition], Iterator[EndedSets]],
        asked: AskedLayers | None = None,
    ) -> GroupSets:
        """The compact sets that events decide, group by group, each followed by those of `decided`.

        `asked` are the results of `Dispatcher.asked` if they are known.
        """
        held = self._dispatch.held(relevant, asked)
        sets: GroupSets = []
        for group in self.groups:
            sets += [(group, ended) for ended in (*group.push(relevant, held), *decided(group))]
        return sets


def _decides_by_time(plan: Plan) -> bool:
    return plan.decides_later or bool(plan.deadlines)


def _without_conditions(known: Classification) -> Classification:
    """The classification for events with the keys of `known`, without rules."""
    return replace(known, predicates=(), payload=(), values=(), keep_all=False)


def _looked_at(known: Classification) -> Classification:
    """The classification for events whose conditions are dispatched: the columns that these read."""
    payload = tuple(dict.fromkeys((*known.payload, *condition_columns(known.predicates))))
    return replace(known, predicates=(), payload=payload)


def _nothing_of(source: Source) -> Classification:
    """The classification for events of a source without rules."""
    layout = source.layout
    return Classification(
        predicates=(),
        schema=layout.schema,
        type_column=layout.type_column,
        only_type=layout.only_type,
        order=layout.order,
    )


def _kept(group: GroupRecognition) -> KeptGroup:
    since = group.rules.since
    places = [(name, since[place]) if place in since else None for place, name in enumerate(group.names)]
    state = np.frombuffer(group.recognition.snapshot(), np.uint8)
    return KeptGroup(tuple(places), state, group.is_dispatched, tuple(sorted(group.rules.withheld)))


def _group_of(
    places: Sequence[tuple[str, int] | None], plans: Mapping[str, Plan]
) -> tuple[RuleGroup, dict[int, int]]:
    """The group with rules at these places, and the eras since which they see events.

    The place of a removed rule has the plan of another one. Raises ValueError for rules of different shapes.
    """
    rules_by_place = {place: rule for place, rule in enumerate(places) if rule is not None}
    own = {place: plans[name] for place, (name, _) in rules_by_place.items()}
    if not own:
        raise ValueError("a group without rules")
    any_plan = next(iter(own.values()))
    shape = shape_of(any_plan)
    if len(places) > 1 and (shape is None or any(shape_of(plan) != shape for plan in own.values())):
        raise ValueError("rules of one group have several shapes")
    names = ("" if rule is None else rule[0] for rule in places)
    rules = RuleGroup(tuple(names), tuple(own.get(place, any_plan) for place in range(len(places))), shape)
    return rules, {place: era for place, (_, era) in rules_by_place.items()}
