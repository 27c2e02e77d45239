"""The interface of a stage: items are pushed, time advances, and what passes goes on to the next stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from estero.engine.store.checks import Arrays

T = TypeVar("T")


class Stage(Generic[T]):
    """One step of recognition over batches of events, or over the compact sets that end in them.

    The base class lets everything pass and remembers nothing.
    """

    takes_single = False
    """Whether the sets of a single event may be pushed without the event as a batch."""

    forgets = False
    """Whether `forget` does anything."""

    def push(self, item: T) -> Iterable[T]:
        """Takes `item` and yields what passes; exhaust it before the next one."""
        return (item,)

    def advance(self, until: int | None) -> Iterable[T]:
        """Yields what passes once nothing before `until`, or nothing at all (None), will come.

        For events that is a time in ticks, for compact sets a stamp: a time, or a position.
        """
        del until
        return ()

    def idle(self, time: int) -> bool:
        """Whether nothing is remembered that matters for events from `time` on."""
        del time
        return True

    def snapshot(self) -> Arrays:
        """The state for `resume`."""
        return {}

    def resume(self, arrays: Arrays) -> None:
        """Takes the state of `snapshot` out of `arrays`; raises ValueError or KeyError for other arrays."""

    def forget(self, oldest: int | None) -> None:
        """Forgets what matters only for events before time `oldest`; None: for those so far."""

    @property
    def waiting(self) -> int:
        """The number of events that wait."""
        return 0

    @property
    def first_time(self) -> int | None:
        """The time of the first event that waits; None if there is none."""
        return None

    @property
    def first_position(self) -> int | None:
        """The position of that event."""
        return None


class Pipeline(Stage[T]):
    """Stages one after the other, as one stage."""

    def __init__(self, stages: Sequence[Stage[T]]) -> None:
        self.stages: tuple[Stage[T], ...] = tuple(stages)
        self.takes_single: bool = all(stage.takes_single for stage in stages)
        self.forgets: bool = any(stage.forgets for stage in stages)

    def push(self, item: T) -> Iterator[T]:
        """The items that pass all stages."""
        return self._push_from(0, item)

    def _push_from(self, number: int, item: T) -> Iterator[T]:
        if number == len(self.stages):
            yield item
            return
        for passed in self.stages[number].push(item):
            yield from self._push_from(number + 1, passed)

    def advance(self, until: int | None) -> Iterator[T]:
        """Yields what passes all stages as each of them advances, the first one first."""
        for number, stage in enumerate(self.stages, 1):
            for passed in stage.advance(until):
                yield from self._push_from(number, passed)

    def idle(self, time: int) -> bool:
        """Whether all stages are idle."""
        return all(stage.idle(time) for stage in self.stages)

    def snapshot(self) -> Arrays:
        """The states of all stages."""
        return {name: array for stage in self.stages for name, array in stage.snapshot().items()}

    def resume(self, arrays: Arrays) -> None:
        """Takes the states of `snapshot` out of `arrays`."""
        for stage in self.stages:
            stage.resume(arrays)

    def forget(self, oldest: int | None) -> None:
        """Makes all stages forget."""
        for stage in self.stages:
            stage.forget(oldest)

    @property
    def waiting(self) -> int:
        """The number of events that wait in any stage."""
        return sum(stage.waiting for stage in self.stages)

    @property
    def first_time(self) -> int | None:
        """The first time of any stage."""
        times = [stage.first_time for stage in self.stages]
        return min((time for time in times if time is not None), default=None)

    @property
    def first_position(self) -> int | None:
        """The first position of any stage."""
        positions = [stage.first_position for stage in self.stages]
        return min((position for position in positions if position is not None), default=None)
