"""Batches of classified events in, roots of compact sets out (algorithms.md, "Recognise").

Holds the arrays between batches and answers the kernel when it returns: a missing row is worked out,
missing room is made (the arena is compacted first, so memory follows the window), full buffers are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs import run_cea
from estero.engine.runs.active_runs import ActiveRuns, PlainRuns, SplitRuns, is_split
from estero.engine.runs.registers import RegisterTables
from estero.engine.runs.run_split import NO_ORDER, SplitEvents
from estero.engine.runs.tables import Automaton, TableBuilder
from estero.engine.snapshots.snapshot import Arrays, Snapshot, arena_of, live_nodes, numbered_states
from estero.engine.snapshots.sound import (
    check_arena,
    check_partitions,
    check_plain_runs,
    check_split_runs,
    check_stamps,
)
from estero.engine.stamps import out_of_reach, window_starts
from estero.engine.store.arena import NONE, Arena, grown, mark_live, move_live, new_arena
from estero.engine.store.hashing import new_table, number_rows, table_of
from estero.engine.walk.counter import FITS
from estero.engine.walk.enumeration import Enumeration, match_at
from estero.engine.walk.matches import Matches
from estero.engine.walk.paths import PathCounter
from estero.engine.walk.roots import Roots, by_end, capped, new_found, roots_of
from estero.engine.walk.share import Part
from estero.engine.walk.sliding_count import SlidingCounter


@dataclass(frozen=True, slots=True)
class Settings:
    """How events are read.

    `window` is in the unit of the stamps (None: none), `consume` one of the CONSUME codes of run_cea,
    `gaps` whether events that were dropped as irrelevant count (contiguity), `keyed` whether events
    carry a partition key, `words` the number of bit words. `counting` prepares for `counts` only.

    `registers` are what runs remember and check; `order` is NEXT or LAST of run_split where only the best
    support stays, and `visible` bool[label sets] says which marks count for it (none given: all).
    `first_bit` is a bit (k % 63 of word k // 63) to be set on the first event of each stream, which is told
    by its ordinal; in a keyed stream only if `ordinals` says that they are places in the partition, else
    all events of a key must be pushed.
    """

    window: int | None = None
    consume: int = run_cea.CONSUME_NONE
    gaps: bool = False
    keyed: bool = False
    words: int = 1
    counting: bool = False
    registers: RegisterTables | None = field(default=None, compare=False)
    order: int = NO_ORDER
    visible: NDArray[np.bool_] | None = field(default=None, compare=False)
    first_bit: int | None = None
    ordinals: bool = False

    @property
    def split(self) -> bool:
        """Whether runs are told apart by more than their state."""
        return is_split(self.registers, self.order)

    @property
    def slides(self) -> bool:
        """Whether counts can be kept up by a sliding count instead of being read off the compact set."""
        plain = self.consume == run_cea.CONSUME_NONE and not self.gaps and not self.keyed
        return self.counting and plain and self.window is not None and not self.split

    @property
    def remembers_keys(self) -> bool:
        """Whether a key must not be forgotten, because it can tell only so that an event is not its first."""
        return self.first_bit is not None and not self.ordinals


_NO_VALUES, _NONE_VALID = np.empty((0, 0), np.int64), np.empty((0, 0), np.bool_)


class EventBatch(NamedTuple):
    """n relevant events in stream order.

    `stamps` int64[n]: what the window measures, not falling; `ordinal` int64[n]: place in the partition's
    stream; `words` uint64[n, width]: bits; `keys` uint64[n, 2]: partition, ignored unless keyed. `values`
    int64[n, V]: what registers remember and compare, NULL unless `valid` bool[n, V].
    """

    stamps: NDArray[np.int64]
    ordinal: NDArray[np.int64]
    words: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    values: NDArray[np.int64] = _NO_VALUES
    valid: NDArray[np.bool_] = _NONE_VALID


BITS_IN_WORD = 63
"""Predicates in one bit word."""

_SMALLEST_ARENA = 1 << 15
_FOUND_ROOM = 1 << 16
_COUNTED_AT_ONCE = 1 << 10


class Recognizer:
    """The state of recognition of one query over one stream."""

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        self.settings = settings
        self._automaton = automaton
        if settings.first_bit is not None and settings.first_bit // BITS_IN_WORD >= settings.words:
            raise ValueError(f"bit {settings.first_bit} needs more than {settings.words} words")
        registers = settings.registers.registers if settings.registers is not None else 0
        self._builder = TableBuilder(automaton, registers)
        self._classes = table_of(np.zeros((1, settings.words), np.uint64), 64)
        self._keys = new_table(64, 2)
        self.arena = new_arena(_SMALLEST_ARENA)
        self._found = new_found(_FOUND_ROOM)
        self.holding = False
        """Whether roots stay valid until the next push begins; what is out of reach waits so long, too."""
        self._cursor = np.zeros(run_cea.CURSOR_SIZE, np.int64)
        self._runs = _active_runs(self._builder, self._cursor, settings)
        self._stamps = np.empty(0, np.int64)
        self._stamps_from = 0
        self._seen = 0
        self._oldest = 0
        self._last_partition = 0
        self._counter = PathCounter()
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

    @property
    def size(self) -> int:
        """How many nodes and partitions are held, in reach or not."""
        return int(self.arena.size[0] + self._keys.size[0])

    def push(self, batch: EventBatch) -> Iterator[Roots]:
        """Recognises a batch; yields roots whenever some are there. Must be read to its end."""
        count = batch.stamps.size
        if count == 0:
            return
        cursor = self._cursor
        cursor[run_cea.AT] = 0
        cursor[run_cea.FIRST] = self._seen
        events = self._events(batch)
        if self._sliding is not None:
            self._sliding.append(events.event_class, events.oldest, self._oldest)
        while True:
            code = self._runs.advance(self.arena, self._found, events)
            if code == run_cea.MISS:
                self._builder.learn(int(cursor[run_cea.MISS_STATE]), int(cursor[run_cea.MISS_CLASS]))
                continue
            if self._found.size[0]:
                self._last_partition = int(events.partition[cursor[run_cea.AT] - 1])
                yield roots_of(self._found, copied=self.holding)
                self._found.size[0] = 0
            elif code == run_cea.FULL:
                self._found = new_found(2 * self._found.event.size)
            if code == run_cea.DONE:
                break
            if code == run_cea.GROW:
                events = self._make_room(events, batch.keys)
        self._seen += count
        if self._sliding is not None and self._sliding.active:
            self._sliding.catch_up(self._builder.tables, self._builder.states, self._seen - 1)
        self._oldest = int(events.oldest[-1])

    def consume(self) -> None:
        """Forgets everything read so far, or that of the last event's partition only.

        To be called while `push` waits with the roots of one event; they stay valid. Raises ValueError
        unless `Settings.consume` is one of the ASKED.
        """
        match self.settings.consume:
            case run_cea.CONSUME_ANY_ASKED:
                self._cursor[run_cea.GENERATION] += 1
            case run_cea.CONSUME_PARTITION_ASKED:
                self._runs.forget(self._last_partition)
            case other:
                raise ValueError(f"consume was not asked for by the settings (code {other})")

    def expire(self, stamp: int) -> None:
        """No event before `stamp` comes any more: what started too long before that has left the window."""
        if self.settings.window is None:
            return
        kept = self._stamps[self._oldest - self._stamps_from :]
        self._oldest += out_of_reach(kept, stamp, self.settings.window)

    @property
    def idle(self) -> bool:
        """Whether no run is open and nothing else has to be remembered."""
        if self.settings.remembers_keys and self._keys.size[0] > 0:
            return False
        return not self._opened()["opened"].any()

    def snapshot(self) -> Snapshot:
        """What is needed to go on, without what has left the window; nothing changes by that."""
        arrays = self._opened()
        nodes, arrays["node"], events = live_nodes(self.arena, arrays["node"], self._oldest)
        states, arrays["state"] = numbered_states(arrays["state"])
        if self.settings.keyed:
            used = arrays["opened"].size
            kept = np.arange(used) if self.settings.remembers_keys else np.flatnonzero(arrays["opened"])
            for name in ("opened", "ordinal", "step"):
                if name in arrays:
                    arrays[name] = arrays[name][kept]
            arrays["partition"] = self._keys.words[kept]
        if self.settings.window is not None:
            arrays["stamp"] = self._stamps[events - self._stamps_from]
        return Snapshot(events, states, arrays | nodes)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless it can go on from a snapshot with label sets 0 … `marks` - 1."""
        settings, arrays = self.settings, snapshot.arrays
        events, states = snapshot.events.size, snapshot.states.size
        nodes = check_arena(arrays, events, marks)
        if settings.split:
            registers = 0 if settings.registers is None else settings.registers.registers
            check_split_runs(arrays, nodes, states, registers)
        else:
            check_plain_runs(arrays, nodes, states)
        ordered = settings.order != NO_ORDER
        check_partitions(arrays, keyed=settings.keyed, gaps=settings.gaps, ordered=ordered)
        if settings.window is not None:
            check_stamps(arrays, events)

    def resume(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot; `states` may be other numbers, of this recognizer's automaton.

        Raises ValueError where it has a partition twice.
        """
        arrays = dict(snapshot.arrays)
        self._builder.meet(int(snapshot.states.max(initial=0)))
        arrays["state"] = snapshot.states[arrays["state"]]
        partitions = 64
        if self.settings.keyed:
            partitions = max(partitions, 2 * arrays["partition"].shape[0])
            self._keys = table_of(arrays["partition"], partitions)
            if int(self._keys.size[0]) != arrays["partition"].shape[0]:
                raise ValueError("a partition is there twice")
        self.arena = arena_of(arrays, _SMALLEST_ARENA)
        self._runs.resume(arrays, self.arena, partitions)
        self._cursor[:] = 0
        self._seen = snapshot.events.size
        self._stamps = arrays.get("stamp", np.empty(0, np.int64))
        self._stamps_from = self._oldest = self._last_partition = 0
        self._counter.forget()
        self._sliding = None

    def _opened(self) -> Arrays:
        """The runs inside the window; see `open_runs`."""
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        forgetful = self.settings.consume in (run_cea.CONSUME_ANY, run_cea.CONSUME_ANY_ASKED)
        generation = int(self._cursor[run_cea.GENERATION]) if forgetful else NONE
        return self._runs.snapshot(self.arena, used, generation, self._oldest)

    def matches(
        self, roots: Roots, limit: int | None = None, first_batch: int = 256, part: Part | None = None
    ) -> Enumeration[Arena]:
        """The complex events of `roots`, at most `limit` for each end or a `part`, in batches that grow."""
        return Enumeration(self.arena, self._counter, roots, limit=limit, part=part, first_batch=first_batch)

    def counts(self, roots: Roots, enough: int | None = None) -> list[int]:
        """The number of complex events of each root, exact, or `enough` where there are more."""
        return self._counter.of_roots(self.arena, roots, enough)

    def counts_by_end(self, roots: Roots, limit: int | None = None) -> tuple[NDArray[np.int64], list[int]]:
        """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`."""
        ends, bounds = by_end(roots)
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
            return capped([sum(counts[a:b]) for a, b in pairwise(bounds)], limit)
        exact, rough = sliding.counts(self._builder.tables, self._builder.states, ends)
        numbers: list[int] = exact.tolist()
        for place in np.flatnonzero(~(rough < FITS)).tolist():
            if limit is not None and limit < FITS:
                numbers[place] = limit
            else:
                numbers[place] = sum(self.counts(roots.part(bounds[place], bounds[place + 1])))
        return capped(numbers, limit)

    def match_at(self, roots: Roots, place: int, index: int) -> Matches:
        """The complex event number `index` of root number `place`, without enumerating those before it."""
        return match_at(self.arena, self._counter, roots, place, index)

    def _window_starts(self, stamps: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.settings.window is None:
            return np.zeros(stamps.size, np.int64)
        kept = self._stamps[self._oldest - self._stamps_from :]
        self._stamps, self._stamps_from = np.concatenate((kept, stamps)), self._oldest
        starts = window_starts(self._stamps, kept.size, self.settings.window)
        starts += self._oldest
        return starts

    def _events(self, batch: EventBatch) -> SplitEvents:
        """The batch for the kernel, with classes and partitions numbered."""
        registers = self.settings.registers
        if registers is not None and batch.values.shape[0] != batch.stamps.size:
            raise ValueError("events have no values for the registers")
        known = int(self._keys.size[0])
        partitions = self._partition_numbers(batch.keys)
        words = batch.words
        if self.settings.first_bit is not None:
            words = words.copy()
            word, bit = divmod(self.settings.first_bit, BITS_IN_WORD)
            words[self._firsts(batch, partitions, known), word] |= np.uint64(1 << bit)
        return SplitEvents(
            self._class_numbers(words),
            partitions,
            batch.ordinal,
            self._window_starts(batch.stamps),
            np.array(batch.values, np.int64, order="C"),
            np.array(batch.valid, np.bool_, order="C"),
        )

    def _firsts(self, batch: EventBatch, partitions: NDArray[np.int32], known: int) -> NDArray[np.intp]:
        """Which events are the first of their stream; partitions from number `known` on are new."""
        if not self.settings.keyed or self.settings.ordinals:
            return np.flatnonzero(batch.ordinal == 0)
        numbers, first = np.unique(partitions, return_index=True)
        return np.array(first[numbers >= known], np.intp)

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
            self._runs.fit_partitions(2 * used)
            row = number_rows(self._keys, keys, numbers, row, insert=True)
        return numbers

    def _make_room(self, events: SplitEvents, keys: NDArray[np.uint64]) -> SplitEvents:
        need_nodes = self._runs.make_room()
        room = self.arena.kind.size
        if self.arena.size[0] + need_nodes > room and self.holding:
            self.arena = grown(self.arena, 2 * (room + need_nodes))
        elif self.arena.size[0] + need_nodes > room:
            return self._compact(events, keys, need_nodes)
        return events

    def _compact(self, events: SplitEvents, keys: NDArray[np.uint64], need_nodes: int) -> SplitEvents:
        """Keeps what the window still reaches; grows the arena only if that is more than half of it."""
        at = int(self._cursor[run_cea.AT])
        oldest = int(events.oldest[at])
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        roots, keep = self._runs.expire(self.arena, used, oldest)
        size = int(self.arena.size[0])
        live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
        mark_live(self.arena, roots, oldest, live)
        move_live(self.arena, live, moved)
        self._runs.rename(moved)
        self._counter.forget()
        if 2 * (self.arena.size[0] + need_nodes) > self.arena.kind.size:
            self.arena = grown(self.arena, 2 * (self.arena.kind.size + need_nodes))
        seldom = used > 1024 and 2 * int(keep.sum()) < used
        if self.settings.keyed and seldom and not self.settings.remembers_keys:
            self._evict(keep)
            partition = events.partition.copy()
            partition[at:] = self._partition_numbers(keys[at:])
            return events._replace(partition=partition)
        return events

    def _evict(self, keep: NDArray[np.int8]) -> None:
        """Forgets the keys of partitions in which nothing is open."""
        kept = np.flatnonzero(keep)
        capacity = max(64, 2 * kept.size)
        self._runs.keep_partitions(kept, capacity)
        self._keys = table_of(self._keys.words[kept], capacity)


def _bits(words: NDArray[np.uint64]) -> int:
    return sum(int(word) << (BITS_IN_WORD * place) for place, word in enumerate(words))


def _active_runs(builder: TableBuilder, cursor: NDArray[np.int64], settings: Settings) -> ActiveRuns:
    if not settings.split:
        return PlainRuns(builder, cursor, settings.gaps, settings.consume)
    return SplitRuns(
        builder,
        cursor,
        settings.gaps,
        settings.consume,
        settings.registers,
        settings.order,
        np.empty(0, np.bool_) if settings.visible is None else settings.visible,
        settings.window is not None,
    )
