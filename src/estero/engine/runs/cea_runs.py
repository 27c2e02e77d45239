"""Runs of a deterministic automaton, which end in nodes of one compact set of paths (tECS).

What is the same whether runs are told apart by their state alone (`plain_runs`) or by more (`split_runs`), or
compared by what they mark (`span_runs`):
numbers for classes and partitions, missing rows, the arena and its compaction, partitions that are forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, EventBatch, OneEvent, constant, words_of
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    MISS,
    Found,
    new_cursor,
    reset,
    taken_needs,
)
from estero.engine.runs.one_event import OneLoaded
from estero.engine.runs.run_cea import NO_EVENTS, Events, Partitions
from estero.engine.runs.split.registers import RegisterTables
from estero.engine.runs.split.run_split import FIRST_STEP, NO_ORDER
from estero.engine.runs.tables import Automaton, TableBuilder
from estero.engine.snapshots.columns import Arrays
from estero.engine.snapshots.snapshot import Snapshot, arena_of, live_nodes, numbered_states
from estero.engine.snapshots.sound import check_arena, check_partitions
from estero.engine.store.arena import NONE, Arena, copy_columns, grown, mark_live, move_live, new_arena
from estero.engine.store.hashing import new_table, number_rows, table_of
from estero.engine.tally.tally import Stretch, Tally
from estero.engine.walk.paths import PathCounter
from estero.engine.walk.roots import Roots

ROOM = 256
"""Places in a new pool."""

_SMALLEST_ARENA = 1 << 16
_FEWEST_PARTITIONS = 64
_FEW_KEYS, _MANY_KEYS = 1 << 10, 1 << 15
"""Up to so few keys are kept even if nothing is open there; beyond so many it is seen to which these are.

Measured with 10^6 keys, each of them seldom, in windows of 10,000 events: 205 ns an event where that waited
for a compaction of the nodes, so that most look-ups missed the cache, and 130 this way.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """How events are read.

    `window` is in the unit of the stamps (None: none), `consume` one of the CONSUME codes of `cursor`,
    `gaps` whether events that were dropped as irrelevant count (contiguity), `keyed` whether events
    carry a partition key, `words` the number of bit words. `counting` prepares for `counts` only.

    `registers` are what runs remember and check; `order` is MAX, NEXT or LAST where only such supports stay
    (MAX not with registers), and `visible` bool[label sets] says which marks count for it (none given: all).
    `first_bit` is a bit (k % 63 of word k // 63) to be set on the first event of each stream, which is told
    by its ordinal; in a keyed stream only if `ordinals` says that they are places in the partition, else
    all events of a key must be pushed.
    """

    window: int | None = None
    consume: int = CONSUME_NONE
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
        """Whether runs in one state have to be told apart by registers."""
        return self.registers is not None and self.registers.registers > 0

    @property
    def chooses(self) -> bool:
        """Whether runs are compared, for each window that makes a difference."""
        return self.order != NO_ORDER and not self.split

    @property
    def ranked(self) -> bool:
        """Whether the supports of runs have ranks that are numbers."""
        return self.split and self.order != NO_ORDER

    @property
    def tallied(self) -> bool:
        """Whether a tally can count, instead of that being read off the compact set."""
        alike = not (self.split or self.chooses)
        return self.counting and self.consume == CONSUME_NONE and not self.gaps and alike

    @property
    def remembers_keys(self) -> bool:
        """Whether a key must not be forgotten, because it can tell only so that an event is not its first."""
        return self.first_bit is not None and not self.ordinals


