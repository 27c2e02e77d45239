"""A set of rules over a stream without an end, which may change while events are pushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from threading import RLock
from typing import Any, TypeVar

import pyarrow as pa

from estero.answers.rule_answers import RuleAnswers
from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns
from estero.answers.rule_rows import rule_schema
from estero.arguments import checked
from estero.errors import EsteroError, legible
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.plan import Plan
from estero.recognize.increment import Turn
from estero.recognize.intake import Intake
from estero.recognize.memory_limit import MemoryGuard, MemoryPolicy, bytes_of, shed_to
from estero.recognize.metrics import Extent, Meter
from estero.recognize.rules.pushed_rules import PushedRules
from estero.recognize.rules.rule_reading import GroupSets, RuleReading, reading_of
from estero.recognize.rules.set_state import names_in, readings_in, state_of
from estero.recognize.source_run import time_type
from estero.recognize.state_bytes import State, check_key, sound_content, written
from estero.recognize.until import AFTER_ALL, Until, check_until, passed_time

T = TypeVar("T")
PlanOf = Callable[[str, object, Source], Plan]
"""The plan of a rule for a source, by its name and its query or text; raises `QueryError` for a wrong one."""


@checked
class RuleSetRecognizer:
    """Recognizes a set of rules over events that are pushed batch by batch (`RuleSet.recognizer` makes one).

    `add`, `remove` and `replace` change the set between two pushes: the other rules keep what is open of
    them, a new one sees the events that are pushed from then on, and positions are those of the whole stream.
    Answers can be asked any number of questions until the next push or change. A batch that is refused
    changes nothing. With a `state` it goes on from there. Raises ValueError for a set without rules, unless
    the state has none.
    """

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
        self._plan = plan
        self._said = said
        self._layout = layout
        with nullcontext() if state is None else sound_content():
            self._source = layout.source()
        self._time = time_type(self._source)
        self._readings: list[RuleReading] = []
        self._names: dict[str, RuleReading] = {}
        self._turn = Turn()
        self._thread = RLock()
        self._meter = Meter()
        self._guard: MemoryGuard | None = None
        self._listeners: list[Callable[[RuleAnswers], object]] = []
        order = rules if state is None else names_in(state, list(rules))
        plans = {name: self._planned(name, rules[name]) for name in order}
        if state is None:
            self._begin(plans)
        else:
            self._take_up(state, plans)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self._names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table of answers."""
        return self._said.schema(rule_schema(self._time))

    @property
    def position(self) -> int:
        """The position that the next event gets."""
        return self._intake.position

    @property
    def late(self) -> int:
        """The number of events that came too late, of all that were pushed."""
        return self._intake.late

    @property
    def held_back(self) -> int:
        """The number of events that wait for earlier ones that may still come."""
        return self._intake.held_back

    @property
    def watermark(self) -> int | None:
        """The time before which no event is expected any more, in ticks; None where none is known."""
        return self._intake.watermark

    def limit_memory(self, limit: int | str, policy: MemoryPolicy = "error") -> None:
        """Has pushes raise `LimitExceeded` where the state of all rules takes more, or shed.

        See `ContinuousRecognizer.limit_memory`.
        """
        self._guard = MemoryGuard(bytes_of(limit), policy)

    @property
    def over_limit(self) -> bool:
        """Whether the state takes more than it may, so that the next push sheds some of it."""
        return self._guard is not None and self._guard.over

    def shed(self, limit: int | str) -> int:
        """Drops what is open in the oldest partitions until the state takes no more than that; how many.

        See `ContinuousRecognizer.shed`: a partition is one of one rule here.
        """
        size = bytes_of(limit)
        with self._changing():
            self._turn.next()
            with self._turn.lock:
                for reading in self._readings:
                    reading.let_go()
                return self._shed_to(size)

    def metrics(self) -> dict[str, Any]:
        """Numbers for a monitor, by name; it takes as long as a snapshot.

        They are those of `ContinuousRecognizer.metrics`, of all rules together, and ``rules``, how many there
        are, with ``answers_by_rule``, those of each since this recognizer was made or restored. An event is
        among ``relevant`` once for each set of partition keys, and what rules keep of it is counted for each
        group of rules that differ in constants only.
        """
        with self._changing(), self._turn.lock:
            for reading in self._readings:
                reading.expire()
            waiting = sum(reading.waiting for reading in self._readings)
            counts = {**self._intake.counts(), "waiting": waiting, "rules": len(self._names)}
            shown = self._meter.shown(counts, self._extent())
            by_rule = {name: self._meter.by_rule[name] for name in self._names}
            return {**shown, "answers_by_rule": by_rule}

    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""
        return self._intake.late_events()

    # ------------------------------------------------------------------------------- its rules

    def add(self, name: str, query: object) -> None:
        """Adds a rule, a query or its text, behind the others; it sees the events pushed from now on.

        Raises ValueError for a name that is taken, and `QueryError`, which names the rule, for a query that
        is wrong or does not fit the events; nothing is changed then.
        """
        with self._changing():
            if name in self._names:
                raise ValueError(f"there is a rule {name!r} already: replace it, or choose another name")
            plan = self._planned(name, query)
            self._turn.next()
            self._put(name, plan)

    def remove(self, name: str) -> None:
        """Removes a rule and what is open of it; KeyError for a name that there is not."""
        with self._changing():
            self._check_known(name)
            self._turn.next()
            self._take_out(name)

    def replace(self, name: str, query: object) -> None:
        """Puts another query in the place of a rule; it sees the events pushed from now on.

        Raises KeyError for a name that there is not, and `QueryError` as `add`; nothing is changed then.
        """
        with self._changing():
            self._check_known(name)
            plan = self._planned(name, query)
            self._turn.next()
            order = list(self._names)
            self._take_out(name)
            self._put(name, plan)
            self._names = {known: self._names[known] for known in order}

    # ---------------------------------------------------------------------------------- events

    def push(self, events: object) -> RuleAnswers:
        """What these events decide, of all rules; see `ContinuousRecognizer.push`."""
        with self._changing():
            self._meter.begin()
            incoming = {reading: reading.intake.looked_at(events) for reading in self._readings}
            answers = self._answers(lambda reading: reading.push(incoming[reading], self._meter))
            if self._guard is not None:
                size = sum(reading.size for reading in self._readings)
                read = self._intake.position + self._intake.held_back
                can_shed = any(reading.can_shed for reading in self._readings)
                self._guard.check(read, size, self._extent, answers, can_shed=can_shed)
            return answers

    def flush(self) -> RuleAnswers:
        """Lets all events go that are held back, and gives what they decide."""
        with self._changing():
            self._meter.begin()
            return self._answers(lambda reading: reading.flush(self._meter))

    def advance(self, time: Until) -> RuleAnswers:
        """What is decided as no event before `time` comes any more; see `ContinuousRecognizer.advance`."""
        with self._changing():
            ticks = passed_time(time, self._time)
            self._meter.begin()
            return self._answers(lambda reading: reading.advance(ticks, self._meter))

    def close(self, *, until: Until | None = None) -> RuleAnswers:
        """As `flush`; nothing can be pushed afterwards, so that all is decided that was not.

        `until` is as for `ContinuousRecognizer.close`: a time, or "end" where nothing comes any more.
        """
        with self._changing():
            known = None
            if until is not None:
                end = isinstance(until, str) and until.lower() == "end"
                known = AFTER_ALL if end else passed_time(until, self._time)
                check_until(known, self._intake.greatest)
            self._meter.begin()
            answers = self._answers(lambda reading: reading.close(known, self._meter))
            self._turn.fail("the recognizer is closed: make a new one, or restore a snapshot of it")
            return answers

    def snapshot(self, *, key: bytes | None = None) -> bytes:
        """All that is needed to go on in another process (`estero.restore`), and nothing that is over.

        The queries of the rules are not in it: `restore` is given them, and refuses others. With a `key` (at
        least 16 bytes), only somebody who has it can write or change such a state, and `restore` asks for it.
        Raises ValueError for a key that is too short.
        """
        with self._changing():
            check_key(key)
            with self._turn.lock:
                kept = [reading.snapshot() for reading in self._readings]
            own = {name: plan for reading in self._readings for name, plan in reading.plans.items()}
            plans = {name: own[name] for name in self._names}
            about, arrays = state_of(plans, kept)
            schemas = self._intake.schemas()
            return written(State({**about, **self._intake.about()}, {**arrays, **schemas}), key)

    def on_match(self, tell: Callable[[RuleAnswers], T]) -> Callable[[RuleAnswers], T]:
        """Has `tell` called, from now on, with answers that are not empty, before they are returned.

        Returns `tell`, so it can decorate a function.
        """
        self._listeners.append(tell)
        return tell

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
        return legible(f"RuleSetRecognizer({self.position:,} events; {len(self.names)} rules: {shown})")

    # ---------------------------------------------------------------------------------- inside

    @property
    def _intake(self) -> Intake:
        """That of the first reading: all of them see the same events."""
        return self._readings[0].intake

    def _extent(self) -> Extent:
        """How much is needed to go on, of all readings."""
        return Extent.of_all(reading.extent() for reading in self._readings)

    def _shed_to(self, limit: int) -> int:
        shed = shed_to(limit, self._extent, lambda: sum(reading.shed() for reading in self._readings))
        self._meter.shed(*shed)
        if self._guard is not None:
            self._guard.over = False
        return shed.partitions

    def _counted(self, sets: GroupSets) -> GroupSets:
        """Counts at how many events these compact sets end, by rule; returns them."""
        ends: Counter[str] = Counter()
        for group, ended in sets:
            ends.update(dict(zip(*group.ends(ended), strict=True)))
        self._meter.recognized_of(ends)
        return sets

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Inside it the recognizer is this thread's; raises `EsteroError` while it is another one's."""
        if not self._thread.acquire(blocking=False):
            raise EsteroError(
                "another thread is pushing to this recognizer or changing it, and events have one order: "
                "use it from one thread, or hold a lock of your own around each call"
            )
        try:
            self._turn.check_sound()
            yield
        finally:
            self._thread.release()

    def _answers(self, decided: Callable[[RuleReading], GroupSets]) -> RuleAnswers:
        """The answers of all rules to what is decided now, by reading."""
        number = self._turn.next()
        try:
            with self._turn.lock:
                for reading in self._readings:
                    reading.let_go()
                if self._guard is not None and self._guard.over:
                    self._shed_to(self._guard.limit)
                sets: GroupSets = []
                for reading in self._readings:
                    sets += self._counted(decided(reading))
        except BaseException:
            self._turn.fail(
                "recognition broke off in an earlier push, so that its state is not to be trusted: "
                "restore the last snapshot"
            )
            raise
        homes = {name: group for reading in self._readings for name, group in reading.homes().items()}
        groups = {name: homes[name] for name in self._names}
        answers = RuleAnswers(PushedRules(groups, sets, self._time, self._turn, number), self._said)
        if sets and self._listeners and answers:
            for tell in self._listeners:
                tell(answers)
        return answers

    def _planned(self, name: str, query: object) -> Plan:
        return self._plan(name, query, self._source)

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

    def _put(self, name: str, plan: Plan) -> None:
        common = reading_of(plan, self._source)
        for reading in self._readings:
            if reading.common == common:
                reading.add(name, plan)
                self._names[name] = reading
                return
        after: Sequence[RuleReading] = self._readings[:1]
        own = RuleReading(plan, self._layout, self._source, after=after[0] if after else None)
        own.add(name, plan)
        self._readings.append(own)
        self._names[name] = own
        self._drop_idle()

    def _take_out(self, name: str) -> None:
        reading = self._names.pop(name)
        reading.remove(name)
        self._drop_idle()

    def _drop_idle(self) -> None:
        """Drops readings without rules; where none is left, one that asks for nothing counts the events."""
        busy = [reading for reading in self._readings if reading.groups]
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
