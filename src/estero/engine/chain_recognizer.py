"""Batches of classified events in, run nodes out, for a chain automaton without a window (chain-CEA).

The same use as `pcea_recognizer.PceaRecognizer`, with the same batches: a disequality is between two of the
key columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from estero.engine.pcea_recognizer import PceaBatch
from estero.engine.runs import run_cea, run_chain
from estero.engine.runs.forgotten import (
    NO_PARTITION,
    check_asked,
    forgotten_rows,
    new_forgotten,
    partition_keys,
    with_forgotten,
    with_room_for_one,
)
from estero.engine.runs.run_chain import (
    ChainEvents,
    ChainTables,
    advance_chain,
    drop_run_nodes,
    grown_run_nodes,
    new_chain_fired,
    new_run_nodes,
)
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_chain import chain_pools, chain_snapshot
from estero.engine.snapshots.snapshot_pcea import index_of
from estero.engine.snapshots.sound import check_entries
from estero.engine.snapshots.sound_chain import check_chain
from estero.engine.store.ed_index import drop_entries, grown_entries, new_entries, sequences_of
from estero.engine.store.hash_index import new_index, rebuilt, rename_roots
from estero.engine.walk.enumeration import Enumeration, match_at
from estero.engine.walk.lists import ListCounter, Lists
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots, counts_by_end, new_found, roots_of
from estero.engine.walk.share import Part

_SMALLEST = 1 << 12
_FOUND_ROOM = 1 << 16


class ChainRecognizer:
    """The state of recognition of one chain automaton over one stream.

    The automaton must be unambiguous, else complex events come once for each of their runs. Without a window
    every run that waits is kept. `consume` is one of the CONSUME codes of run_cea, `room` what there is room
    for at first. Raises ValueError where a transition has more than `ed_index.MOST_ATTRIBUTES` disequalities.
    """

    window = None

    def __init__(
        self, tables: ChainTables, *, consume: int = run_cea.CONSUME_NONE, room: int = _SMALLEST
    ) -> None:
        self.tables = tables
        attributes = tables.place_unequal.shape[1]
        self.sequences = sequences_of(attributes)
        self.nodes = new_run_nodes(room, attributes)
        self.entries = new_entries(room, self.sequences)
        self.index = new_index(room)
        self._consume = consume
        self._forgotten = new_forgotten(consume, room)
        self._partition = NO_PARTITION
        self._room = room
        self._fired = new_chain_fired(tables)
        self._found = new_found(min(room, _FOUND_ROOM))
        self.holding = False
        """Whether roots stay valid until the next push begins; what is out of reach waits so long, too."""
        self._held: list[Roots] = []
        self._cursor = np.zeros(run_chain.CURSOR_SIZE, np.int64)
        self._seen = 0
        self._counter = ListCounter()

    @property
    def oldest(self) -> int:
        """The earliest sequence number that a complex event can still hold."""
        return int(self._cursor[run_chain.FORGOTTEN])

    @property
    def seen(self) -> int:
        """How many events were pushed."""
        return self._seen

    @property
    def size(self) -> int:
        """How many nodes and entries are held."""
        return int(self.nodes.size[0] + self.entries.size[0])

    @property
    def idle(self) -> bool:
        """Whether no run waits."""
        used = int(self.nodes.size[0])
        return used == 0 or int(self.nodes.event[used - 1]) < self.oldest

    def expire(self, stamp: int) -> None:
        """Nothing, as there is no window."""

    def snapshot(self) -> Snapshot:
        """What is needed to go on; nothing changes by that."""
        kept = self.nodes, self.entries, self.sequences, self.index
        snapshot = chain_snapshot(self.tables, *kept, self.oldest)
        if self._forgotten is not None:
            rows = forgotten_rows(self._forgotten, self.oldest, snapshot.events)
            snapshot.arrays["forgotten"] = rows
        return snapshot

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless it can go on from a snapshot with label sets 0 … `marks` - 1."""
        arrays, events = snapshot.arrays, snapshot.events.size
        check_chain(arrays, self.tables, self.sequences, events, marks)
        if self._forgotten is not None:
            check_entries(arrays, "forgotten", 1, events)

    def resume(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot of the same automaton."""
        self.nodes, self.entries, self.index = chain_pools(snapshot.arrays, self.sequences, self._room)
        if self._forgotten is not None:
            self._forgotten = index_of(snapshot.arrays["forgotten"], self._room)
        self._cursor[:] = 0
        self._fired.probed[:] = -1
        self._seen = snapshot.events.size
        self._counter.forget()

    def push(self, batch: PceaBatch) -> Iterator[Roots]:
        """Recognises a batch; yields roots whenever some are there. Must be read to its end.

        Raises ValueError where the batch has fewer predicates or key columns than the automaton.
        """
        count = batch.stamps.size
        if count == 0:
            return
        cursor = self._cursor
        cursor[run_chain.AT] = 0
        cursor[run_chain.FIRST] = self._seen
        events = self._events(batch)
        self._partition = events.partition
        self._held.clear()
        self.nodes.size[1] = 0
        while True:
            with np.errstate(over="ignore"):  # hashes wrap around; NumPy would say so where the JIT is off
                code = advance_chain(
                    self.tables,
                    self.sequences,
                    self.nodes,
                    self.entries,
                    self.index,
                    self._forgotten,
                    self._fired,
                    self._found,
                    events,
                    cursor,
                    self._consume,
                )
            if self._found.size[0]:
                yield self._handed_out()
                self._found.size[0] = 0
                if not self.holding:
                    self.nodes.size[1] = 0
            elif code == run_cea.FULL:
                self._found = new_found(2 * self._found.event.size)
            if code == run_cea.DONE:
                break
            if code == run_cea.GROW:
                self._make_room()
        self._seen += count

    def consume(self) -> None:
        """Forgets everything read so far, or what was read of the partition of the event at hand.

        To be called while `push` waits with the roots of one event; they stay valid. Raises ValueError
        unless `consume` is one of the ASKED.
        """
        check_asked(self._consume)
        place = int(self._cursor[run_chain.AT]) - 1
        next_event = int(self._cursor[run_chain.FIRST]) + place + 1
        if self._forgotten is None:
            self._cursor[run_chain.FORGOTTEN] = next_event
        else:
            self._forgotten = with_forgotten(
                self._forgotten, self._partition, place, next_event, oldest=self.oldest, room=self._room
            )

    def matches(
        self, roots: Roots, limit: int | None = None, first_batch: int = 256, part: Part | None = None
    ) -> Enumeration[Lists]:
        """The complex events of `roots`, at most `limit` for each end or a `part`, in batches that grow."""
        return Enumeration(self._lists, self._counter, roots, limit=limit, part=part, first_batch=first_batch)

    def counts(self, roots: Roots, enough: int | None = None) -> list[int]:
        """The number of complex events of each root, exact, or `enough` where there are more."""
        return self._counter.of_roots(self._lists, roots, enough)

    def counts_by_end(self, roots: Roots, limit: int | None = None) -> tuple[NDArray[np.int64], list[int]]:
        """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`."""
        return counts_by_end(roots, limit, self.counts)

    def match_at(self, roots: Roots, place: int, index: int) -> Matches:
        """The complex event number `index` of root number `place`, without enumerating those before it."""
        return match_at(self._lists, self._counter, roots, place, index)

    @property
    def _lists(self) -> Lists:
        return Lists(self.nodes, self.entries, self.sequences, self.tables.place_width)

    def _events(self, batch: PceaBatch) -> ChainEvents:
        predicates = self.tables.first_fired.size - 1
        columns = self.tables.columns
        if run_chain.BITS_IN_WORD * batch.words.shape[1] < predicates:
            raise ValueError(f"{batch.words.shape[1]} words are too few for {predicates} predicates")
        if min(batch.keys.shape[1], batch.known.shape[1]) < columns:
            raise ValueError(f"the automaton reads {columns} key columns, the batch has fewer")
        return ChainEvents(
            np.ascontiguousarray(batch.words, np.uint64),
            np.ascontiguousarray(batch.keys, np.uint64),
            np.ascontiguousarray(batch.known, np.bool_),
            partition_keys(self._forgotten, batch.partition, batch.stamps.size),
        )

    def _make_room(self) -> None:
        """Makes the room that the kernel asked for; what is forgotten goes first."""
        nodes, entries, slots = (
            int(self._cursor[need])
            for need in (run_chain.NEED_NODES, run_chain.NEED_ENTRIES, run_chain.NEED_SLOTS)
        )
        if self._forgotten is not None:
            self._forgotten = with_room_for_one(self._forgotten, self.oldest, self._room)
        if 2 * (self.index.used[0] + slots) > self.index.words.shape[0]:
            self.index = rebuilt(self.index, self.oldest, max(slots, self._room))
        used, used_entries = int(self.nodes.size.sum()), int(self.entries.size[0])
        if used + nodes > self.nodes.mark.size or used_entries + entries > self.entries.node.size:
            if not self.holding:
                self._drop_forgotten()
            self._grow(nodes, entries)

    def _drop_forgotten(self) -> None:
        """Lists go back to the first event that is not forgotten, so what is kept is a suffix."""
        first = int(np.searchsorted(self.nodes.event[: self.nodes.size[0]], self.oldest))
        if first == 0:
            return
        used_entries = int(self.entries.size[0])
        first_entry = int(np.searchsorted(self.entries.node[:used_entries], first))
        moved = np.arange(-first_entry, used_entries - first_entry)
        drop_entries(self.entries, first_entry, first)
        drop_run_nodes(self.nodes, first, first_entry)
        rename_roots(self.index, self.oldest, moved)
        self._counter.forget()

    def _grow(self, nodes: int, entries: int) -> None:
        """Sees to it that no more than half of anything is in use, with the room that is needed."""
        needed = int(self.nodes.size.sum()) + nodes
        if 2 * needed > self.nodes.mark.size:
            self._grow_nodes(3 * needed)
        needed = int(self.entries.size[0]) + entries
        if 2 * needed > self.entries.node.size:
            self.entries = grown_entries(self.entries, 3 * needed, self.sequences)

    def _grow_nodes(self, room: int) -> None:
        """Makes room; nodes that only end stay last, so that those who hold them hold other numbers then."""
        old, ended = self.nodes, int(self.nodes.size[1])
        self.nodes = grown_run_nodes(old, room)
        for name in ("mark", "event", "place", "head", "newest", "values"):
            getattr(self.nodes, name)[room - ended :] = getattr(old, name)[old.mark.size - ended :]
        self.nodes.size[1] = ended
        for roots in self._held:
            roots.root[roots.root >= old.mark.size - ended] += room - old.mark.size

    def _handed_out(self) -> Roots:
        """What was found. Unless it is held, nodes that only end are forgotten once it is read."""
        roots = roots_of(self._found, copied=self.holding)
        if self.holding:
            self._held.append(roots)
        return roots
