"""Batches of classified events in, roots of compact sets out (algorithms.md, "Recognise").

Holds the arrays between batches and answers the kernel when it returns: a missing row is worked out,
missing room is made (the arena is compacted first, so memory follows the window), full buffers are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine import run_cea
from estero.engine.arena import NONE, copy_columns, grown, mark_live, move_live, new_arena
from estero.engine.count import FITS, Counter
from estero.engine.enumerate import DONE, FULL, GROW, Matches, deeper, new_walk, walk_roots
from estero.engine.hashing import new_table, number_rows, table_of, window_starts
from estero.engine.run_cea import Events, Found, Partitions
from estero.engine.sliding_count import SlidingCounter
from estero.engine.tables import Automaton, TableBuilder
from estero.engine.tecs import grown_cells, new_cells


@dataclass(frozen=True, slots=True)
class Settings:
    """How events are read.

    `window` is in the unit of the stamps (None: none), `consume` one of the CONSUME codes of run_cea,
    `gaps` whether events that were dropped as irrelevant count (contiguity), `keyed` whether events
    carry a partition key, `words` the number of bit words. `counting` prepares for `counts` only.
    """

    window: int | None = None
    consume: int = run_cea.CONSUME_NONE
    gaps: bool = False
    keyed: bool = False
    words: int = 1
    counting: bool = False

    @property
    def slides(self) -> bool:
        """Whether counts can be kept up by a sliding count instead of being read off the compact set."""
        plain = self.consume == run_cea.CONSUME_NONE and not self.gaps and not self.keyed
        return self.counting and plain and self.window is not None


class EventBatch(NamedTuple):
    """n relevant events in stream order.

    `stamps` int64[n]: what the window measures, not falling; `ordinal` int64[n]: place in the partition's
    stream; `words` uint64[n, width]: bits; `keys` uint64[n, 2]: partition, ignored unless keyed.
    """

    stamps: NDArray[np.int64]
    ordinal: NDArray[np.int64]
    words: NDArray[np.uint64]
    keys: NDArray[np.uint64]


class Roots(NamedTuple):
    """Compact sets that ended, in order of `event` (their end).

    The complex events below `root` that start at or after `oldest`. Valid until the recognizer goes on.
    """

    event: NDArray[np.int64]
    root: NDArray[np.int32]
    oldest: NDArray[np.int64]

    def part(self, first: int, last: int) -> Roots:
        """Those from number `first` to before number `last`."""
        return Roots(self.event[first:last], self.root[first:last], self.oldest[first:last])


_SMALLEST_ARENA = 1 << 15
_FOUND_ROOM = 1 << 16
_COUNTED_AT_ONCE = 1 << 10


class Recognizer:
    """The state of recognition of one query over one stream."""

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        self.settings = settings
        self._automaton = automaton
        self._builder = TableBuilder(automaton)
        self._classes = table_of(np.zeros((1, settings.words), np.uint64), 64)
        self._keys = new_table(64, 2)
        self.arena = new_arena(_SMALLEST_ARENA)
        self._cells = new_cells(256)
        self._entries = run_cea.new_entries(256)
        self._partitions = _new_partitions(64)
        self._pending = run_cea.new_pending(64, self._builder.tables.accepts.size)
        self._found = _new_found(_FOUND_ROOM)
        self._cursor = np.zeros(run_cea.CURSOR_SIZE, np.int64)
        self._stamps = np.empty(0, np.int64)
        self._stamps_from = 0
        self._seen = 0
        self._oldest = 0
        self._counter = Counter()
        self._sliding = SlidingCounter() if settings.slides else None
        automaton.class_of(0)

    @property
    def oldest(self) -> int:
        """The earliest sequence number that a complex event can still hold."""
        return self._oldest

    @property
    def seen(self) -> int:
        """How many events were pushed."""
        return self._seen

    def push(self, batch: EventBatch) -> Iterator[Roots]:
        """Recognises a batch; yields roots whenever some are there. Must be read to its end."""
        count = batch.stamps.size
        if count == 0:
            return
        classes, partitions = self._class_numbers(batch.words), self._partition_numbers(batch.keys)
        cursor = self._cursor
        cursor[run_cea.AT] = 0
        cursor[run_cea.FIRST] = self._seen
        starts = self._window_starts(batch.stamps)
        events = Events(classes, partitions, batch.ordinal, starts)
        if self._sliding is not None:
            self._sliding.append(classes, starts, self._oldest)
        while True:
            code = run_cea.advance(
                self._builder.tables,
                self.arena,
                self._cells,
                self._entries,
                self._partitions,
                self._pending,
                self._found,
                events,
                cursor,
                self.settings.gaps,
                self.settings.consume,
            )
            if code == run_cea.MISS:
                self._learn(int(cursor[run_cea.MISS_STATE]), int(cursor[run_cea.MISS_CLASS]))
                continue
            if self._found.size[0]:
                yield self._roots()
                self._found.size[0] = 0
            elif code == run_cea.FULL:
                self._found = _new_found(2 * self._found.event.size)
            if code == run_cea.DONE:
                break
            if code == run_cea.GROW:
                events = self._make_room(events, batch.keys)
        self._seen += count
        if self._sliding is not None and self._sliding.active:
            self._sliding.catch_up(self._builder.tables, self._builder.states, self._seen - 1)
        self._oldest = int(starts[-1])

    def matches(self, roots: Roots, limit: int | None = None, first_batch: int = 256) -> Iterator[Matches]:
        """The complex events of `roots`, at most `limit` for each end, in batches that grow."""
        walk, room = new_walk(), first_batch
        matches, sizes = _new_matches(room, 8 * room), np.zeros(2, np.int64)
        while True:
            code = walk_roots(
                self.arena, roots.root, roots.event, roots.oldest, limit or 0, walk, matches, sizes
            )
            if code == GROW:
                walk = deeper(walk)
            elif code == FULL and sizes[0] == 0:
                matches = _new_matches(room, 4 * matches.event.size)
            else:
                if sizes[0]:
                    yield _filled(matches, sizes)
                if code == DONE:
                    return
                room = min(4 * room, 1 << 16)
                matches, sizes = _new_matches(room, max(8 * room, matches.event.size)), np.zeros(2, np.int64)

    def counts(self, roots: Roots, enough: int | None = None) -> list[int]:
        """The number of complex events of each root, exact or at least `enough`, without enumerating."""
        return self._counter.of_roots(self.arena, roots.root, roots.oldest, enough)

    def counts_by_end(self, roots: Roots, limit: int | None = None) -> tuple[NDArray[np.int64], list[int]]:
        """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`."""
        ends, first = np.unique(roots.event, return_index=True)
        bounds = [*first.tolist(), roots.event.size]
        numbers: list[int] = []
        for low in range(0, ends.size, _COUNTED_AT_ONCE):
            high = min(low + _COUNTED_AT_ONCE, ends.size)
            part = roots.part(bounds[low], bounds[high])
            within = [bound - bounds[low] for bound in bounds[low : high + 1]]
            numbers += self._counts_of(ends[low:high], part, within, limit)
        return ends, numbers

    def _counts_of(
        self, ends: NDArray[np.int64], roots: Roots, bounds: list[int], limit: int | None
    ) -> list[int]:
        """The counts at some ends; roots bounds[i] … bounds[i + 1] - 1 are those of end i.

        They are read off the compact set. Where compact sets share little, their rims are long; then the
        sliding count takes over.
        """
        sliding = self._sliding
        if sliding is not None and not sliding.active and self._counter.steps > 4 * int(ends[0]) + 100_000:
            sliding.activate(int(ends[0]))
        if sliding is None or not sliding.active:
            counts = self.counts(roots, limit)
            return _capped([sum(counts[a:b]) for a, b in pairwise(bounds)], limit)
        exact, rough = sliding.counts(self._builder.tables, self._builder.states, ends)
        numbers: list[int] = exact.tolist()
        for place in np.flatnonzero(~(rough < FITS)).tolist():
            if limit is not None and limit < FITS:
                numbers[place] = limit
            else:
                numbers[place] = sum(self.counts(roots.part(bounds[place], bounds[place + 1])))
        return _capped(numbers, limit)

    def match_at(self, roots: Roots, place: int, index: int) -> Matches:
        """The complex event number `index` of root number `place`, without enumerating those before it."""
        root, oldest, end = (int(column[place]) for column in (roots.root, roots.oldest, roots.event))
        start, items = self._counter.path(self.arena, root, oldest, index)
        return Matches(
            np.array([start], np.int64),
            np.array([end], np.int64),
            np.array([0, len(items)], np.int64),
            np.array([event for event, _ in items], np.int64),
            np.array([marks for _, marks in items], np.int32),
        )

    def _roots(self) -> Roots:
        size = int(self._found.size[0])
        return Roots(self._found.event[:size], self._found.root[:size], self._found.oldest[:size])

    def _window_starts(self, stamps: NDArray[np.int64]) -> NDArray[np.int64]:
        starts = np.zeros(stamps.size, np.int64)
        if self.settings.window is None:
            return starts
        kept = self._stamps[self._oldest - self._stamps_from :]
        both = np.concatenate((kept, stamps))
        window_starts(both, kept.size, self.settings.window, 0, starts)
        self._stamps, self._stamps_from = both, self._oldest
        starts += self._oldest
        return starts

    def _class_numbers(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        numbers = np.empty(words.shape[0], np.int32)
        row = number_rows(self._classes, words, numbers, insert=False)
        while row < words.shape[0]:
            size = int(self._classes.size[0])
            if size == self._classes.words.shape[0]:
                self._classes = table_of(self._classes.words, 2 * size)
            number_rows(self._classes, words[row : row + 1], numbers[row : row + 1], insert=True)
            event_class = self._automaton.class_of(_bits(words[row]))
            if event_class != numbers[row]:
                raise RuntimeError(
                    "an automaton serves one recognizer only: its classes were numbered elsewhere"
                )
            self._builder.make_room_for_class(event_class)
            row = number_rows(self._classes, words, numbers, row, insert=False)
        return numbers

    def _partition_numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        if not self.settings.keyed:
            return np.zeros(keys.shape[0], np.int32)
        numbers = np.empty(keys.shape[0], np.int32)
        row = number_rows(self._keys, keys, numbers, insert=True)
        while row < keys.shape[0]:
            used = int(self._keys.size[0])
            self._keys = table_of(self._keys.words[:used], 2 * used)
            self._partitions = _grown_partitions(self._partitions, 2 * used)
            row = number_rows(self._keys, keys, numbers, row, insert=True)
        return numbers

    def _learn(self, state: int, event_class: int) -> None:
        self._builder.learn(state, event_class)
        states = self._builder.tables.accepts.size
        if states > self._pending.where.size:
            self._pending = run_cea.new_pending(self._pending.entry.size, states)

    def _make_room(self, events: Events, keys: NDArray[np.uint64]) -> Events:
        cursor = self._cursor
        need_nodes, need_cells, need_entries, need_pending = (
            int(need) for need in cursor[run_cea.NEED_NODES :]
        )
        cursor[run_cea.NEED_NODES :] = 0
        if need_pending > self._pending.entry.size:
            self._pending = run_cea.new_pending(2 * need_pending, self._builder.tables.accepts.size)
        if need_cells > self._cells.free[1]:
            self._cells = grown_cells(self._cells, 2 * self._cells.node.size + need_cells)
        if need_entries > self._entries.free[1]:
            self._entries = run_cea.grown_entries(self._entries, 2 * self._entries.state.size + need_entries)
        if self.arena.size[0] + need_nodes > self.arena.kind.size:
            return self._compact(events, keys, need_nodes)
        return events

    def _compact(self, events: Events, keys: NDArray[np.uint64], need_nodes: int) -> Events:
        """Keeps what the window still reaches; grows the arena only if that is more than half of it."""
        at = int(self._cursor[run_cea.AT])
        oldest = int(events.oldest[at])
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        roots = np.empty(self._cells.node.size, np.int32)
        keep = np.zeros(used, np.int8)
        count = run_cea.expire(
            self.arena, self._cells, self._entries, self._partitions, used, oldest, roots, keep
        )
        size = int(self.arena.size[0])
        live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
        mark_live(self.arena, roots[:count], oldest, live)
        move_live(self.arena, oldest, live, moved)
        run_cea.rename_nodes(self._cells, self._entries, self._partitions, used, moved)
        self._counter.forget()
        if 2 * (self.arena.size[0] + need_nodes) > self.arena.kind.size:
            self.arena = grown(self.arena, 2 * (self.arena.kind.size + need_nodes))
        if self.settings.keyed and used > 1024 and 2 * int(keep.sum()) < used:
            self._evict(keep)
            partition = events.partition.copy()
            partition[at:] = self._partition_numbers(keys[at:])
            return events._replace(partition=partition)
        return events

    def _evict(self, keep: NDArray[np.int8]) -> None:
        """Forgets the keys of partitions in which nothing is open."""
        kept = np.flatnonzero(keep)
        capacity = max(64, 2 * kept.size)
        old = self._partitions
        self._partitions = _new_partitions(capacity)
        copy_columns([column[kept] for column in old], self._partitions, kept.size)
        self._keys = table_of(self._keys.words[kept], capacity)


def _capped(numbers: list[int], limit: int | None) -> list[int]:
    return numbers if limit is None else [min(number, limit) for number in numbers]


def _bits(words: NDArray[np.uint64]) -> int:
    return sum(int(word) << (63 * place) for place, word in enumerate(words))


def _new_partitions(capacity: int) -> Partitions:
    return Partitions(
        np.full(capacity, NONE, np.int32),
        np.full(capacity, -1, np.int64),
        np.zeros(capacity, np.int64),
    )


def _grown_partitions(partitions: Partitions, capacity: int) -> Partitions:
    bigger = _new_partitions(capacity)
    copy_columns(partitions, bigger, partitions.first.size)
    return bigger


def _new_found(room: int) -> Found:
    return Found(
        np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64), np.zeros(1, np.int64)
    )


def _new_matches(room: int, items: int) -> Matches:
    return Matches(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(room + 1, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int32),
    )


def _filled(matches: Matches, sizes: NDArray[np.int64]) -> Matches:
    count, items = int(sizes[0]), int(sizes[1])
    return Matches(
        matches.start[:count],
        matches.end[:count],
        matches.offsets[: count + 1],
        matches.event[:items],
        matches.marks[:items],
    )
