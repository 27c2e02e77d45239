"""Runs told apart by registers, or by their support under NEXT and LAST: the arrays of `run_split`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Found
from estero.engine.runs.cea_runs import ROOM, CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.split import run_split
from estero.engine.runs.split.fronts import grown_keys, new_elements, new_groups, new_keys
from estero.engine.runs.split.registers import program_of
from estero.engine.runs.split.run_split import Order, Split, new_taken
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.columns import Arrays
from estero.engine.snapshots.open_runs import split_arrays, split_pools
from estero.engine.snapshots.sound import check_split_runs
from estero.engine.store.pools import with_free
from estero.engine.store.tecs import new_cells


class SplitRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind = run_split.Cursor

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        visible = np.array([] if settings.visible is None else settings.visible, np.bool_)
        windowed = settings.window is not None or settings.each
        self._order = Order(settings.order, windowed, visible, settings.each, settings.apart)
        self._program = program_of(settings.registers)
        self._registers = 0 if settings.registers is None else settings.registers.registers
        self._cells = new_cells(ROOM)
        self._elements = new_elements(ROOM)
        self._keys_of_runs = new_keys(ROOM, self._registers, self._program.joins.size)
        self._groups = new_groups(ROOM)
        self._taken = self._new_taken(ROOM, ROOM, ROOM)

    @property
    def _pools(self) -> Split:
        pools = self._cells, self._elements, self._keys_of_runs, self._groups
        return Split(self.arena, *pools, self._partitions, self._taken)

    def _advance(self, found: Found) -> int:
        tables = self._builder.tables
        if tables.accepts.size > self._taken.where.size:
            taken = self._taken
            self._taken = self._new_taken(taken.key.size, taken.merging.size, taken.ranks.size)
        read = found, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_split.advance(tables, self._program, self._pools, *read, self._order))

    def _make_room(self, needed: dict[str, int]) -> None:
        taken = self._taken
        rooms = {"runs": taken.key.size, "merging": taken.merging.size, "ranks": taken.ranks.size}
        if any(needed[name] > room for name, room in rooms.items()):
            self._taken = self._new_taken(*(max(2 * needed[name], room) for name, room in rooms.items()))
        self._cells = with_free(self._cells, needed["cells"], new_cells, self._ahead)
        self._elements = with_free(self._elements, needed["elements"], new_elements, self._ahead)
        self._groups = with_free(self._groups, needed["keys"], new_groups, self._ahead)
        keys = needed["keys"]
        if keys > self._keys_of_runs.free[1]:
            room = 2 * self._keys_of_runs.group.size + keys
            self._keys_of_runs = grown_keys(self._keys_of_runs, room, self._program.joins)

    def _drop(self, partition: int) -> None:
        pools = self._cells, self._elements, self._keys_of_runs, self._groups
        run_split.drop_partition(*pools, self._program.joins, self._partitions, partition)

    def _listed(self, used: int, generation: int, oldest: int) -> Arrays:
        return split_arrays(self._pools, used, generation, oldest)

    def _check_listed(self, arrays: Arrays, nodes: int, states: int) -> None:
        check_split_runs(arrays, nodes, states, self._registers)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        pools = self._cells, self._elements, self._keys_of_runs, self._groups
        rooms = [pool.next.size for pool in pools]  # smaller ones would be too small again
        found = split_pools(arrays, self.arena, self._program.joins, rooms)
        self._cells, self._elements, self._keys_of_runs, self._groups, first = found
        return first

    def _new_taken(self, runs: int, merging: int, ranks: int) -> run_split.Taken:
        return new_taken(runs, self._registers, merging, self._builder.tables.accepts.size, ranks)
