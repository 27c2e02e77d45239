"""Lanes of a set of rules: threads that each recognize some of the rules, over the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from estero.recognize.ended_sets import EndedSets
from estero.recognize.rules.conditions.dispatch import HeldRows
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.groups import RuleGroup
from estero.recognize.threads.lanes import dealt_to_lanes, one_after_the_other

T = TypeVar("T")


class Dispatched(NamedTuple):
    """A batch of classified events and, if conditions are dispatched, the rows for which each holds."""

    events: pa.RecordBatch
    held: HeldRows | None


class RuleLane(Generic[T]):
    """The groups of rules that one thread recognizes; `answers` converts some of their compact sets to items.

    `known` returns, for a plan, the time up to which events are known at the end of the stream.
    """

    def __init__(
        self,
        groups: Sequence[GroupRecognition],
        answers: Callable[[GroupRecognition, EndedSets], Iterable[T]],
        known: Callable[[RuleGroup], int | None],
    ) -> None:
        self._groups = groups
        self._answers = answers
        self._known = known

    def prepare(self, batch: Dispatched) -> None:
        """Works out what several lanes ask of a batch."""
        if batch.held is not None:
            for group in self._groups:
                group.prepare(batch.held)

    def push(self, batch: Dispatched, /) -> Iterator[T]:
        """The items of the answers that a batch decides, group by group."""
        for group in self._groups:
            for ended in group.push(*batch):
                yield from self._answers(group, ended)

    def rest(self) -> Iterator[T]:
        """The items of the answers that the end of the stream decides."""
        for group in self._groups:
            for ended in group.recognition.ended(self._known(group.group)):
                yield from self._answers(group, ended)


def shares_of_groups(groups: Sequence[RuleGroup], lanes: int) -> list[list[RuleGroup]]:
    """The groups of each lane: rules of one shape are divided, other groups are dealt out in turn."""
    shares: list[list[RuleGroup]] = [[] for _ in range(lanes)]
    alone = 0
    for group in groups:
        if group.shape is None:
            shares[alone % lanes].append(group)
            alone += 1
            continue
        for lane, share in enumerate(shares[: len(group.names)]):
            share.append(RuleGroup(group.names[lane::lanes], group.plans[lane::lanes], group.shape))
    return [share for share in shares if share]


def read_along(lanes: Sequence[RuleLane[T]], batches: Iterable[Dispatched]) -> Iterator[T]:
    """The items of all lanes, batch by batch; a single lane is read in this thread."""
    if len(lanes) > 1:
        yield from dealt_to_lanes(lanes, _prepared(lanes, batches), repeat, one_after_the_other)
        return
    (lane,) = lanes
    for batch in batches:
        yield from lane.push(batch)
    yield from lane.rest()


def _prepared(lanes: Sequence[RuleLane[T]], batches: Iterable[Dispatched]) -> Iterator[Dispatched]:
    """The batches, of which this thread works out what lanes have in common while they recognize others."""
    for batch in batches:
        for lane in lanes:
            lane.prepare(batch)
        yield batch
