"""Runs of a deterministic automaton, which end in nodes of one compact set of paths (tECS).

What is the same whether runs are told apart by their state alone (`plain_runs`) or by more (`split_runs`), or
compared by what they mark (`span_runs`):
numbers for classes and partitions, missing rows, the arena and its compaction, partitions that are forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch, OneEvent, words_of
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    MISS,
    Found,
    reset,
    taken_needs,
)
from estero.engine.runs.numbered_events import FEWEST_PARTITIONS, MOST_AHEAD, NumberedEvents, Settings
from estero.engine.runs.one_event import OneLoaded
from estero.engine.runs.run_cea import NO_EVENTS, Events, Partitions
from estero.engine.runs.split.ranks import FIRST_STEP
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.columns import Arrays, taken, within
from estero.engine.snapshots.snapshot import Snapshot, arena_of, live_nodes, numbered_states
from estero.engine.snapshots.sound import check_arena, check_partitions
from estero.engine.store.arena import NONE, Arena, copy_columns, grown, mark_live, move_live, new_arena
from estero.engine.store.hashing import table_of
from estero.engine.tally.tally import Stretch, Tally
from estero.engine.walk.paths import PathCounter
from estero.engine.walk.roots import Roots

ROOM = 256
"""Places in a new pool."""

_SMALLEST_ARENA = 1 << 16
_FEW_KEYS, _MANY_KEYS = 1 << 10, 1 << 15
"""Up to so few keys are kept even if nothing is open there; beyond so many it is seen to which these are.

