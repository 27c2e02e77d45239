"""A set of rules over an endless stream, which may change while events are pushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from estero.answers.rule_answers import RuleAnswers
from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns
from estero.answers.rule_rows import rule_schema
from estero.arguments import checked
from estero.classify.remembered import Remembered
from estero.errors import legible
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.plan import Plan
from estero.recognize.metrics import Extent
from estero.recognize.recognizers.event_recognizer import EventRecognizer
from estero.recognize.recognizers.intake import Intake
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.kept_events import KeptEvents
from estero.recognize.rules.pushed_rules import PushedRules
from estero.recognize.rules.rule_reading import GroupSets, RuleReading, reading_of
from estero.recognize.rules.set_state import (
    RuleDigests,
    kept_arrays,
    kept_in,
    names_in,
    readings_in,
    state_of,
)
from estero.recognize.source_run import time_type
from estero.recognize.state_bytes import State, check_key, sound_content, written
from estero.recognize.until import AFTER_ALL, Until, check_until, passed_time

PlanOf = Callable[[str, object, Source], Plan]
"""The plan of a rule for a source, by its name and its query or text; raises `QueryError` if it is wrong."""


@checked
class RuleSetRecognizer(EventRecognizer[RuleAnswers]):
    """Recognizes a set of rules over events that are pushed batch by batch (`RuleSet.recognizer` makes one).

    `add`, `remove` and `replace` change the set between two pushes. The other rules keep their state, and a
    new rule sees the events pushed from then on or, where the recognizer keeps events (`keep`), a replay of
    these first. Positions are those of the whole stream. Answers can be asked any number of questions until
    the next push or change. A batch that is refused changes nothing. Raises ValueError for a set without
    rules, unless it resumes from a `state` without any.
    """

    _beside_pushing = "changing"

    def __init__(
        self,
        rules: Mapping[str, object],
        plan: PlanOf,
        layout: StreamLayout,
        state: State | None = None,
        said: RuleColumns = NOTHING_SAID,
    ) -> None:
        if not rules and state is None:
            raise ValueError("a recognizer needs a rule to begin with: add one to the set")
        super().__init__()
        self._plan = plan
        self._said = said
        self._layout = layout
        with nullcontext() if state is None else sound_content():
            self._source = layout.source()
        self._time = time_type(self._source)
        self._readings: list[RuleReading] = []
        self._names: dict[str, RuleReading] = {}
        self._groups = Remembered[dict[str, GroupRecognition]](1)
        self._digests = RuleDigests()
        self._kept: KeptEvents | None = None
        order = rules if state is None else names_in(state, list(rules))
        plans = {name: self._planned(name, rules[name]) for name in order}
        if state is None:
            self._begin(plans)
        else:
            self._take_up(state, plans)
        if layout.keep:
            self._kept = KeptEvents(layout, self._intake, self._source.layout.tick_ns)
            if state is not None:
                with sound_content():
                    self._kept.resume(kept_in(state), self._intake)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self._names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table of answers."""
        return self._said.schema(rule_schema(self._time))

    @property
    def keeps_events(self) -> bool:
        """Whether events are kept, so that new rules can begin with a replay."""
        return self._kept is not None

    def metrics(self) -> dict[str, Any]:
        """Counters for monitoring, by name; it takes as long as a snapshot.

        They are those of `ContinuousRecognizer.metrics` for all rules together, and ``rules``, their number;
        ``answers_by_rule``, since this recognizer was made or restored; and ``kept_events``, the events kept
        for a replay, which ``state_bytes`` includes. ``relevant`` counts an event once for each set of
        partition keys, and ``open_events`` once for each group of rules that differ only in constants.
        """
        with self._going_on(), self._turn.lock:
            for reading in self._readings:
                reading.expire()
            waiting = sum(reading.waiting for reading in self._readings)
            counts = {**self._intake.counts(), "waiting": waiting, "rules": len(self._names)}
            counts["kept_events"] = 0 if self._kept is None else self._kept.number
            shown = self._meter.shown(counts, self._extent())
            by_rule = {name: self._meter.by_rule[name] for name in self._names}
            return {**shown, "answers_by_rule": by_rule}

    # ------------------------------------------------------------------------------- its rules

    def add(self, name: str, query: object, *, replay: bool = False) -> None:
        """Adds a rule, given as a query or a text, after the others; it sees the events pushed from now on.

        With `replay` it first sees the events that are kept: its answers from now on are those that it would
        have if it had always been there. Complex events that ended or were decided before are not given.

        Raises, and changes nothing: ValueError for a name that is taken and for a replay where no events are
        kept; `QueryError`, which names the rule, for a query that is wrong, does not fit the events or, with
        `replay`, reaches further back than events are kept.
        """
        with self._by_one_thread():
            if name in self._names:
                raise ValueError(f"there is a rule {name!r} already: replace it, or choose another name")
            plan = self._planned(name, query, replay=replay)
            self._turn.next()
            self._put(name, plan, replay=replay)

    def remove(self, name: str) -> None:
        """Removes a rule and its state; raises KeyError for an unknown name."""
        with self._by_one_thread():
            self._check_known(name)
            self._turn.next()
            self._take_out(name)

    def replace(self, name: str, query: object, *, replay: bool = False) -> None:
        """Replaces the query of a rule; the new one sees the events pushed from now on.

        With `replay` it first sees the events that are kept, as in `add`. Raises, and changes nothing:
        KeyError for an unknown name, and the errors of `add`.
        """
        with self._by_one_thread():
            self._check_known(name)
            plan = self._planned(name, query, replay=replay)
            self._turn.next()
            order = list(self._names)
            self._take_out(name)
            self._put(name, plan, replay=replay)
            self._names = {known: self._names[known] for known in order}

    # ---------------------------------------------------------------------------------- events

    def push(self, events: object) -> RuleAnswers:
        """Takes events and returns the answers that they decide (`ContinuousRecognizer.push`)."""
        with self._going_on():
            self._meter.begin()
            incoming = {reading: reading.intake.looked_at(events) for reading in self._readings}
            answers = self._answers(
                lambda reading: reading.push(incoming[reading], self._meter),
                lambda kept: kept.admit(incoming[self._readings[0]]),
            )
            if self._guard is not None:
                size = sum(reading.size for reading in self._readings)
                read = self._intake.position + self._intake.held_back
                if self._kept is not None:
                    size += self._kept.number
                can_shed = any(reading.can_shed for reading in self._readings)
                can_shed = can_shed and self._kept_bytes < self._guard.limit
                self._guard.check(read, size, self._extent, answers, can_shed=can_shed)
            return answers

    def flush(self) -> RuleAnswers:
        """Recognizes all events that are held back and returns their answers."""
        with self._going_on():
            self._meter.begin()
            return self._answers(lambda reading: reading.flush(self._meter), KeptEvents.flush)

    def advance(self, time: Until) -> RuleAnswers:
        """Moves the watermark up to `time` and returns what that decides (`ContinuousRecognizer.advance`)."""
        with self._going_on():
            ticks = passed_time(time, self._time)
            self._meter.begin()
            return self._answers(
                lambda reading: reading.advance(ticks, self._meter), lambda kept: kept.advance(ticks)
            )

    def close(self, *, until: Until | None = None) -> RuleAnswers:
        """Ends the stream: recognizes all events that are held back and returns the last answers.

        `until` is as in `ContinuousRecognizer.close`: a time, or "end" if no events will follow.
        """
        with self._going_on():
            known = None
            if until is not None:
                end = isinstance(until, str) and until.lower() == "end"
                known = AFTER_ALL if end else passed_time(until, self._time)
                check_until(known, self._intake.greatest)
            self._meter.begin()
            answers = self._answers(lambda reading: reading.close(known, self._meter), KeptEvents.flush)
            self._turn.fail("the recognizer is closed: make a new one, or restore a snapshot of it")
            return answers

    def snapshot(self, *, key: bytes | None = None) -> bytes:
        """The state as bytes, from which `estero.restore` resumes, in this or in another process.

        It does not hold the queries of the rules: `restore` takes them, and refuses others. A `key` of at
        least 16 bytes signs it: `restore` needs the same key, and nobody without it can write or change such
        a state. Raises ValueError for a key that is too short.
        """
        with self._going_on():
            check_key(key)
            with self._turn.lock:
                kept = [reading.snapshot() for reading in self._readings]
            own = {name: plan for reading in self._readings for name, plan in reading.plans.items()}
            plans = {name: own[name] for name in self._names}
            about, arrays = state_of(self._digests.of(plans), kept)
            arrays |= self._intake.schemas()
            if self._kept is not None:
                arrays |= kept_arrays(self._kept.snapshot())
            return written(State({**about, **self._intake.about()}, arrays), key)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
        return legible(f"RuleSetRecognizer({self.position:,} events; {len(self.names)} rules: {shown})")

    # ---------------------------------------------------------------------------------- inside

    @property
    def _intake(self) -> Intake:
        """The intake of the first pass; all passes see the same events."""
        return self._readings[0].intake

    def _let_go(self) -> None:
        for reading in self._readings:
            reading.let_go()

    def _catch_up(self) -> None:
        """Replays the events kept to rules that were added with a replay."""
        if self._kept is not None:
            for reading in self._readings:
                reading.replay(self._kept)

    @property
    def _kept_bytes(self) -> int:
        return 0 if self._kept is None else self._kept.bytes

    def _shed_some(self) -> int:
        return sum(reading.shed() for reading in self._readings)

    def _extent(self) -> Extent:
        extent = Extent.of_all(reading.extent() for reading in self._readings)
        return extent._replace(bytes=extent.bytes + self._kept_bytes)

    def _counted(self, sets: GroupSets) -> GroupSets:
        """Counts the events at which compact sets end, by rule, and returns the sets."""
        ends: Counter[str] = Counter()
        for group, ended in sets:
            for name, number in zip(*group.ends(ended), strict=True):
                ends[name] += number
        self._meter.recognized_of(ends)
        return sets

    def _answers(
        self, decided: Callable[[RuleReading], GroupSets], kept: Callable[[KeptEvents], None]
    ) -> RuleAnswers:
        """The answers of all rules to what each pass decides now; the events `kept` are updated."""
        sets: GroupSets = []
        with self._next_turn() as number:
            if self._kept is not None:
                kept(self._kept)
            for reading in self._readings:
                sets += self._counted(decided(reading))
        homes, names = [reading.homes() for reading in self._readings], list(self._names)
        groups = self._groups.of([names, *homes], lambda: _in_order(names, homes))
        answers = RuleAnswers(PushedRules(groups, sets, self._time, self._turn, number), self._said)
        if sets and self._listeners and answers:
            self._tell(answers)
        return answers

    def _planned(self, name: str, query: object, *, replay: bool = False) -> Plan:
        if replay and self._kept is None:
            raise ValueError(
                "this recognizer keeps no events for a replay: say how far back with keep=, for example "
                "rules.recognizer(…, keep='2 hours')"
            )
        plan = self._plan(name, query, self._source)
        if replay and self._kept is not None:
            self._kept.check(name, plan)
        return plan

    def _begin(self, plans: dict[str, Plan]) -> None:
        alike: dict[object, dict[str, Plan]] = {}
        for name, plan in plans.items():
            alike.setdefault(reading_of(plan, self._source), {})[name] = plan
        for own in alike.values():
            reading = RuleReading(next(iter(own.values())), self._layout, self._source)
            reading.begin(own)
            self._readings.append(reading)
        homes = {name: reading for reading in self._readings for name in reading.plans}
        self._names = {name: homes[name] for name in plans}

    def _put(self, name: str, plan: Plan, *, replay: bool) -> None:
        common = reading_of(plan, self._source)
        own = next((reading for reading in self._readings if reading.common == common), None)
        if own is None:
            own = RuleReading(plan, self._layout, self._source, after=self._readings[0])
            self._readings.append(own)
        if replay:
            own.add_from_past(name, plan)
        else:
            own.add(name, plan)
        self._names[name] = own
        self._drop_idle()

    def _take_out(self, name: str) -> None:
        reading = self._names.pop(name)
        reading.remove(name)
        self._drop_idle()

    def _drop_idle(self) -> None:
        """Drops passes without rules; if none is left, an empty pass numbers the events."""
        busy = [reading for reading in self._readings if reading.plans]
        if not busy:
            busy = [RuleReading(None, self._layout, self._source, after=self._readings[0])]
        for reading in self._readings:
            if reading not in busy:
                reading.intake.close()
        self._readings = busy

    def _take_up(self, state: State, plans: dict[str, Plan]) -> None:
        kept = readings_in(state, plans)
        with sound_content():
            self._readings = [
                RuleReading.resumed(reading, plans, self._layout, self._source) for reading in kept
            ]
            homes = {name: reading for reading in self._readings for name in reading.plans}
            self._names = {name: homes[name] for name in plans}

    def _check_known(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(f"there is no rule {name!r}")


def _in_order(
    names: Sequence[str], homes: Iterable[Mapping[str, GroupRecognition]]
) -> dict[str, GroupRecognition]:
    """The groups of rules by name, in this order."""
    of_all = {name: group for own in homes for name, group in own.items()}
    return {name: of_all[name] for name in names}
