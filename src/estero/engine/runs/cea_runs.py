"""Runs of a deterministic automaton, which end in nodes of one compact set of paths (tECS).

The part that does not depend on whether runs are told apart by their state alone (`plain_runs`) or by more
(`split_runs`), or compared by their marks (`span_runs`): numbers for classes and partitions, missing rows,
the store, its growth and compaction, forgotten partitions, and snapshots.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch, OneEvent, words_of
from estero.engine.cursor import CONSUME_ANY, CONSUME_ANY_ASKED, MISS, Reported, reset, taken_needs
from estero.engine.kernels import kinds_of
from estero.engine.runs.numbered_events import FEWEST_PARTITIONS, NumberedEvents, Settings
from estero.engine.runs.one_event import OneLoaded
from estero.engine.runs.run_cea import NO_EVENTS, Events, Partitions
from estero.engine.runs.split.ranks import FIRST_STEP
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.snapshot import Snapshot, live_nodes, moved_live
from estero.engine.snapshots.sound import check_arena, check_partitions
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.checks import Arrays, counts, taken, within
from estero.engine.store.hashing import MOST_AHEAD, table_of
from estero.engine.store.lists import check_lists, linked, listed, references
from estero.engine.store.schema import STATES, count_written, grown, new, picked, read, with_free, with_sizes
from estero.engine.tally.tally import Stretch, Tally
from estero.engine.walk.paths import PathCounter
from estero.engine.walk.roots import Roots

CAPACITY = 256
"""The number of rows of a new pool."""

_SMALLEST_ARENA = 1 << 16
_ROOMY_ARENA = 1 << 18
"""A smaller arena grows where one batch fills it twice, whatever is kept of it.

Roots found between two compactions are a table of answers: with dense streams, where each event makes two or
three nodes, the calls for tables and compactions took more time than the answers. CPU ns an event of `A ; B+
; C` with `LIMIT 1` in windows of 100 and 10,000 events: 208 and 283 before, 156 and 162 with an arena 16
times as large; a factor of 4 has most of that gain.
"""
_PART_SHED = 4
_FEW_KEYS, _MANY_KEYS = 1 << 10, 1 << 15
"""The number of keys that are kept even if nothing is open there, and that beyond which idle ones are
dropped.