class CeaRuns(ABC):
    """See `recognizer.Runs`. Partitions are numbered from 0; without keys there is one."""

    room = 1 << 16
    needs: ClassVar[tuple[str, ...]]
    """The places in the cursor for room that the kernel can lack, but for nodes."""

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        if settings.first_bit is not None and settings.first_bit // BITS_IN_WORD >= settings.words:
            raise ValueError(f"bit {settings.first_bit} needs more than {settings.words} words")
        self.settings = settings
        self.window, self.consume, self.forgotten = settings.window, settings.consume, 0
        self.arena = new_arena(_SMALLEST_ARENA)
        self._automaton = automaton
        registers = settings.registers.registers if settings.registers is not None else 0
        self._builder = TableBuilder(automaton, registers)
        self._classes = table_of(np.zeros((1, settings.words), np.uint64), 64)
        self._keys = new_table(_FEWEST_PARTITIONS, 2)
        self._most_keys = _MANY_KEYS
        self._partitions = _new_partitions(_FEWEST_PARTITIONS, settings.order)
        self._events = NO_EVENTS
        self._batch_keys = np.empty((0, 2), np.uint64)
        self._one: OneLoaded | None = None
        self._cursor = new_cursor("generation", "miss_state", "miss_class", "need_nodes", *self.needs)
        self.counter = PathCounter(choices=settings.chooses)
        self.tally = Tally(self._builder) if settings.tallied else None
        automaton.class_of(0)

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
        steps = 0 if settings.registers is None else settings.registers.action.size
        if steps > 0 and batch.values.shape[0] != batch.stamps.size:
            raise ValueError("events have no values for the registers")
        if self.window is not None and self._keys.size[0] > self._most_keys:
            self._keep(self._opened(int(starts[0])))
            self._most_keys = max(_MANY_KEYS, 4 * int(self._keys.size[0]))
        known = int(self._keys.size[0])
        partitions = self._partition_numbers(batch)
        words = batch.words
        if settings.first_bit is not None:
            words = words.copy()
            word, bit = divmod(settings.first_bit, BITS_IN_WORD)
            words[self._firsts(batch, partitions, known), word] |= np.uint64(1 << bit)
        classes = self._class_numbers(words)
        values = constant(batch.values, np.int64), constant(batch.valid, np.bool_)
        self._events = Events(classes, partitions, constant(batch.ordinal, np.int64), starts, *values)
        self._batch_keys = batch.partition
        self._cursor["at"], self._cursor["first"] = 0, first
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
        self._cursor["at"], self._cursor["first"] = 0, number

    def advance(self, found: Found, last: int) -> int:
        """See `Runs`: a missing row is worked out."""
        self._cursor["last"] = last
        while (code := self._advance(found)) == MISS:
            self._learn(int(self._cursor["miss_state"]), int(self._cursor["miss_class"]))
        return code

    def _learn(self, state: int, event_class: int) -> None:
        """Works out what is missing, where the kernel says so by these numbers."""
        self._builder.learn(state, event_class)

    def forget(self) -> None:
        """See `Runs`."""
        if self.consume == CONSUME_ANY_ASKED:
            self._cursor["generation"] += 1
        else:
            self._drop(int(self._events.partition[self._cursor["at"] - 1]))

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
            bits = sum(int(word) << (BITS_IN_WORD * place) for place, word in enumerate(words[row]))
            event_class = self._automaton.class_of(bits)
            if event_class != numbers[row]:
                raise RuntimeError(
                    "an automaton serves one recognizer only: its classes were numbered elsewhere"
                )
            self._builder.make_room_for_class(event_class)
            row = number_rows(self._classes, words, numbers, row, insert=False)
        return numbers

    def _partition_numbers(self, batch: EventBatch) -> NDArray[np.int32]:
        if not self.settings.keyed:
            return np.zeros(batch.stamps.size, np.int32)
        return self._numbered(batch.partition)

    def _numbered(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        numbers = np.empty(keys.shape[0], np.int32)
        row = number_rows(self._keys, keys, numbers, insert=True)
        while row < keys.shape[0]:
            used = int(self._keys.size[0])
            self._keys = table_of(self._keys.words[:used], 2 * used)
            self._keep_partitions(slice(None), 2 * used)
            row = number_rows(self._keys, keys, numbers, row, insert=True)
        return numbers

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        """Partition kept[i] becomes number i, with room for more; the others, which are empty, are gone."""
        old = [column[kept] for column in self._partitions]
        self._partitions = _new_partitions(capacity, self.settings.order)
        copy_columns(old, self._partitions, old[0].size)

    def _compact(self, need_nodes: int) -> None:
        """Keeps what the window still reaches; grows the arena only if that is more than half of it."""
        at = int(self._cursor["at"])
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

    def resume(self, snapshot: Snapshot) -> None:
        """See `Runs`. Raises ValueError where a partition is there twice."""
        arrays = dict(snapshot.arrays)
        self._builder.meet(int(snapshot.states.max(initial=0)))
        arrays["state"] = snapshot.states[arrays["state"]]
        count = arrays["opened"].size
        capacity = max(_FEWEST_PARTITIONS, 2 * count)
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
        reset(self._cursor)
        self.counter.forget()
        self.tally = None

    def _opened(self, oldest: int) -> Arrays:
        """The runs inside the window; see `open_runs`."""
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        forgetful = self.consume in (CONSUME_ANY, CONSUME_ANY_ASKED)
        return self._listed(used, int(self._cursor["generation"]) if forgetful else NONE, oldest)

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
    )
