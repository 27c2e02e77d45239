"""The recognizer: batches of classified events in, roots of compact sets out (docs/architecture.md).

One recognizer serves all kinds of runs. It knows the position in the stream, the events that the window still
reaches and the roots that must stay valid; the *runs* hold the arrays, advance the open runs, and report
missing capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch, OneEvent
from estero.engine.cursor import (
    CONSUME_ANY_ASKED,
    CONSUME_PARTITION_ASKED,
    DONE,
    FULL,
    GROW,
)
from estero.engine.runs.runs import Runs
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.sound import check_stamps
from estero.engine.stamps import Stamps
from estero.engine.walk.enumeration import Enumeration, match_at
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots, by_end, counts_by_end, new_reported, roots_of
from estero.engine.walk.share import Part

_REPORTED_AT_ONCE = 1 << 16
_KEYED_AT_ONCE = 1 << 16
"""The number of events with keys that are loaded at once, so that the table of keys and the loaded events
stay in a cache.

Measured with 10^6 rare keys: 110 ns an event, and 130 with batches of 131,072.
"""
_READ_OFF = 1_000
"""The largest limit for each end up to which enumerating is faster than counting through a window's edge."""


R_co = TypeVar("R_co", bound=Runs, covariant=True)


class Recognizer(Generic[R_co]):
    """The state of recognizing one query over one stream."""

    def __init__(self, runs: R_co) -> None:
        self.runs = runs
        self.holding = False
        """Whether roots stay valid until `release`; until then, nothing that is out of reach is dropped."""
        self._held: list[Roots] = []
        self._reported = new_reported(min(runs.capacity, _REPORTED_AT_ONCE))
        self._stamps = Stamps(runs.window)
        self._seen = 0

    @property
    def oldest(self) -> int:
        """The earliest sequence number that a complex event can still hold."""
        return self.runs.needed_from(self._stamps.oldest)

    @property
    def seen(self) -> int:
        """The number of events pushed so far."""
        return self._seen

    @property
    def size(self) -> int:
        """The number of nodes, entries and partitions held, in reach or not."""
        return self.runs.size

    @property
    def needed(self) -> int:
        """How much of `size`, and how many events, are needed to continue, as far as is known at once."""
        return self.runs.needed

    @property
    def idle(self) -> bool:
        """Whether no run is open and nothing else has to be remembered."""
        return self.runs.idle(self._stamps.oldest)

    def push(self, batch: EventBatch) -> Iterator[Roots]:
        """Recognizes a batch and yields roots as they are found; the iterator must be exhausted.

        Raises ValueError if the batch lacks an array that the automaton reads.
        """
        count = batch.stamps.size
        if count == 0:
            return
        together, starts = self._stamps.ahead(np.ascontiguousarray(batch.stamps, np.int64))
        at_once = count if batch.partition.shape[0] == 0 else _KEYED_AT_ONCE
        for first in range(0, count, at_once):
            here = slice(first, first + at_once)
            loaded = starts[here].size
            part = batch if count <= at_once else batch.part(here)
            self.runs.load(part, starts[here], self._seen)
            if first == 0:
                self._stamps.extend(together, starts)
            yield from self._advanced(loaded)
            self._seen += loaded

    def push_one(self, event: OneEvent) -> list[Roots]:
        """As `push`, for one event; the roots stay valid as long as those of `push`."""
        self.runs.load_one(event, self._stamps.append(event.stamp), self._seen)
        roots = list(self._advanced(1))
        self._seen += 1
        return roots

    def _advanced(self, last: int) -> Iterator[Roots]:
        """Advances over the loaded events before event number `last`; yields roots as they are found."""
        while True:
            code = self.runs.advance(self._reported, last)
            if self._reported.size[0]:
                roots = roots_of(self._reported, copied=self.holding)
                if self.holding:
                    self._held.append(roots)
                yield roots
            capacity = self._reported.event.size
            if code == FULL and (self._reported.size[0] == 0 or capacity < _REPORTED_AT_ONCE):
                self._reported = new_reported(
                    2 * capacity
                )  # what is handed out at once costs as much as 100 events
            self._reported.size[0] = 0
            if code == DONE:
                break
            if code == GROW:
                self.runs.ensure_capacity(self._held if self.holding else None)

    def release(self) -> None:
        """Declares that the roots found so far are no longer needed."""
        self._held.clear()

    def consume(self) -> None:
        """Forgets everything read so far, or only what was read of the current event's partition.

        Call it while `push` is suspended with the roots of one event; they stay valid. Raises ValueError
        unless the runs consume when they are ASKED to.
        """
        if self.runs.consume not in (CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED):
            raise ValueError(f"consume was not asked for (code {self.runs.consume})")
        self.runs.forget()

    def expire(self, stamp: int) -> None:
        """Declares that no event before `stamp` will come; what started too long before is dropped."""
        self._stamps.expire(stamp)

    def decided(self, *, ended: bool = False) -> Iterator[Roots]:
        """Yields the roots decided by events leaving the window, or by the end of the stream; exhaust it."""
        if self.runs.decides_later:
            self.runs.decide(self._seen if ended else self._stamps.oldest)
            yield from self._advanced(0)

    @property
    def can_shed(self) -> bool:
        """Whether `shed` would forget something."""
        return self.runs.sheds and not self.idle

    def shed(self) -> int:
        """Forgets the oldest of the partitions in which a run is open; returns how many, 0 for none."""
        return self.runs.shed(self._stamps.oldest)

    def snapshot(self) -> Snapshot:
        """The state needed to continue, without what has left the window; changes nothing."""
        snapshot = self.runs.snapshot(self._stamps.oldest)
        if self.runs.window is not None:
            snapshot.arrays["stamp"] = self._stamps.of(snapshot.events)
        return snapshot

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless a snapshot with label sets 0 … `marks` - 1 can be resumed."""
        self.runs.check(snapshot, marks)
        if self.runs.window is not None:
            check_stamps(snapshot.arrays, snapshot.events.size)

    def resume(self, snapshot: Snapshot) -> None:
        """Continues from a snapshot; its `states` may be renumbered for this recognizer's automaton.

        Raises ValueError if it has a partition twice.
        """
        self.runs.resume(snapshot)
        self._held.clear()
        self._seen = snapshot.events.size
        self._stamps.restart(snapshot.arrays.get("stamp", np.empty(0, np.int64)))

    def matches(
        self, roots: Roots, limit: int | None = None, first_batch: int = 256, part: Part | None = None
    ) -> Enumeration[Any]:
        """The complex events of `roots`, at most `limit` for each end or a `part`, in batches that grow."""
        compact, counter = self.runs.compact, self.runs.counter
        return Enumeration(compact, counter, roots, limit=limit, part=part, first_batch=first_batch)

    def counts(self, roots: Roots, enough: int | None = None) -> list[int]:
        """The number of complex events of each root, exact, or `enough` where there are more."""
        return self.runs.counter.of_roots(self.runs.compact, roots, enough)

    def words(self, roots: Roots) -> NDArray[np.uint64] | None:
        """The number of complex events of each root; None unless their sum is exact as a float."""
        return self.runs.counter.words(self.runs.compact, roots)

    def total(self, roots: Roots, limit: int | None = None) -> int:
        """The exact number of complex events of all roots together, at most `limit` for each end."""
        if limit is None:
            return self.runs.counter.total(self.runs.compact, roots)
        if limit == 1:  # each root has a complex event
            return int(np.count_nonzero(np.diff(roots.event, prepend=-1)))
        if self._reads_off(limit):
            return sum(matches.start.size for matches in self.matches(roots, limit))
        return sum(self.counts_by_end(roots, limit)[1])

    def counts_by_end(self, roots: Roots, limit: int | None = None) -> tuple[NDArray[np.int64], list[int]]:
        """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`."""
        if not self._reads_off(limit):
            return counts_by_end(roots, limit, self.counts)
        ends, _ = by_end(roots)
        counts = np.zeros(ends.size, np.int64)
        for matches in self.matches(roots, limit):
            np.add.at(counts, np.searchsorted(ends, matches.end), 1)
        return ends, counts.tolist()

    def _reads_off(self, limit: int | None) -> bool:
        """Whether so few complex events of each end are enumerated faster than counted."""
        return limit is not None and limit <= _READ_OFF and self.runs.window is not None

    def match_at(self, roots: Roots, place: int, index: int) -> Matches:
        """The complex event number `index` of root number `place`, without enumerating those before it."""
        return match_at(self.runs.compact, self.runs.counter, roots, place, index)