Measured with 10^6 rare keys in windows of 10,000 events: 205 ns an event where dropping waited for a
compaction of the nodes, so that most look-ups missed the cache, and 130 this way.
"""


class CeaRuns(NumberedEvents):
    """See `Runs`. Partitions are numbered from 0; without keys there is one."""

    capacity = 1 << 16
    cursor_kind: ClassVar[Any]
    """The class of the kernel's cursors."""
    store_kind: ClassVar[Any]
    """The class of the store: an arena, pools, partitions and scratch."""
    lists: ClassVar[str]
    """The pool of the store in which each partition has a list."""
    scratch: ClassVar[str]
    """The pool of the store that is scratch, with a place for each state."""

    def __init__(self, automaton: Automaton, settings: Settings, **sizes: int) -> None:
        self._registers = settings.registers.registers if settings.registers is not None else 0
        super().__init__(automaton, settings, self._registers)
        self.window, self.consume = settings.window, settings.consume
        sizes |= {"arena": _SMALLEST_ARENA, STATES: self._builder.tables.accepts.size}
        self.store: Any = new(self.store_kind, CAPACITY, partitions=FEWEST_PARTITIONS, **sizes)
        self.store.partitions.step[:] = self._first_step
        self._most_keys = _MANY_KEYS
        self._events = NO_EVENTS
        self._batch_keys = np.empty((0, 2), np.uint64)
        self._one: OneLoaded | None = None
        self._compacted = False
        self._cursor = self.cursor_kind()
        self.counter: PathCounter = PathCounter(choices=settings.chooses)
        self.tally = Tally(self._builder, windowed=self.window is not None) if settings.tallied else None

    # --------------------------------------------------------------- what depends on how runs are told apart

    @abstractmethod
    def _advance(self, reported: Reported) -> int:
        """Advances over the batch until one of the codes of `cursor`."""

    @abstractmethod
    def _drop(self, partition: int) -> None:
        """Forgets all runs of a partition."""

    def _enlarge_pools(self, needed: dict[str, int]) -> None:
        """Gives each pool except the nodes the free rows that are `needed`."""
        for name, rows in needed.items():
            pool = getattr(self.store, name)
            self._replace(
                name,
                with_sizes(pool, rows=rows) if name == self.scratch else with_free(pool, rows, self._ahead),
            )

    def _listed(self, first: NDArray[np.int32], oldest: int) -> tuple[Arrays, NDArray[np.int32]]:
        """The open runs of partitions that begin with `first`, and the length of each one's list."""
        return listed(self.store, self.lists, first, oldest)

    def _check_listed(self, arrays: Arrays, opened: NDArray[np.int32], sizes: dict[str, int]) -> None:
        """Raises ValueError unless the arrays are of the form returned by `_listed`."""
        check_lists(self.store_kind, self.lists, arrays, opened, sizes)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        """Replaces all runs by those of `_listed`; returns the first row of each partition's list."""
        self.store, first = linked(self.store, self.lists, arrays, arrays["opened"])
        return first

    def _replace(self, name: str, pool: Any) -> None:
        self.store = self.store._replace(**{name: pool})

    @property
    def arena(self) -> Arena:
        """The nodes of the compact set."""
        return self.store.arena  # type: ignore[no-any-return]

    @property
    def _partitions(self) -> Partitions:
        return self.store.partitions  # type: ignore[no-any-return]

    @property
    def _first_step(self) -> int:
        """The amount that the first mark of a partition adds to a rank."""
        return FIRST_STEP.get(self.settings.order, 0)

    # --------------------------------------------------------------------------------------- going on

    @property
    def size(self) -> int:
        """The number of nodes and partitions held, in reach or not."""
        return int(self.arena.size[0] + self._keys.size[0])

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        """See `Runs`. Numbers classes and partitions."""
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
        self._compacted = False
        if self.tally is not None:
            keys = batch.partition if settings.keyed else np.zeros((classes.size, 2), np.uint64)
            self.tally.append(
                Stretch(classes, keys, starts), first, int(self._keys.size[0]) if settings.keyed else 0
            )

    def load_one(self, event: OneEvent, oldest: int, number: int) -> None:
        """See `Runs`. Numbers are remembered as long as they are valid."""
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

    def advance(self, reported: Reported, last: int) -> int:
        """See `Runs`. Missing rows are determined on demand."""
        self._cursor.last = last
        while True:
            states, known = self._builder.tables.accepts.size, getattr(self.store, self.scratch)
            if states > known.where.size:
                self._replace(self.scratch, with_sizes(known, states=states))
            code = self._advance(reported)
            if code != MISS:
                return code
            self._learn(int(self._cursor.miss_state), int(self._cursor.miss_class))

    def _learn(self, state: int, event_class: int) -> None:
        """Determines the missing rows that the kernel names."""
        self._builder.learn(state, event_class)

    def forget(self) -> None:
        if self.consume == CONSUME_ANY_ASKED:
            self._cursor.generation += 1
        else:
            self._drop(int(self._events.partition[self._cursor.at - 1]))

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        needed = taken_needs(self._cursor)
        nodes = needed.pop("nodes")
        self._enlarge_pools(needed)
        if self.arena.size[0] + nodes > self.arena.kind.size:
            if held is None:
                self._compact(nodes)
            else:
                self._grow_arena(nodes)

    def _grow_arena(self, nodes: int) -> None:
        self._replace("arena", grown(self.arena, rows=2 * (self.arena.kind.size + nodes)))

    @property
    def _ahead(self) -> int:
        """The number of coming events that may need a row."""
        return min(int(self._events.partition.size - self._cursor.at), MOST_AHEAD)

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        """Renumbers partition kept[i] to i, with capacity for more; drops the others, which are empty."""
        partitions = picked(self._partitions, kept, capacity)
        partitions.step[self._partitions.first[kept].size :] = self._first_step
        self._replace("partitions", partitions)

    def _compact(self, need_nodes: int) -> None:
        """Keeps what the window still reaches, and grows the arena where that is more than half of it.

        It also grows, up to `_ROOMY_ARENA`, where one batch fills it twice: of many rules few have so many
        events.
        """
        self.compactions += 1
        at = int(self._cursor.at)
        oldest = int(self._events.oldest[at])
        arrays = self._opened(oldest)
        moved = moved_live(self.arena, np.concatenate(self._referring(arrays, "arena")), oldest)
        self._renumber(arrays, "arena", moved)
        self.counter.forget()
        kept, capacity = self.arena.size[0] + need_nodes, self.arena.kind.size
        if 2 * kept > capacity or (self._compacted and capacity < _ROOMY_ARENA):
            self._grow_arena(need_nodes)
        self._compacted = True
        if self._keep(arrays):
            partition = self._events.partition.copy()
            partition[at:] = self._numbered(self._batch_keys[at:])
            self._events = self._events._replace(partition=partition)

    def _keep(self, opened: Arrays) -> bool:
        """Rebuilds the store from the open runs; returns whether partitions have been renumbered.

        They are if most of them are gone, because nothing is open there.
        """
        used = opened["opened"].size
        self._partitions.first[:used] = self._put(opened)
        kept = np.flatnonzero(opened["opened"])
        seldom = used > _FEW_KEYS and 2 * kept.size < used
        if not (self.settings.keyed and seldom) or self.settings.remembers_keys:
            return False
        self._keep_partitions(kept, used)  # new partitions need as many places as those that are gone
        self._keys = table_of(self._keys.words[kept], used)
        return True

    @property
    def sheds(self) -> bool:
        """See `Runs`."""
        return self.settings.keyed

    def shed(self, oldest: int) -> int:
        """Forgets the runs of a quarter of the partitions, at least one; returns how many.

        These are the partitions in which nothing has begun for longest. Without keys there is no choice.
        """
        if not self.sheds:
            return 0
        arrays = self._opened(oldest)
        opened = np.flatnonzero(arrays["opened"])
        begun = self._last_begun(arrays)
        shed = opened[np.argsort(begun, kind="stable")][: -(-opened.size // _PART_SHED)]
        for partition in shed.tolist():
            self._drop(partition)
        return int(shed.size)

    def _last_begun(self, arrays: Arrays) -> NDArray[np.int64]:
        """The last event with which a run has begun, for each partition where one is open."""
        sizes = arrays["opened"][arrays["opened"] > 0]
        begun = np.full(sizes.size, -1, np.int64)
        listed = np.repeat(np.arange(sizes.size), sizes)
        for name in self.references("arena"):
            inner = arrays.get(f"{name.partition('.')[0]}.count")  # how many of them each row of a list has
            places = listed if inner is None or inner.size != listed.size else np.repeat(listed, inner)
            if places.size == arrays[name].size:  # otherwise they are next to the lists
                np.maximum.at(begun, places, self.arena.start[arrays[name]])
        return begun

    # ------------------------------------------------------------------------- stopping and going on

    def idle(self, oldest: int) -> bool:
        if self.settings.remembers_keys and self._keys.size[0] > 0:
            return False
        return not self._opened(oldest)["opened"].any()

    def snapshot(self, oldest: int) -> Snapshot:
        arrays = self._opened(oldest)
        opened = arrays["opened"] > 0
        columns: Arrays = {}
        if self.settings.gaps:
            columns["ordinal"] = np.where(opened, self._partitions.ordinal[: opened.size], -1)
        if self.settings.ranked:
            step = self._partitions.step[: opened.size]
            columns["step"] = np.where(opened, step, FIRST_STEP[self.settings.order])
        nodes, moved, events = live_nodes(
            self.arena, np.concatenate(self._referring(arrays, "arena")), oldest
        )
        self._renumber(arrays, "arena", moved)
        if self.settings.apart:
            last = np.searchsorted(events, self._partitions.blocked[: opened.size], side="right") - 1
            columns["blocked"] = np.where(opened, last, -1)
        states = np.unique(np.concatenate(self._referring(arrays, STATES)))
        place = np.zeros(int(states.max(initial=0)) + 1, np.int32)
        place[states] = np.arange(states.size)
        self._renumber(arrays, STATES, place)
        if self.settings.keyed:
            kept = np.arange(opened.size) if self.settings.remembers_keys else np.flatnonzero(opened)
            columns |= {"opened": arrays["opened"], "partition": self._keys.words[: opened.size]}
            columns = {name: column[kept] for name, column in columns.items()}
        return Snapshot(events, states.astype(np.int32), arrays | columns | nodes)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        settings, arrays = self.settings, snapshot.arrays
        nodes = check_arena(arrays, snapshot.events.size, marks)
        rows = count_written(kinds_of(self.store_kind)[self.lists], self.lists, arrays)
        opened = counts(arrays, "opened", None, rows, least=0)
        sizes = {"arena": nodes, STATES: snapshot.states.size, "registers": self._registers, "statuses": 3}
        self._check_listed(arrays, opened, sizes)
        check_partitions(arrays, keyed=settings.keyed, gaps=settings.gaps, ordered=settings.ranked)
        if settings.apart:
            blocked = taken(arrays, "blocked", np.int64, arrays["opened"].size)
            within(blocked, -1, snapshot.events.size, "starts")

    def resume(self, snapshot: Snapshot) -> None:
        """See `Runs`. Raises ValueError if a partition occurs twice."""
        arrays = dict(snapshot.arrays)
        self._builder.meet(int(snapshot.states.max(initial=0)))
        self._renumber(arrays, STATES, snapshot.states)
        count = arrays["opened"].size
        capacity = max(FEWEST_PARTITIONS, 2 * count)
        if self.settings.keyed:
            self._keys = table_of(arrays["partition"], capacity)
            if int(self._keys.size[0]) != count:
                raise ValueError("a partition is there twice")
        self._replace("arena", read(Arena, "arena", arrays, _SMALLEST_ARENA))
        self._keep_partitions(slice(0), capacity)
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
        """The runs inside the window (`_listed`), and `opened`: the length of each partition's list."""
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        first = self._partitions.first[:used]
        if self.consume in (CONSUME_ANY, CONSUME_ANY_ASKED):
            known = self._partitions.generation[:used] == self._cursor.generation
            first = np.where(known, first, np.int32(NONE))
        arrays, opened = self._listed(first, oldest)
        return {**arrays, "opened": opened}

    @classmethod
    def references(cls, to: str) -> list[str]:
        """The arrays of what is open (`_listed`) that refer to nodes or states."""
        return references(cls.store_kind, cls.lists, to)

    def _referring(self, arrays: Arrays, to: str) -> list[NDArray[np.int32]]:
        return [arrays[name] for name in self.references(to)]

    def _renumber(self, arrays: Arrays, to: str, number: NDArray[np.int32]) -> None:
        """Makes the open runs refer to number[i] instead of i."""
        for name in self.references(to):
            arrays[name] = number[arrays[name]]

    # ------------------------------------------------------------------------- reading what was found

    @property
    def compact(self) -> Arena:
        return self.arena
