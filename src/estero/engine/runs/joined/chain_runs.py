"""Runs of a chain automaton without a window (chain-CEA): what `run_chain` works on, and how it grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch
from estero.engine.cursor import CONSUME_NONE, Reported, taken_needs
from estero.engine.runs.joined import run_chain
from estero.engine.runs.joined.run_chain import (
    ChainFired,
    ChainTables,
    advance_chain,
    new_chain_fired,
)
from estero.engine.runs.keyed_runs import LEAST_CAPACITY, KeyedRuns
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_chain import chain_snapshot, check_chain, drop_before
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import EdEntries, Sequences, sequences_of
from estero.engine.store.hash_index import rename_roots
from estero.engine.store.run_nodes import RunNodes
from estero.engine.store.schema import grown, kept_columns, new, read
from estero.engine.walk.list_counts import Lists
from estero.engine.walk.lists import ListCounter
from estero.engine.walk.roots import Roots


class ChainRuns(KeyedRuns):
    """See `KeyedRuns`. Without a window every waiting run is kept.

    Raises ValueError if a transition has more than `ed_index.MOST_ATTRIBUTES` disequalities.
    """

    cursor_kind = run_chain.Cursor

    def __init__(
        self, tables: ChainTables, *, consume: int = CONSUME_NONE, capacity: int = LEAST_CAPACITY
    ) -> None:
        super().__init__(None, consume, capacity)
        self.tables: ChainTables = tables
        attributes = tables.place_unequal.shape[1]
        self.sequences: Sequences = sequences_of(attributes)
        self.nodes: RunNodes = new(RunNodes, capacity, attributes=attributes)
        pointers = self.sequences.last.size - 1
        self.entries: EdEntries = new(EdEntries, capacity, attributes=attributes, pointers=pointers)
        self._fired: ChainFired = new_chain_fired(tables)
        self.counter = ListCounter(1 << attributes)

    @property
    def size(self) -> int:
        """The number of nodes and entries held."""
        return int(self.nodes.size[0] + self.entries.size[0])

    @property
    def compact(self) -> Lists:
        return Lists(self.nodes, self.entries, self.sequences, self.tables.place_width)

    @property
    def needed(self) -> int:
        first, first_entry = self._first_kept()
        kept = self.nodes.event[first : self.nodes.size[0]]
        events = int(np.count_nonzero(np.diff(kept, prepend=NONE)))
        return kept.size + int(self.entries.size[0]) - first_entry + events

    def idle(self, oldest: int) -> bool:  # noqa: ARG002 - there is no window
        used = int(self.nodes.size[0])
        return used == 0 or int(self.nodes.event[used - 1]) < self.forgotten

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        super().load(batch, starts, first)
        self.nodes.size[1] = 0

    def advance(self, reported: Reported, last: int) -> int:
        self._cursor.last = last
        read = self._fired, reported, self._events, self._cursor, self.consume
        return int(advance_chain(self.tables, self.compact, self.index, self._forgotten, *read))

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        """See `Runs`. Nodes that only end are dropped once they are read, unless they are held."""
        needed = taken_needs(self._cursor)
        self._ensure_index_capacity(needed["slots"], self.forgotten)
        if held is None:
            self.nodes.size[1] = 0
        nodes = int(self.nodes.size.sum()) + needed["nodes"]
        entries = int(self.entries.size[0]) + needed["entries"]
        if nodes > self.nodes.mark.size or entries > self.entries.node.size:
            if held is None:
                self._drop_forgotten()
            self._grow(needed["nodes"], needed["entries"], held or [])

    def _drop_forgotten(self) -> None:
        """Drops what is forgotten. Lists go back to the first event that is not, so the rest is a suffix."""
        first, first_entry = self._first_kept()
        if first == 0:
            return
        self.compactions += 1
        used_entries = int(self.entries.size[0])
        moved = np.arange(-first_entry, used_entries - first_entry, dtype=np.int32)
        drop_before(self.nodes, self.entries, first, first_entry)
        rename_roots(self.index, self.forgotten, moved)
        self.counter.forget()

    def _first_kept(self) -> tuple[int, int]:
        """The first node and the first entry that are not forgotten."""
        node = int(np.searchsorted(self.nodes.event[: self.nodes.size[0]], self.forgotten))
        return node, int(np.searchsorted(self.entries.node[: self.entries.size[0]], node))

    def _grow(self, nodes: int, entries: int, held: Sequence[Roots]) -> None:
        """Enlarges pools until the used and the needed rows take no more than half of each."""
        needed = int(self.nodes.size.sum()) + nodes
        if 2 * needed > self.nodes.mark.size:
            self._grow_nodes(3 * needed, held)
        needed = int(self.entries.size[0]) + entries
        if 2 * needed > self.entries.node.size:
            self.entries = grown(self.entries, rows=3 * needed)

    def _grow_nodes(self, rows: int, held: Sequence[Roots]) -> None:
        """Enlarges the pool of nodes to `rows`; those that only end stay last, also in held roots."""
        old, ended = self.nodes, int(self.nodes.size[1])
        self.nodes = grown(old, rows=rows)
        for _, field, _ in kept_columns(RunNodes, ""):
            getattr(self.nodes, field)[rows - ended :] = getattr(old, field)[old.mark.size - ended :]
        self.nodes.size[1] = ended
        for roots in held:
            roots.root[roots.root >= old.mark.size - ended] += rows - old.mark.size

    # ------------------------------------------------------------------------- stopping and going on

    def _opened(self, oldest: int) -> Snapshot:
        return chain_snapshot(self.compact, self.index, oldest)

    def _check_opened(self, snapshot: Snapshot, marks: int) -> None:
        check_chain(snapshot.arrays, self.compact, snapshot.events.size, marks)

    def _put(self, snapshot: Snapshot) -> None:
        self.nodes = read(RunNodes, "nodes", snapshot.arrays, self.capacity)
        self.entries = read(EdEntries, "entries", snapshot.arrays, self.capacity)
        self.counter.forget()
