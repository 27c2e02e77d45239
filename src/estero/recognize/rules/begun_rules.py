"""Which events matter to rules that begin rarely: those behind a beginning, no further than the window.

Most rules of a large set begin nowhere in a batch. The conditions on their later events are not asked then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import POSITION, TIME
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.rules.asked_columns import Rows
from estero.recognize.rules.dispatch import HeldRows


@dataclass(frozen=True, slots=True)
class RuleConditions:
    """The conditions of the rule at a place in its group, as pairs of a bit and a place among all conditions.

    Without one of the events that `opening` ones hold for, no event that `others` hold for matters.
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


class BegunRules:
    """When an event came last that each rule of a group begins with, by their places.

    All have the window of `plan`. Rules that are `resumed` may have begun with any event before.
    """

    def __init__(self, plan: Plan, *, resumed: bool) -> None:
        self._window = None if plan.window is None else plan.window.length
        self._stamp = POSITION if plan.by_position else TIME
        self._last: dict[int, int] = {}
        self._before: int | None = None
        self._resumed = resumed

    def among(self, events: pa.RecordBatch) -> BegunBatch:
        """What is known of a batch of events, which come in order."""
        stamps = numbers_of(events, self._stamp)
        if self._resumed and stamps.size:
            self._before, self._resumed = int(stamps[0]), False
        return BegunBatch(stamps, self._last, self._before, self._window)


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """The stamps of events in order, and of the last beginnings of rules: `last`, or all of them `before`."""

    stamps: NDArray[np.int64]
    last: dict[int, int]
    before: int | None
    window: int | None

    def mattering(self, asked: RuleConditions, held: HeldRows) -> Iterator[tuple[Rows, int]]:
        """The rows of the events that matter to a rule, with the bit of each of its conditions."""
        begin, is_open = self.stamps.size, self._is_open(asked.rule)
        for bit, place in asked.opening:
            rows = held.of(place)
            if rows.size:
                yield rows, bit
                begin = min(begin, int(rows.min()))
                last = int(self.stamps[rows.max()])
                self.last[asked.rule] = max(last, self.last.get(asked.rule, last))
        if is_open:
            begin = 0
        if begin < self.stamps.size:
            for bit, place in asked.others:
                rows = held.of(place)
                yield rows if not begin else rows[rows >= begin], bit

    def _is_open(self, rule: int) -> bool:
        """Whether a rule has begun no further than the window before these events."""
        last = self.last.get(rule, self.before)
        if last is None or not self.stamps.size:
            return False
        return self.window is None or int(self.stamps[0]) - last <= self.window
