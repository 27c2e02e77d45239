"""The reference meaning of EQL's sequences and samples: candidates are kept in lists, and all events read.

The match of an event with a stage is given by its *keys* there: none if it does not satisfy the condition, or
has no key; several if an attribute of the key is a list (`keys_of`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, product

Key = tuple[Hashable, ...]
Places = tuple[int | None, ...]
"""The numbers of a result's events by stage, None for a missing one."""
Sample = tuple[int, ...]
"""The numbers of the events of a sample by condition: all different, and with one key."""


@dataclass(frozen=True)
class Stage:
    """A stage: `keys[e]` are the keys with which event e satisfies it. If it is `missing`, none may."""

    keys: Sequence[Sequence[Key]]
    missing: bool = False

    def numbers(self, key: Key) -> list[int]:
        """The events that satisfy the stage with a key."""
        return [number for number, keys in enumerate(self.keys) if key in keys]


@dataclass(frozen=True)
class EventSequence:
    """Stages in order, of which one at least is not missing.

    The first and the last event are no more than `span` apart, in the unit of the times; with a missing stage
    at an end there has to be one. `until` is the stage whose events drop candidates.
    """

    stages: Sequence[Stage]
    span: int | None = None
    until: Stage | None = None


def keys_of(values: Sequence[object], optional: Sequence[bool]) -> list[Key]:
    """The keys of an event: every combination where values are lists, each once.

    A key with a NULL is none, unless the value is `optional`; then NULLs are equal.

    >>> keys_of([["a", "b"], 1], [False, False]), keys_of([None], [False]), keys_of([None], [True])
    ([('a', 1), ('b', 1)], [], [(None,)])
    """
    choices: list[list[Hashable]] = []
    for value, may_be_null in zip(values, optional, strict=True):
        of_list = value if isinstance(value, list) else [value]
        known = [item for item in of_list if item is not None]
        choices.append(known or ([None] if may_be_null else []))
    return list(dict.fromkeys(product(*choices)))


def evaluate_sequence(query: EventSequence, times: Sequence[int]) -> list[Places]:
    """The results over events in order, with these times; in the order of their last events."""
    positive = [number for number, stage in enumerate(query.stages) if not stage.missing]
    search = _Search(query, times, positive)
    for event in range(len(times)):
        search.read(event)
    return [
        _placed(query, positive, taken) for key, taken in search.completed if search.stands_alone(key, taken)
    ]


def _placed(query: EventSequence, positive: Sequence[int], taken: Sequence[int]) -> Places:
    at = dict(zip(positive, taken, strict=True))
    return tuple(at.get(number) for number in range(len(query.stages)))


@dataclass
class _Search:
    """The candidates by stage and key, oldest first, and the completed results with their keys."""

    query: EventSequence
    times: Sequence[int]
    positive: Sequence[int]
    candidates: dict[tuple[int, Key], list[list[int]]] = field(default_factory=dict)
    completed: list[tuple[Key, list[int]]] = field(default_factory=list)

    def read(self, event: int) -> None:
        """Tries an event at all stages, later ones first."""
        for place in reversed(range(len(self.positive))):
            for key in self.query.stages[self.positive[place]].keys[event]:
                taken = self._taken(place, key, event)
                if taken is not None:
                    self._put(place, key, [*taken, event])

    def _taken(self, place: int, key: Key, event: int) -> list[int] | None:
        """The candidate that an event extends, which leaves its stage; none before the first stage."""
        if place == 0:
            return []
        waiting = self.candidates.pop((place - 1, key), [])
        if not waiting:
            return None
        newest = waiting[-1]
        return newest if self._may_go_on(newest, place, key, event) else None

    def _may_go_on(self, taken: list[int], place: int, key: Key, event: int) -> bool:
        span, last, until = self.query.span, taken[-1], self.query.until
        if span is not None and self.times[event] - self.times[taken[0]] > span:
            return False
        if until is not None and any(last <= number < event for number in until.numbers(key)):
            return False
        between = self.query.stages[self.positive[place - 1] + 1 : self.positive[place]]
        return not any(last < number < event for stage in between for number in stage.numbers(key))

    def _put(self, place: int, key: Key, taken: list[int]) -> None:
        if place == len(self.positive) - 1:
            self.completed.append((key, taken))
        else:
            self.candidates.setdefault((place, key), []).append(taken)

    def stands_alone(self, key: Key, taken: list[int]) -> bool:
        """Whether no event that must be missing is before the first or after the last event.

        With a missing stage at one end alone, its event counts if it is no further than the span from the
        event at the other end; at both ends, two events count if they are no further from each other.
        """
        stages, span = self.query.stages, self.query.span
        leading, trailing = stages[: self.positive[0]], stages[self.positive[-1] + 1 :]
        before = [number for stage in leading for number in stage.numbers(key) if number < taken[0]]
        behind = [number for stage in trailing for number in stage.numbers(key) if number > taken[-1]]
        if not (leading or trailing):
            return True
        if span is None:
            raise ValueError("what is missing at an end needs a span")
        first = max(before, default=None) if leading else taken[0]
        last = min(behind, default=None) if trailing else taken[-1]
        return first is None or last is None or self.times[last] - self.times[first] > span


def sample_keys(conditions: Sequence[Stage]) -> list[Key]:
    """The keys with which some event satisfies a condition."""
    return list(dict.fromkeys(key for stage in conditions for keys in stage.keys for key in keys))


def samples_of(conditions: Sequence[Stage], key: Key) -> Iterator[Sample]:
    """All samples of a key, as events complete them.

    Those that one event completes are in the order of the event of the first condition, of the second, and
    so on.
    """
    numbers = [stage.numbers(key) for stage in conditions]
    for end in sorted(set().union(*numbers)):
        choices = product(*([number for number in of_stage if number <= end] for of_stage in numbers))
        yield from (events for events in choices if end in events and len(set(events)) == len(events))


def may_be_given(conditions: Sequence[Stage], key: Key, most: int) -> list[list[Sample]]:
    """The results that may be reported for a key: the first `most` samples.

    Among those that are completed first, any may be the first one; all others keep their order.
    """
    by_end = groupby(samples_of(conditions, key), key=max)
    of_first = list(next(by_end, (None, []))[1])
    others = list(islice((events for _, of_end in by_end for events in of_end), most))
    answers = [
        [first, *(events for events in of_first if events != first), *others][:most] for first in of_first
    ]
    return answers or [[]]
