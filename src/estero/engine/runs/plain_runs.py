"""Runs that are told apart by their state alone: the arrays of `run_cea`, and how they grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Found
from estero.engine.runs import run_cea
from estero.engine.runs.cea_runs import ROOM, CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.run_cea import Plain, new_entries, new_pending
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.columns import Arrays
from estero.engine.snapshots.open_runs import plain_arrays, plain_pools
from estero.engine.snapshots.sound import check_plain_runs
from estero.engine.store.pools import with_free
from estero.engine.store.tecs import new_cells


class PlainRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind = run_cea.Cursor

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        self._cells = new_cells(ROOM)
        self._entries = new_entries(ROOM)
        self._pending = new_pending(ROOM, self._builder.tables.accepts.size)

    @property
    def _pools(self) -> Plain:
        return Plain(self.arena, self._cells, self._entries, self._partitions, self._pending)

    def _advance(self, found: Found) -> int:
        tables = self._builder.tables
        if tables.accepts.size > self._pending.where.size:
            self._pending = new_pending(self._pending.entry.size, tables.accepts.size)
        read = found, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_cea.advance(tables, self._pools, *read))

    def _make_room(self, needed: dict[str, int]) -> None:
        if needed["pending"] > self._pending.entry.size:
            self._pending = new_pending(2 * needed["pending"], self._builder.tables.accepts.size)
        self._cells = with_free(self._cells, needed["cells"], new_cells, self._ahead)
        self._entries = with_free(self._entries, needed["entries"], new_entries, self._ahead)

    def _drop(self, partition: int) -> None:
        run_cea.drop_all(self._cells, self._entries, self._partitions, partition)

    def _listed(self, used: int, generation: int, oldest: int) -> Arrays:
        return plain_arrays(self._pools, used, generation, oldest)

    def _check_listed(self, arrays: Arrays, nodes: int, states: int) -> None:
        check_plain_runs(arrays, nodes, states)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        rooms = self._cells.next.size, self._entries.next.size  # smaller ones would be too small again
        self._cells, self._entries, first = plain_pools(arrays, rooms)
        return first
