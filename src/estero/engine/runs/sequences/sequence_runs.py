"""Runs of a sequence by stages: what `run_sequences` works on, how it grows, and its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported, reset, taken_needs
from estero.engine.runs.sequences import run_sequences
from estero.engine.runs.sequences.run_sequences import (
    DROPPED,
    KEPT,
    PENDING,
    WAITS,
    Pending,
    SequenceTables,
    advance_sequences,
    relist,
)
from estero.engine.runs.sequences.stage_runs import StageRuns, with_room
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import index_of, index_rows, waits
from estero.engine.snapshots.sound import check_arena, check_index
from estero.engine.store.arena import NONE, Arena, mark_live, move_live
from estero.engine.store.checks import need
from estero.engine.store.hash_index import START, TAG, HashIndex, mark_roots, new_index, rebuilt, rename_roots
from estero.engine.store.schema import EVENTS, ROWS, check, count_written, grown, new, read, written
from estero.engine.walk.roots import Roots

_HALF = np.int64(32)
_LOWER = np.uint64((1 << 32) - 1)


class SequenceRuns(StageRuns):
    """See `Runs`. Raises ValueError if events must be missing at an end and there is no window."""

    cursor_kind: ClassVar[Any] = run_sequences.Cursor

    def __init__(self, tables: SequenceTables, window: int | None) -> None:
        if window is None and tables.leading_bit.size + tables.trailing_bit.size:
            raise ValueError("what is missing at an end of a sequence needs a window")
        bits = tables.bit, tables.gap_bit, tables.leading_bit, tables.trailing_bit, tables.until_bit
        keys = tables.key, tables.gap_key, tables.leading_key, tables.trailing_key, tables.until_key
        super().__init__(bits, keys, window)
        self.tables = tables
        self.decides_later = bool(tables.trailing_bit.size)
        marking = tables.leading_bit.size or self.decides_later
        self.marks: HashIndex = new_index(self.capacity if marking else 1)
        self.pending: Pending = new(Pending, self.capacity if self.decides_later else 1)

    def advance(self, reported: Reported, last: int) -> int:
        self._cursor.last = last
        read_ = self.tables, self.arena, self.index, self.marks, self.pending
        return int(advance_sequences(*read_, self._events, reported, self._cursor))

    def decide(self, until: int) -> None:
        self._cursor.decided = max(int(self._cursor.decided), until)

    def needed_from(self, oldest: int) -> int:
        """See `Runs`. Pending results may wait for those that end before them."""
        first, last = self._pending_rows
        roots = self.pending.root[first:last]
        return min(oldest, int(self.arena.start[roots].min(initial=oldest)))

    @property
    def _pending_rows(self) -> tuple[int, int]:
        """The first pending row, and the one after the last."""
        return int(self.pending.size[1]), int(self.pending.size[0])

    @property
    def size(self) -> int:
        return super().size + int(self.marks.used[0] + self.pending.size[0])

    def idle(self, oldest: int) -> bool:
        first, last = self._pending_rows
        return first == last and not waits(self.index, None, oldest) and not waits(self.marks, None, oldest)

    # ------------------------------------------------------------------------------------- capacity

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        needed = taken_needs(self._cursor)
        oldest = int(self._events.oldest[self._cursor.at])
        self.index = with_room(self.index, needed["entries"], oldest, self.capacity)
        self.marks = with_room(self.marks, needed["marks"], oldest, self.capacity)
        if self.pending.size[0] + needed["pending"] > self.pending.root.size:
            self._grow_pending(needed["pending"])
        if self.arena.size[0] + needed["nodes"] > self.arena.kind.size:
            if held is None:
                self._compact(oldest)
            rows = 2 * (int(self.arena.size[0]) + needed["nodes"])
            if rows > self.arena.kind.size:
                self.arena = grown(self.arena, rows=2 * rows)

    def _grow_pending(self, rows: int) -> None:
        """Drops reported results, and provides `rows` more."""
        first, last = self._pending_rows
        kept = last - first
        capacity = max(self.pending.root.size, 2 * (kept + rows))
        old, self.pending = self.pending, new(Pending, capacity)
        for name in ("root", "limit", "state", "key"):
            getattr(self.pending, name)[:kept] = getattr(old, name)[first:last]
        self.pending.size[0] = kept
        self._relist()

    def _relist(self) -> None:
        """Rebuilds the lists of pending results by key."""
        of_lists = self.marks.entries[:, TAG] >> _HALF == PENDING + 1
        self.marks.entries[of_lists, START] = NONE
        waiting = int(self.pending.size[0])
        if 2 * (self.marks.used[0] + waiting) > self.marks.words.shape[0]:
            self.marks = rebuilt(self.marks, 0, max(waiting, self.capacity))
        relist(self.arena, self.marks, self.pending)

    def _compact(self, oldest: int) -> None:
        """Keeps the nodes that are inside the window or pending."""
        self.compactions += 1
        moved = self._moved(self.arena, oldest)
        rename_roots(self.index, oldest, moved)
        first, last = self._pending_rows
        self.pending.root[first:last] = moved[self.pending.root[first:last]]
        self.counter.forget()

    def _moved(self, arena: Arena, oldest: int) -> NDArray[np.int32]:
        """Compacts the nodes in reach; returns the new number of each."""
        size = int(arena.size[0])
        live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
        mark_roots(self.index, oldest, live)
        first, last = self._pending_rows
        mark_live(arena, np.ascontiguousarray(self.pending.root[first:last]), oldest, live)
        move_live(arena, live, moved)
        return moved

    # ------------------------------------------------------------------------- stopping and going on

    def snapshot(self, oldest: int) -> Snapshot:
        arena = grown(self.arena, rows=int(self.arena.size[0]))
        moved = self._moved(arena, oldest)
        first, last = self._pending_rows
        state, limit = self.pending.state[first:last], self.pending.limit[first:last]
        waits_on = (state == WAITS) & (limit >= oldest)
        state = np.where((state == WAITS) & ~waits_on, KEPT, state)
        limit = np.where(waits_on, limit, NONE)
        marked = self._marked(oldest)
        nodes = arena.event[: arena.size[0]]
        events = np.unique(np.concatenate((nodes, marked.entries[:, START], limit[limit != NONE])))
        arrays = written(arena, "arena", events)
        arrays["index"] = index_rows(self.index, oldest, moved, events)
        arrays["marks"] = index_rows(marked, oldest, np.zeros(1, np.int32), events)
        if self.decides_later:
            pending = new(Pending, last - first)
            pending.state[:], pending.key[:] = state, self.pending.key[first:last]
            pending.root[:] = moved[self.pending.root[first:last]]
            pending.limit[:], pending.next[:], pending.size[0] = limit, NONE, last - first
            arrays |= written(pending, "pending", events)
            arrays["pending.limit"] = np.where(limit == NONE, NONE, np.searchsorted(events, limit))
        return Snapshot(events, np.empty(0, np.int32), arrays)

    def _marked(self, oldest: int) -> HashIndex:
        """The entries of the index of marks that are no lists."""
        entries = self.marks.entries
        kept = (entries[:, START] >= oldest) & (entries[:, TAG] >> _HALF > PENDING + 1)
        words = self.marks.words[kept]
        return HashIndex(words, words.view(np.int64), self.marks.used)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        arrays, events, stages = snapshot.arrays, snapshot.events.size, self.tables.bit.size
        nodes = check_arena(arrays, events, marks)
        need(arrays["arena.kind"] >= 0, "nodes mark an event")
        check_index(arrays, "index", nodes, events)
        check_index(arrays, "marks", 1, events)
        rows = arrays["index"]
        need(rows[:, TAG] >> np.uint64(_HALF) < stages, "candidates are at a stage")
        need(rows[:, START] == arrays["arena.start"][rows[:, TAG] & _LOWER], "candidates start as nodes do")
        if self.decides_later:
            size = count_written(Pending, "pending", arrays)
            pending = check(
                Pending, "pending", arrays, {"pending": size, "arena": nodes, EVENTS: events, ROWS: size}
            )
            need((pending.state >= 0) & (pending.state <= DROPPED), "results are pending in a state")

    def resume(self, snapshot: Snapshot) -> None:
        arrays = snapshot.arrays
        self.arena = read(Arena, "arena", arrays, self.capacity)
        self.index = index_of(arrays["index"], self.capacity)
        self.marks = index_of(arrays["marks"], self.capacity)
        reset(self._cursor)
        self.counter.forget()
        if self.decides_later:
            self.pending = read(Pending, "pending", arrays, self.capacity)
            self._relist()
