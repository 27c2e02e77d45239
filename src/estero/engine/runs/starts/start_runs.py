"""Runs where each start has one answer, the one with its last or first end (LONGEST, SHORTEST).

First pass: the last, or first, end of each start, without regard to marks (`groups`). Second pass, only over
what is reported: the marks between a start and its end (`replay`). What DISJOINT keeps shares no events, so
both passes are linear in the events.

The first end of a start is known when it is read, the last one when the window has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, EventBatch
from estero.engine.cursor import DONE, FULL, GROW, MISS, Reported, reset, taken_needs
from estero.engine.runs.cea_runs import CAPACITY
from estero.engine.runs.numbered_events import FEWEST_PARTITIONS, NumberedEvents, Settings
from estero.engine.runs.spans.spans import free_members
from estero.engine.runs.starts import groups, replay
from estero.engine.runs.starts.groups import (
    DISJOINT_IN_PARTITIONS,
    NOT_DISJOINT,
    Decided,
    Groups,
    History,
    Tracks,
)
from estero.engine.runs.starts.replay import Pairs, Replayed
from estero.engine.runs.tables import Automaton, TableBuilder
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.checks import Arrays, need, taken, within
from estero.engine.store.hashing import table_of
from estero.engine.store.schema import STATES, grown, new, picked, with_free, with_sizes
from estero.engine.walk.paths import PathCounter
from estero.engine.walk.roots import Roots

_SMALLEST_ARENA, _LARGEST_AT_ONCE = 1 << 16, 1 << 20
"""The capacity for nodes at first, and the greatest before the reported roots have to be read."""
_FEWEST_EVENTS = 1 << 12
_FORGOTTEN_AT_ONCE = 1 << 16
"""The number of events that are kept in any case before those out of reach are dropped."""


class ByStart(NamedTuple):
    """The choice for each start: its last end or the first, and how starts exclude each other.

    `limit` is the most complex events wanted of an end.
    """

    longest: bool
    disjoint: int = NOT_DISJOINT
    limit: int | None = None


class StartRuns(NumberedEvents):
    """See `Runs`; `unmarked` is the automaton without its marks, with the same classes.

    With `in_order` roots come in the order of their ends, which is delayed until no start before an end is
    open. Otherwise, decided ones are reported after each `decide`, in that order each time.
    """

    capacity = 1 << 16
    decides_later = True

    def __init__(
        self, automaton: Automaton, unmarked: Automaton, settings: Settings, chosen: ByStart
    ) -> None:
        super().__init__(automaton, settings)
        self.window: int | None = settings.window
        states = self._builder.tables.accepts.size
        self._replayed = new(Replayed, CAPACITY, arena=_SMALLEST_ARENA, **{STATES: states})
        self.counter: PathCounter = PathCounter()
        self._cursor = groups.Cursor()
        self._chosen = chosen
        self._unmarked = unmarked
        self._reach = TableBuilder(unmarked)
        unmarked.class_of(0)
        self._history = new(History, _FEWEST_EVENTS)
        self._events_known = 0
        self._groups = new(Groups, CAPACITY)
        self._tracks = new(Tracks, FEWEST_PARTITIONS)
        self._decided = new(Decided, _FEWEST_EVENTS)
        self._visible = np.array([] if settings.visible is None else settings.visible, np.bool_)
        self._oldest = np.empty(0, np.int64)
        self._waiting = _NO_PAIRS
        self._deciding = False
        self._pairs = _pairs_of(_NO_PAIRS)
        self._start_over()

    def _start_over(self) -> None:
        reset(self._cursor)
        for name in ("until", "reading", "member"):
            setattr(self._cursor, name, NONE)

    # ----------------------------------------------------------------------------------------- reading

    @property
    def size(self) -> int:
        return self._events_known + int(self._keys.size[0])

    def needed_from(self, oldest: int) -> int:
        return min(oldest, int(self._cursor.origin) + self._first_needed)

    @property
    def _first_needed(self) -> int:
        """The first event that is still needed."""
        return min(int(self._cursor.decided), int(self._waiting[0].min(initial=self._events_known)))

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        cursor = self._cursor
        if 2 * self._first_needed > self._events_known > _FORGOTTEN_AT_ONCE:
            self._forget_events()
        self._append(*self._numbers_of(batch), batch.ordinal)
        self._oldest = np.ascontiguousarray(starts, np.int64)
        self._deciding = False
        cursor.behind = first - cursor.origin
        cursor.at, cursor.first = 0, first

    def _class_numbers(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        numbers = super()._class_numbers(words)
        known = int(self._classes.size[0])
        for row in range(self._classes_met, known):
            bits = sum(
                int(word) << (BITS_IN_WORD * place) for place, word in enumerate(self._classes.words[row])
            )
            self._reach.ensure_column(self._unmarked.class_of(bits))
        self._classes_met = known
        return numbers

    _classes_met = 0

    def _append(
        self, classes: NDArray[np.int32], partitions: NDArray[np.int32], ordinals: NDArray[np.int64]
    ) -> None:
        """Appends events, in which no run begins so far."""
        first, last = self._events_known, self._events_known + classes.size
        history = self._history
        if last > history.event_class.size:
            self._history = history = grown(history, rows=2 * last)
            self._decided = grown(self._decided, rows=2 * last)
        here = slice(first, last)
        history.event_class[here], history.partition[here] = classes, partitions
        history.ordinal[here] = ordinals if ordinals.size else np.arange(first, last)
        for column in (history.following, history.parent, history.last, history.chain):
            column[here] = NONE
        self._events_known = last
        groups.link(history, self._tracks, first, last)

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        self._tracks = picked(self._tracks, kept, capacity)

    def advance(self, reported: Reported, last: int) -> int:
        """See `Runs`. First the decided starts are reported, then the next events are read."""
        self._cursor.last = last
        while True:
            code = self._replay(reported)
            if code != DONE:
                return code
            if (self.in_order or self._deciding) and self._release():
                continue
            if self._cursor.at >= last:
                return DONE
            self._follow()
            self._take_decided()

    def _follow(self) -> None:
        """Reads the events before `cursor.last`."""
        chosen = self._chosen
        how = self.settings.gaps, chosen.longest, chosen.disjoint
        while True:
            pools = self._history, self._groups, self._tracks, self._decided, self._oldest
            code = groups.follow(self._reach.tables, *pools, self._cursor, *how)
            if code == MISS:
                self._reach.learn(int(self._cursor.miss_state), int(self._cursor.miss_class))
            elif code == GROW:
                needed = taken_needs(self._cursor)
                self._groups = with_free(self._groups, needed["groups"])
            else:
                return

    def decide(self, until: int) -> None:
        """Decides the starts before event number `until` with the ends that they have."""
        cursor = self._cursor
        known = self._events_known
        place = min(until - int(cursor.origin), known)
        pools = self._history, self._tracks, self._decided
        groups.decide(*pools, cursor, place, known, self._chosen.longest, self._chosen.disjoint)
        self._take_decided()
        self._deciding = True

    def _take_decided(self) -> None:
        """Moves the decided starts to those that wait to be reported."""
        size = int(self._decided.size[0])
        if size:
            start, end = self._waiting
            start = np.concatenate((start, self._decided.start[:size]))
            self._waiting = start, np.concatenate((end, self._decided.end[:size]))
            self._decided.size[0] = 0

    @property
    def _waits_for_others(self) -> bool:
        """Whether starts decided later may end before those decided now, or at the same event.

        If first ends count, they are decided when they are read, or in ascending order of starts that share
        no events in the stream or partition to which DISJOINT applies.
        """
        if self._chosen.longest:
            return self.in_order or self._chosen.limit is not None
        return self.in_order and self._chosen.disjoint == DISJOINT_IN_PARTITIONS

    def _release(self) -> bool:
        """Makes pairs of the decided starts that may be reported; returns whether there are any."""
        start, end = self._waiting
        if not start.size:
            return False
        ready = np.ones(start.size, np.bool_)
        if self._waits_for_others:
            ready = end < self._cursor.decided
        self._waiting = start[~ready], end[~ready]
        start, end = start[ready], end[ready]
        order = np.lexsort((start, end))
        start, end = start[order], end[order]
        if self._chosen.limit is not None and start.size:
            begins = np.flatnonzero(np.diff(end, prepend=-1))
            place = np.arange(end.size) - np.repeat(begins, np.diff([*begins.tolist(), end.size]))
            start, end = start[place < self._chosen.limit], end[place < self._chosen.limit]
        self._pairs = _pairs_of((start, end))
        self._cursor.pair = 0
        return bool(start.size)

    # --------------------------------------------------------------------------------------- replaying

    def _replay(self, reported: Reported) -> int:
        """Finds the marks of the pairs; DONE, or FULL or GROW if roots have to be read first."""
        cursor, together = self._cursor, self._chosen.limit is not None
        while True:
            tables = self._builder.tables
            if tables.accepts.size > self._replayed.made.where.size:
                self._replace(made=with_sizes(self._replayed.made, states=tables.accepts.size))
            read = self._pairs, reported, cursor, self.settings.gaps, together, self._visible
            code = int(replay.replay(tables, self._history, self._replayed, *read))
            if code == DONE:
                return DONE
            if code == MISS:
                self._builder.learn(int(cursor.miss_state), int(cursor.miss_class))
            elif code == FULL:
                if together:
                    self._go_back(reported)
                return FULL
            elif cursor.need_nodes and cursor.began_nodes:
                self._go_back(reported)  # the nodes of earlier ones can be dropped once they are read
                return GROW
            else:
                self._enlarge_pools(taken_needs(cursor))

    def _go_back(self, reported: Reported) -> None:
        """Restarts the current pair, or all pairs of its end if these have to stay together."""
        cursor = self._cursor
        free_members(self._replayed.members, np.int32(cursor.member))
        cursor.pair, cursor.reading, cursor.member = cursor.began, NONE, NONE
        reported.size[0] = cursor.began_reported

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        needed = taken_needs(self._cursor)
        if not held:
            self._forget_nodes()
        if held or self.arena.kind.size < _LARGEST_AT_ONCE:
            self._grow_arena(needed["nodes"])

    def _enlarge_pools(self, needed: dict[str, int]) -> None:
        if needed["nodes"]:
            self._grow_arena(needed["nodes"])
        made = with_sizes(self._replayed.made, rows=needed["made"])
        self._replace(made=made, members=with_free(self._replayed.members, needed["members"]))

    def _grow_arena(self, nodes: int) -> None:
        self._replace(arena=grown(self.arena, rows=2 * (self.arena.kind.size + nodes)))

    def _replace(self, **pools: Any) -> None:
        self._replayed = self._replayed._replace(**pools)

    def _forget_nodes(self) -> None:
        """Drops the nodes, since the roots have been read."""
        if self.arena.size[0]:
            self.arena.size[0] = 0
            self.counter.forget()

    # ------------------------------------------------------------------------- stopping and going on

    def _open(self, first: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The states and ends of the runs that begin from event `first` on; see `groups.list_open`."""
        last = self._events_known
        above, state, end = np.empty(last, np.int32), *(np.empty(last - first, np.int32) for _ in range(2))
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        groups.list_open(self._history, self._groups, self._tracks, used, first, last, above, state, end)
        return state, end

    def _put(self, state: NDArray[np.int32], end: NDArray[np.int32], begun: NDArray[np.bool_]) -> None:
        """Replaces all runs by these, where they have `begun`; the partitions of events are already there."""
        size = begun.size
        history = self._history
        self._tracks.first[:] = NONE
        self._groups = new(Groups, max(CAPACITY, self._groups.next.size, size))
        history.parent[:size] = np.where(begun, 0, NONE)
        history.last[:size] = np.where(begun & (end != NONE), end, NONE)
        groups.put_open(history, self._groups, self._tracks, size, state)

    def _forget_events(self) -> None:
        """Drops the events that are no longer needed."""
        self.compactions += 1
        first, last = self._first_needed, self._events_known
        history, tracks, cursor = self._history, self._tracks, self._cursor
        state, end = self._open(first)
        begun = history.parent[first:last] != NONE
        size = last - first
        for column in (history.event_class, history.partition, history.ordinal):
            column[:size] = column[first:last].copy()
        history.following[:size] = np.maximum(history.following[first:last] - first, NONE)
        for moved in (tracks.newest, tracks.until):
            np.maximum(moved - first, NONE, out=moved)
        numbers, places = np.unique(history.partition[:size], return_index=True)
        tracks.undecided[:] = NONE
        tracks.undecided[numbers] = places
        self._events_known = size
        self._put(state, np.maximum(end - first, NONE), begun)
        self._waiting = self._waiting[0] - np.int32(first), self._waiting[1] - np.int32(first)
        cursor.origin += first
        cursor.decided -= first
        cursor.until = max(int(cursor.until) - first, NONE)

    def idle(self, oldest: int) -> bool:
        if self._waiting[0].size or (self.settings.remembers_keys and self._keys.size[0] > 0):
            return False
        state, end = self._open(max(int(self._cursor.decided), oldest - int(self._cursor.origin)))
        return not ((state != NONE) | (end != NONE)).any()

    def snapshot(self, oldest: int) -> Snapshot:
        """See `Runs`. Holds the events that may still be reported, by bits, and the runs that begin there."""
        del oldest  # what has left the window is decided
        first, last = self._first_needed, self._events_known
        history, tracks = self._history, self._tracks
        state, end = self._open(first)
        begun = history.parent[first:last] != NONE
        begun[: int(self._cursor.decided) - first] = False
        partition = history.partition[first:last]
        used = int(self._keys.size[0]) if self.settings.keyed else 1
        kept = (
            np.arange(used)
            if not self.settings.keyed or self.settings.remembers_keys
            else np.unique(partition)
        )
        known = np.unique(state[begun & (state != NONE)])
        place = np.where(begun & (state != NONE), np.searchsorted(known, state), NONE)
        arrays: Arrays = {
            "words": self._classes.words[history.event_class[first:last]],
            "begun": begun.astype(np.int8),
            "runs.state": place.astype(np.int32),
            "end": np.where(begun, np.maximum(end - first, NONE), NONE).astype(np.int32),
            "until": np.maximum(tracks.until[kept] - first, NONE),
            "until_all": np.array([max(int(self._cursor.until) - first, NONE)], np.int32),
            "waiting": np.column_stack(self._waiting).astype(np.int32) - np.int32(first),
        }
        if self.settings.keyed:
            arrays["partition"] = self._keys.words[kept]
            arrays["of_partition"] = np.searchsorted(kept, partition).astype(np.int32)
        if self.settings.gaps:
            arrays["ordinal"] = history.ordinal[first:last]
            arrays["reached"] = tracks.ordinal[kept]
        events = np.arange(first, last) + int(self._cursor.origin)
        return Snapshot(events, known.astype(np.int32), arrays)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        del marks  # nothing is marked yet
        arrays, size = snapshot.arrays, snapshot.events.size
        taken(arrays, "words", np.uint64, size, self.settings.words)
        begun = taken(arrays, "begun", np.int8, size) != 0
        state, end = (taken(arrays, name, np.int32, size) for name in ("runs.state", "end"))
        within(state, NONE, snapshot.states.size, "states")
        within(end, NONE, size, "ends")
        need(begun | ((state == NONE) & (end == NONE)), "only runs that have begun have states and ends")
        need((end == NONE) | (end >= np.arange(size)), "runs end where they begin, or later")
        partitions = 1
        partition = np.zeros(size, np.int32)
        if self.settings.keyed:
            partitions = taken(arrays, "partition", np.uint64, None, 2).shape[0]
            partition = taken(arrays, "of_partition", np.int32, size)
            within(partition, 0, partitions, "partitions")
        within(taken(arrays, "until", np.int32, partitions), NONE, size, "ends of what was kept")
        within(taken(arrays, "until_all", np.int32, 1), NONE, size, "ends of what was kept")
        waiting = taken(arrays, "waiting", np.int32, None, 2)
        within(waiting, 0, size, "what waits")
        need(waiting[:, 0] <= waiting[:, 1], "what waits ends where it starts, or later")
        need(partition[waiting[:, 0]] == partition[waiting[:, 1]], "what waits is in one partition")
        ended = end != NONE
        need(partition[ended] == partition[end[ended]], "a run is in one partition")
        if self.settings.gaps:
            taken(arrays, "ordinal", np.int64, size)
            taken(arrays, "reached", np.int64, partitions)

    def resume(self, snapshot: Snapshot) -> None:
        """See `Runs`. Raises ValueError if a partition occurs twice."""
        arrays, size = snapshot.arrays, snapshot.events.size
        self._reach.meet(int(snapshot.states.max(initial=0)))
        capacity = FEWEST_PARTITIONS
        partition = np.zeros(size, np.int32)
        if self.settings.keyed:
            count = arrays["partition"].shape[0]
            capacity = max(capacity, 2 * count)
            self._keys = table_of(arrays["partition"], capacity)
            if int(self._keys.size[0]) != count:
                raise ValueError("a partition is there twice")
            partition = arrays["of_partition"]
        self._tracks = new(Tracks, capacity)
        self._history = new(History, max(_FEWEST_EVENTS, 2 * size))
        self._decided = new(Decided, self._history.event_class.size)
        self._events_known = 0
        self._start_over()
        ordinal = arrays["ordinal"] if self.settings.gaps else np.arange(size)
        self._append(self._class_numbers(arrays["words"]), partition, ordinal)
        numbers = np.append(snapshot.states, NONE).astype(np.int32)
        self._put(numbers[arrays["runs.state"]], arrays["end"], arrays["begun"] != 0)
        kept = arrays["until"].size
        self._tracks.until[:kept] = arrays["until"]
        if self.settings.gaps:
            self._tracks.ordinal[:kept] = arrays["reached"]
        self._cursor.until = int(arrays["until_all"][0])
        self._waiting = arrays["waiting"][:, 0].copy(), arrays["waiting"][:, 1].copy()
        self._pairs = _pairs_of(_NO_PAIRS)
        self._forget_nodes()

    # ------------------------------------------------------------------------- reading what was found

    @property
    def compact(self) -> Arena:
        return self.arena

    @property
    def arena(self) -> Arena:
        """The nodes of the compact set."""
        return self._replayed.arena


_Pair = tuple[NDArray[np.int32], NDArray[np.int32]]
_NO_PAIRS: _Pair = (np.empty(0, np.int32), np.empty(0, np.int32))


def _pairs_of(pairs: _Pair) -> Pairs:
    return Pairs(*pairs, np.array([pairs[0].size]))
