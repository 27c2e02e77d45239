"""The events that matter to rules that begin rarely: those within a window after a beginning.

Most rules of a large set do not begin in a batch; the conditions on their later events are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import POSITION, TIME
from estero.engine.int64 import saturated
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.rules.conditions.asked_conditions import Rows
from estero.recognize.rules.conditions.dispatch import HeldRows


@dataclass(frozen=True, slots=True)
class RuleConditions:
    """The conditions of the rule at a place in its group, as pairs of a bit and a place of a condition.

    Without an event for which one of the `opening` conditions holds, events for which `others` hold do not
    matter.
    """

    rule: int
    opening: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, rule: int, plan: Plan, places: Mapping[EventPredicate, int]) -> Self:
        """The conditions of a plan, whose predicates have these places."""
        pairs = [(bit, places[predicate]) for bit, predicate in enumerate(plan.classification.predicates)]
        opening = plan.opening_bits
        if opening is None:
            return cls(rule, tuple(pairs), ())
        return cls(
            rule,
            tuple(pair for pair in pairs if pair[0] in opening),
            tuple(pair for pair in pairs if pair[0] not in opening),
        )


class AskedRules:
    """The conditions of the rules of a group, and the rules that a batch may concern.

    Most conditions hold nowhere in a small batch; evaluating each of them would take most of the time.
    """

    def __init__(self, conditions: Sequence[RuleConditions] = ()) -> None:
        self.conditions: list[RuleConditions] = list(conditions)
        self.rules: NDArray[np.int64] = np.array([asked.rule for asked in self.conditions], np.int64)
        """The rules that have these conditions, by their places in the group."""
        self._opening = _pairs([asked.opening for asked in self.conditions])
        self._others = _pairs([asked.others for asked in self.conditions])

    def without(self, rule: int) -> AskedRules:
        """The conditions of all rules but one."""
        return AskedRules([asked for asked in self.conditions if asked.rule != rule])

    def mattering(self, held: HeldRows, begun: BegunBatch) -> Iterator[tuple[Rows, int, int]]:
        """The rows of the events that concern rules, each with its rule and the bit of the condition."""
        may_hold, are_open = held.may_hold, begun.are_open(self.rules)
        numbers, places = self._opening
        matters = np.zeros(self.rules.size, np.bool_)
        matters[numbers[may_hold[places]]] = True
        numbers, places = self._others
        further = numbers[may_hold[places]]
        matters[further[are_open[further]]] = True
        for number in matters.nonzero()[0].tolist():
            asked = self.conditions[number]
            for rows, bit in begun.mattering(asked, held, is_open=bool(are_open[number])):
                yield rows, asked.rule, bit


def _pairs(conditions: Sequence[Sequence[tuple[int, int]]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of a rule and the place of a condition of it, for each of its conditions."""
    pairs = [(number, place) for number, own in enumerate(conditions) for _, place in own]
    numbers, places = np.ascontiguousarray(np.array(pairs, np.int64).reshape(-1, 2).T)
    return numbers, places


class BegunRules:
    """The last event with which each rule of a group began, by its place.

    All rules have the window of `plan`. Rules that are `resumed` may have begun with any earlier event.
    """

    def __init__(self, plan: Plan, *, resumed: bool) -> None:
        self._window = None if plan.window is None else plan.window.length
        self._stamp = POSITION if plan.by_position else TIME
        self._last = _LastBeginnings(np.empty(0, np.int64), np.empty(0, np.bool_))
        self._before: int | None = None
        self._resumed = resumed

    def among(self, events: pa.RecordBatch, rules: int) -> BegunBatch:
        """The beginnings before and in a batch of events in order; `rules` is the number of places."""
        stamps = numbers_of(events, self._stamp)
        if self._resumed and stamps.size:
            self._before, self._resumed = int(stamps[0]), False
        if rules > self._last.stamps.size:
            self._last = self._last.grown(rules)
        return BegunBatch(stamps, self._last, self._before, self._window)


@dataclass(frozen=True, slots=True)
class _LastBeginnings:
    """The stamp of the last beginning of each rule, and whether there was one."""

    stamps: NDArray[np.int64]
    known: NDArray[np.bool_]

    def grown(self, rules: int) -> _LastBeginnings:
        """The same beginnings with places for more rules."""
        more = 2 * rules - self.stamps.size
        return _LastBeginnings(np.pad(self.stamps, (0, more)), np.pad(self.known, (0, more)))

    def note(self, rule: int, stamp: int) -> None:
        """Notes that a rule begins at a stamp, unless it has begun later."""
        if not self.known[rule] or self.stamps[rule] < stamp:
            self.stamps[rule], self.known[rule] = stamp, True


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """The stamps of events in order, and the last beginnings of rules: `last`, or all of them `before`."""

    stamps: NDArray[np.int64]
    last: _LastBeginnings
    before: int | None
    window: int | None

    def mattering(
        self, asked: RuleConditions, held: HeldRows, *, is_open: bool
    ) -> Iterator[tuple[Rows, int]]:
        """The rows of the events that concern a rule, with the bit of each of its conditions."""
        begin = self.stamps.size
        for bit, place in asked.opening:
            rows = held.of(place)
            if rows.size:
                yield rows, bit
                begin = min(begin, int(rows.min()))
                self.last.note(asked.rule, int(self.stamps[rows.max()]))
        if is_open:
            begin = 0
        if begin < self.stamps.size:
            for bit, place in asked.others:
                rows = held.of(place)
                yield rows if not begin else rows[rows >= begin], bit

    def are_open(self, rules: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The rules that have begun within the window before these events."""
        if not self.stamps.size:
            return np.zeros(rules.size, np.bool_)
        known = self.last.known[rules]
        if self.window is None:
            return known if self.before is None else np.ones(rules.size, np.bool_)
        earliest = int(self.stamps[0]) - self.window
        are_open: NDArray[np.bool_] = known & (self.last.stamps[rules] >= saturated(earliest))
        if self.before is not None and self.before >= earliest:
            are_open |= ~known
        return are_open