Measured with 10^6 keys, each of them seldom, in windows of 10,000 events: 205 ns an event where that waited
for a compaction of the nodes, so that most look-ups missed the cache, and 130 this way.
"""


class CeaRuns(NumberedEvents):
    """See `recognizer.Runs`. Partitions are numbered from 0; without keys there is one."""

    room = 1 << 16
    decides_later = False
    in_order = True
    cursor_kind: ClassVar[Any]
    """The class of the kernel's cursors."""

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        registers = settings.registers.registers if settings.registers is not None else 0
        super().__init__(automaton, settings, registers)
        self.window, self.consume, self.forgotten = settings.window, settings.consume, 0
        self.arena = new_arena(_SMALLEST_ARENA)
        self._most_keys = _MANY_KEYS
        self._partitions = _new_partitions(FEWEST_PARTITIONS, settings.order)
        self._events = NO_EVENTS
        self._batch_keys = np.empty((0, 2), np.uint64)
        self._one: OneLoaded | None = None
        self._cursor = self.cursor_kind()
        self.counter = PathCounter(choices=settings.chooses)
        self.tally = Tally(self._builder) if settings.tallied else None

    # --------------------------------------------------------------- what depends on how runs are told apart

    @abstractmethod
    def _advance(self, found: Found) -> int:
        """Goes on with the batch until one of the codes of `cursor`."""

    @abstractmethod
    def _make_room(self, needed: dict[str, int]) -> None:
        """Makes the room that is `needed`, but for the nodes."""

    @abstractmethod
    def _drop(self, partition: int) -> None:
        """Forgets all runs of a partition."""

    @abstractmethod
    def _listed(self, used: int, generation: int, oldest: int) -> Arrays:
        """What is open in partitions 0 … used-1, if they are of `generation` (NONE: any); see `open_runs`."""

    @abstractmethod
    def _check_listed(self, arrays: Arrays, nodes: int, states: int) -> None:
        """Raises ValueError unless arrays are such as `_listed` gives."""

    @abstractmethod
    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        """Puts what `_listed` gave in the place of all runs; the first entry or group of each partition."""

    # --------------------------------------------------------------------------------------- going on

    @property
    def size(self) -> int:
        """How many nodes and partitions are held, in reach or not."""
        return int(self.arena.size[0] + self._keys.size[0])

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        """See `Runs`: numbers classes and partitions."""
        settings = self.settings
        steps = settings.clocks if settings.registers is None else settings.registers.action.size
        if steps > 0 and batch.values.shape[0] != batch.stamps.size:
            raise ValueError("events have no values for the registers or clocks")
        if self.window is not None and self._keys.size[0] > self._most_keys:
            self._keep(self._opened(int(starts[0])))
            self._most_keys = max(_MANY_KEYS, 4 * int(self._keys.size[0]))
        classes, partitions = self._numbers_of(batch)
        values = np.ascontiguousarray(batch.values, np.int64), np.ascontiguousarray(batch.valid, np.bool_)
        self._events = Events(
            classes, partitions, np.ascontiguousarray(batch.ordinal, np.int64), starts, *values
        )
        self._batch_keys = batch.partition
        self._cursor.at, self._cursor.first = 0, first
        if self.tally is not None:
            keys = batch.partition if settings.keyed else np.zeros((classes.size, 2), np.uint64)
            self.tally.append(
                Stretch(classes, keys, starts), first, int(self._keys.size[0]) if settings.keyed else 0
            )

    def load_one(self, event: OneEvent, oldest: int, number: int) -> None:
        """See `Runs`: numbers are remembered, as long as they stand for the same."""
        if self.settings.first_bit is not None or self.tally is not None:  # these look at batches
            self.load(event.batch(), np.array([oldest]), number)
            return
        if self._one is None:
            self._one = OneLoaded.of(len(event.values))
        one = self._one
        event_class = one.classes.get(event.bits)
        if event_class is None:
            event_class = int(self._class_numbers(words_of(event.bits, self.settings.words))[0])
            one.classes[event.bits] = event_class
        one.event_class[0] = event_class
        if event.partition is not None and self.settings.keyed:
            one.key[0] = event.partition
            partition = one.number_of(event.partition, self._keys)
            if partition is None:
                partition = one.partitions[event.partition] = int(self._numbered(one.key)[0])
            one.partition[0] = partition
        one.ordinal[0] = event.ordinal
        one.oldest[0] = oldest
        if event.values:
            one.values[0], one.valid[0] = event.values, event.valid
        self._events, self._batch_keys = one.events, one.key
        self._cursor.at, self._cursor.first = 0, number

    def advance(self, found: Found, last: int) -> int:
        """See `Runs`: a missing row is worked out."""
        self._cursor.last = last
        while (code := self._advance(found)) == MISS:
            self._learn(int(self._cursor.miss_state), int(self._cursor.miss_class))
        return code

    def _learn(self, state: int, event_class: int) -> None:
        """Works out what is missing, where the kernel says so by these numbers."""
        self._builder.learn(state, event_class)

    def decide(self, until: int) -> None:
        """See `Runs`: nothing is decided later."""
        del until

    def forget(self) -> None:
        """See `Runs`."""
        if self.consume == CONSUME_ANY_ASKED:
            self._cursor.generation += 1
        else:
            self._drop(int(self._events.partition[self._cursor.at - 1]))

    def make_room(self, held: Sequence[Roots] | None) -> None:
        """See `Runs`."""
        needed = taken_needs(self._cursor)
        self._make_room(needed)
        nodes, room = needed["nodes"], self.arena.kind.size
        if self.arena.size[0] + nodes > room:
            if held is None:
                self._compact(nodes)
            else:
                self.arena = grown(self.arena, new_arena(2 * (room + nodes)))

    @property
    def _ahead(self) -> int:
        """Of so many events that come next, each may need a place."""
        return min(int(self._events.partition.size - self._cursor.at), MOST_AHEAD)

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        """Partition kept[i] becomes number i, with room for more; the others, which are empty, are gone."""
        old = [column[kept] for column in self._partitions]
        self._partitions = _new_partitions(capacity, self.settings.order)
        copy_columns(old, self._partitions, old[0].size)

    def _compact(self, need_nodes: int) -> None:
        """Keeps what the window still reaches; grows the arena only if that is more than half of it."""
        at = int(self._cursor.at)
        oldest = int(self._events.oldest[at])
        arrays = self._opened(oldest)
        size = int(self.arena.size[0])
        live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
        mark_live(self.arena, arrays["node"], oldest, live)
        move_live(self.arena, live, moved)
        arrays["node"] = moved[arrays["node"]]
        self.counter.forget()
        if 2 * (self.arena.size[0] + need_nodes) > self.arena.kind.size:
            self.arena = grown(self.arena, new_arena(2 * (self.arena.kind.size + need_nodes)))
        if self._keep(arrays):
            partition = self._events.partition.copy()
            partition[at:] = self._numbered(self._batch_keys[at:])
            self._events = self._events._replace(partition=partition)

    def _keep(self, opened: Arrays) -> bool:
        """Puts what is open in the place of all runs; whether partitions have other numbers now.

        They have where most of them are gone, because nothing is open there.
        """
        used = opened["opened"].size
        self._partitions.first[:used] = self._put(opened)
        kept = np.flatnonzero(opened["opened"])
        seldom = used > _FEW_KEYS and 2 * kept.size < used
        if not (self.settings.keyed and seldom) or self.settings.remembers_keys:
            return False
        self._keep_partitions(kept, used)  # those to come need as much room as those that are gone
        self._keys = table_of(self._keys.words[kept], used)
        return True

    # ------------------------------------------------------------------------- stopping and going on

    @property
    def needed(self) -> int:
        """See `Runs`."""
        return 0

    def idle(self, oldest: int) -> bool:
        """See `Runs`."""
        if self.settings.remembers_keys and self._keys.size[0] > 0:
            return False
        return not self._opened(oldest)["opened"].any()

    def snapshot(self, oldest: int) -> Snapshot:
        """See `Runs`."""
        arrays = self._opened(oldest)
        opened = arrays["opened"] > 0
        columns: Arrays = {}
        if self.settings.gaps:
            columns["ordinal"] = np.where(opened, self._partitions.ordinal[: opened.size], -1)
        if self.settings.ranked:
            step = self._partitions.step[: opened.size]
            columns["step"] = np.where(opened, step, FIRST_STEP[self.settings.order])
        nodes, arrays["node"], events = live_nodes(self.arena, arrays["node"], oldest)
        if self.settings.apart:
            last = np.searchsorted(events, self._partitions.blocked[: opened.size], side="right") - 1
            columns["blocked"] = np.where(opened, last, -1)
        states, arrays["state"] = numbered_states(arrays["state"])
        if self.settings.keyed:
            kept = np.arange(opened.size) if self.settings.remembers_keys else np.flatnonzero(opened)
            columns |= {"opened": arrays["opened"], "partition": self._keys.words[: opened.size]}
            columns = {name: column[kept] for name, column in columns.items()}
        return Snapshot(events, states, arrays | columns | nodes)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """See `Runs`."""
        settings, arrays = self.settings, snapshot.arrays
        nodes = check_arena(arrays, snapshot.events.size, marks)
        self._check_listed(arrays, nodes, snapshot.states.size)
        check_partitions(arrays, keyed=settings.keyed, gaps=settings.gaps, ordered=settings.ranked)
        if settings.apart:
            blocked = taken(arrays, "blocked", np.int64, arrays["opened"].size)
            within(blocked, -1, snapshot.events.size, "starts")

    def resume(self, snapshot: Snapshot) -> None:
        """See `Runs`. Raises ValueError where a partition is there twice."""
        arrays = dict(snapshot.arrays)
        self._builder.meet(int(snapshot.states.max(initial=0)))
        arrays["state"] = snapshot.states[arrays["state"]]
        count = arrays["opened"].size
        capacity = max(FEWEST_PARTITIONS, 2 * count)
        if self.settings.keyed:
            self._keys = table_of(arrays["partition"], capacity)
            if int(self._keys.size[0]) != count:
                raise ValueError("a partition is there twice")
        self.arena = arena_of(arrays, _SMALLEST_ARENA)
        self._partitions = _new_partitions(capacity, self.settings.order)
        self._partitions.first[:count] = self._put(arrays)
        if self.settings.gaps:
            self._partitions.ordinal[:count] = arrays["ordinal"]
        if self.settings.ranked:
            self._partitions.step[:count] = arrays["step"]
        if self.settings.apart:
            self._partitions.blocked[:count] = arrays["blocked"]
        reset(self._cursor)
        self.counter.forget()
        self.tally = None

    def _opened(self, oldest: int) -> Arrays:
        """The runs inside the window; see `open_runs`."""
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        forgetful = self.consume in (CONSUME_ANY, CONSUME_ANY_ASKED)
        return self._listed(used, int(self._cursor.generation) if forgetful else NONE, oldest)

    def needed_from(self, oldest: int) -> int:
        """See `Runs`."""
        return max(oldest, self.forgotten)

    # ------------------------------------------------------------------------- reading what was found

    @property
    def compact(self) -> Arena:
        """See `Runs`."""
        return self.arena


def _new_partitions(capacity: int, order: int) -> Partitions:
    return Partitions(
        np.full(capacity, NONE, np.int32),
        np.full(capacity, -1, np.int64),
        np.zeros(capacity, np.int64),
        np.full(capacity, FIRST_STEP.get(order, 0), np.int64),
        np.full(capacity, -1, np.int64),
    )
