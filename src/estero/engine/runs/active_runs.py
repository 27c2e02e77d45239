"""The active runs of a recognizer between events: one class for each kernel, with the same interface.

They own the arrays that a kernel moves runs in, and make room in them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs import run_cea, run_split
from estero.engine.runs.fronts import (
    grown_elements,
    grown_groups,
    grown_keys,
    new_elements,
    new_groups,
    new_keys,
)
from estero.engine.runs.registers import RegisterTables, program_of
from estero.engine.runs.run_cea import Events, Found, Partitions
from estero.engine.runs.run_split import NEXT, NO_ORDER, SplitEvents, SplitPartitions
from estero.engine.runs.tables import TableBuilder
from estero.engine.snapshots.open_runs import plain_arrays, plain_pools, split_arrays, split_pools
from estero.engine.snapshots.snapshot import Arrays
from estero.engine.store.arena import NONE, Arena, copy_columns
from estero.engine.store.tecs import grown_cells, new_cells

_ROOM = 256
"""Places in a new pool."""


class ActiveRuns(Protocol):
    """What a recognizer needs of them; partitions are numbered from 0. Built with the kernel's cursor."""

    def advance(self, arena: Arena, found: Found, events: SplitEvents) -> int:
        """Goes on with the batch; one of the codes of `run_cea`."""

    def make_room(self) -> int:
        """Makes the room whose lack ended `advance`, but for the nodes; returns how many of those."""

    def expire(self, arena: Arena, used: int, oldest: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Forgets what left the window; the nodes in use, and which of partitions 0 … used-1 have any."""

    def rename(self, moved: NDArray[np.int32]) -> None:
        """Nodes have moved."""

    def forget(self, partition: int) -> None:
        """Forgets all runs of a partition."""

    def fit_partitions(self, capacity: int) -> None:
        """Makes room for partitions."""

    def keep_partitions(self, kept: NDArray[np.intp], capacity: int) -> None:
        """Partition kept[i] becomes number i; the others, which are empty, are gone."""

    def snapshot(self, arena: Arena, used: int, generation: int, oldest: int) -> Arrays:
        """What is open in partitions 0 … used-1, if they are of `generation` (NONE: any); see `open_runs`.

        With it, of each partition, what it needs to go on: ordinal int64 with gaps, step int64 with an order.
        """

    def resume(self, arrays: Arrays, arena: Arena, capacity: int) -> None:
        """Puts what `snapshot` gave in the place of all runs, with room for `capacity` partitions."""


class PlainRuns:
    """Runs told apart by their state alone (`run_cea`)."""

    def __init__(self, builder: TableBuilder, cursor: NDArray[np.int64], gaps: bool, consume: int) -> None:
        self._builder = builder
        self._cursor = cursor
        self._gaps = gaps
        self._consume = consume
        self._cells = new_cells(_ROOM)
        self._entries = run_cea.new_entries(_ROOM)
        self._partitions = _new_partitions(64)
        self._pending = run_cea.new_pending(_ROOM, builder.tables.accepts.size)

    def advance(self, arena: Arena, found: Found, events: SplitEvents) -> int:
        """See `ActiveRuns`."""
        states = self._builder.tables.accepts.size
        if states > self._pending.where.size:
            self._pending = run_cea.new_pending(self._pending.entry.size, states)
        return int(
            run_cea.advance(
                self._builder.tables,
                arena,
                self._cells,
                self._entries,
                self._partitions,
                self._pending,
                found,
                Events(*events[:4]),
                self._cursor,
                self._gaps,
                self._consume,
            )
        )

    def make_room(self) -> int:
        """See `ActiveRuns`."""
        need_nodes, need_cells, need_entries, need_pending = (
            int(need) for need in self._cursor[run_cea.NEED_NODES :]
        )
        self._cursor[run_cea.NEED_NODES :] = 0
        if need_pending > self._pending.entry.size:
            self._pending = run_cea.new_pending(2 * need_pending, self._builder.tables.accepts.size)
        if need_cells > self._cells.free[1]:
            self._cells = grown_cells(self._cells, 2 * self._cells.node.size + need_cells)
        if need_entries > self._entries.free[1]:
            self._entries = run_cea.grown_entries(self._entries, 2 * self._entries.state.size + need_entries)
        return need_nodes

    def expire(self, arena: Arena, used: int, oldest: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """See `ActiveRuns`."""
        roots, keep = np.empty(self._cells.node.size, np.int32), np.zeros(used, np.int8)
        count = run_cea.expire(arena, self._cells, self._entries, self._partitions, used, oldest, roots, keep)
        return roots[:count], keep

    def rename(self, moved: NDArray[np.int32]) -> None:
        """See `ActiveRuns`."""
        run_cea.rename_nodes(self._cells, self._entries, self._partitions, self._partitions.first.size, moved)

    def forget(self, partition: int) -> None:
        """See `ActiveRuns`."""
        run_cea.drop_all(self._cells, self._entries, self._partitions, partition)

    def fit_partitions(self, capacity: int) -> None:
        """See `ActiveRuns`."""
        bigger = _new_partitions(capacity)
        copy_columns(self._partitions, bigger, self._partitions.first.size)
        self._partitions = bigger

    def keep_partitions(self, kept: NDArray[np.intp], capacity: int) -> None:
        """See `ActiveRuns`."""
        old, self._partitions = self._partitions, _new_partitions(capacity)
        copy_columns([column[kept] for column in old], self._partitions, kept.size)

    def snapshot(self, arena: Arena, used: int, generation: int, oldest: int) -> Arrays:
        """See `ActiveRuns`."""
        arrays = plain_arrays(arena, self._cells, self._entries, self._partitions, used, generation, oldest)
        if self._gaps:
            arrays["ordinal"] = np.where(arrays["opened"] > 0, self._partitions.ordinal[:used], -1)
        return arrays

    def resume(self, arrays: Arrays, arena: Arena, capacity: int) -> None:  # noqa: ARG002 - as split runs
        """See `ActiveRuns`."""
        self._cells, self._entries, first = plain_pools(arrays, _ROOM)
        self._partitions = _new_partitions(capacity)
        self._partitions.first[: first.size] = first
        if self._gaps:
            self._partitions.ordinal[: first.size] = arrays["ordinal"]


class SplitRuns:
    """Runs told apart by their state and registers, and by their support under an order (`run_split`).

    `visible` bool[label sets] says which marks count for the support (empty: all); `windowed` whether runs
    that start later can outlive better ones.
    """

    def __init__(
        self,
        builder: TableBuilder,
        cursor: NDArray[np.int64],
        gaps: bool,
        consume: int,
        registers: RegisterTables | None,
        order: int,
        visible: NDArray[np.bool_],
        windowed: bool,
    ) -> None:
        self._builder = builder
        self._cursor = cursor
        self._gaps = gaps
        self._consume = consume
        self._order = order
        self._visible = np.array(visible, np.bool_)
        self._windowed = windowed
        self._registers = 0 if registers is None else registers.registers
        self._program = program_of(registers)
        self._cells = new_cells(_ROOM)
        self._elements = new_elements(_ROOM)
        self._keys = new_keys(_ROOM, self._registers, self._program.joins.size)
        self._groups = new_groups(_ROOM)
        self._partitions = _new_split_partitions(64, order)
        self._runs = run_split.new_runs(_ROOM, self._registers, _ROOM, builder.tables.accepts.size)
        self._need = np.zeros(6, np.int64)

    def advance(self, arena: Arena, found: Found, events: SplitEvents) -> int:
        """See `ActiveRuns`."""
        states = self._builder.tables.accepts.size
        if states > self._runs.where.size:
            self._runs = self._new_runs(self._runs.key.size, self._runs.merging.size)
        while True:
            with np.errstate(over="ignore"):  # hashes wrap around; NumPy would say so where the JIT is off
                code = run_split.advance(
                    self._builder.tables,
                    self._program,
                    self._builder.live,
                    self._visible,
                    arena,
                    self._cells,
                    self._elements,
                    self._keys,
                    self._groups,
                    self._partitions,
                    self._runs,
                    found,
                    events,
                    self._cursor,
                    self._need,
                    self._gaps,
                    self._consume,
                    self._order,
                    self._windowed,
                )
            if code != run_split.RERANK:
                return int(code)
            self._rerank(int(events.partition[self._cursor[run_cea.AT]]))

    def make_room(self) -> int:
        """See `ActiveRuns`."""
        nodes, cells, elements, keys, runs, merging = self._need.tolist()
        self._need[:] = 0
        if runs > self._runs.key.size or merging > self._runs.merging.size:
            self._runs = self._new_runs(
                max(2 * runs, self._runs.key.size), max(2 * merging, self._runs.merging.size)
            )
        if cells > self._cells.free[1]:
            self._cells = grown_cells(self._cells, 2 * self._cells.node.size + cells)
        if elements > self._elements.free[1]:
            self._elements = grown_elements(self._elements, 2 * self._elements.head.size + elements)
        if keys > self._keys.free[1]:
            self._keys = grown_keys(self._keys, 2 * self._keys.group.size + keys, self._program.joins)
        if keys > self._groups.free[1]:
            self._groups = grown_groups(self._groups, 2 * self._groups.state.size + keys)
        return int(nodes)

    def expire(self, arena: Arena, used: int, oldest: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """See `ActiveRuns`."""
        roots, keep = np.empty(self._cells.node.size, np.int32), np.zeros(used, np.int8)
        count = run_split.expire(
            arena,
            self._cells,
            self._elements,
            self._keys,
            self._groups,
            self._program.joins,
            self._partitions,
            used,
            oldest,
            roots,
            keep,
        )
        return roots[:count], keep

    def rename(self, moved: NDArray[np.int32]) -> None:
        """See `ActiveRuns`."""
        run_split.rename_nodes(self._cells, self._elements, self._keys, moved)

    def forget(self, partition: int) -> None:
        """See `ActiveRuns`."""
        run_split.drop_partition(
            self._cells,
            self._elements,
            self._keys,
            self._groups,
            self._program.joins,
            self._partitions,
            partition,
        )

    def fit_partitions(self, capacity: int) -> None:
        """See `ActiveRuns`."""
        bigger = _new_split_partitions(capacity, self._order)
        copy_columns(self._partitions, bigger, self._partitions.first.size)
        self._partitions = bigger

    def keep_partitions(self, kept: NDArray[np.intp], capacity: int) -> None:
        """See `ActiveRuns`."""
        old, self._partitions = self._partitions, _new_split_partitions(capacity, self._order)
        copy_columns([column[kept] for column in old], self._partitions, kept.size)

    def snapshot(self, arena: Arena, used: int, generation: int, oldest: int) -> Arrays:
        """See `ActiveRuns`."""
        arrays = split_arrays(
            arena,
            self._cells,
            self._elements,
            self._keys,
            self._groups,
            self._partitions,
            used,
            generation,
            oldest,
        )
        is_open = arrays["opened"] > 0
        if self._gaps:
            arrays["ordinal"] = np.where(is_open, self._partitions.ordinal[:used], -1)
        if self._order != NO_ORDER:
            first_step = run_split.FIRST_STEP[self._order]
            arrays["step"] = np.where(is_open, self._partitions.step[:used], first_step)
        return arrays

    def resume(self, arrays: Arrays, arena: Arena, capacity: int) -> None:
        """See `ActiveRuns`."""
        self._cells, self._elements, self._keys, self._groups, first = split_pools(
            arrays, arena, self._program.joins, _ROOM
        )
        self._partitions = _new_split_partitions(capacity, self._order)
        self._partitions.first[: first.size] = first
        if self._gaps:
            self._partitions.ordinal[: first.size] = arrays["ordinal"]
        if self._order != NO_ORDER:
            self._partitions.step[: first.size] = arrays["step"]

    def _rerank(self, partition: int) -> None:
        """Numbers the ranks of a partition anew, so that the next marks have bits of their own.

        A rank has a bit for each event that marked something in the partition since, which stands below
        the older ones under NEXT and above them under LAST. The empty support stays 0.
        """
        places = np.empty(self._elements.head.size, np.int32)
        count = run_split.elements_of(
            self._elements, self._keys, self._groups, self._partitions, partition, places
        )
        places = places[:count]
        ranks = self._elements.rank[places]
        distinct = np.unique(np.append(ranks, 0))
        dense = np.searchsorted(distinct, ranks)
        bits = int(distinct.size - 1).bit_length()
        if self._order == NEXT:
            free = run_split.FIRST_STEP[NEXT].bit_length() - bits
            self._elements.rank[places] = dense << free
            self._partitions.step[partition] = 1 << (free - 1)
        else:
            self._elements.rank[places] = dense
            self._partitions.step[partition] = 1 << bits

    def _new_runs(self, runs: int, merging: int) -> run_split.Runs:
        return run_split.new_runs(runs, self._registers, merging, self._builder.tables.accepts.size)


def is_split(registers: RegisterTables | None, order: int) -> bool:
    """Whether runs in one state have to be told apart."""
    return order != NO_ORDER or (registers is not None and registers.registers > 0)


def _new_partitions(capacity: int) -> Partitions:
    return Partitions(
        np.full(capacity, NONE, np.int32),
        np.full(capacity, -1, np.int64),
        np.zeros(capacity, np.int64),
    )


def _new_split_partitions(capacity: int, order: int) -> SplitPartitions:
    return SplitPartitions(
        *_new_partitions(capacity), step=np.full(capacity, run_split.FIRST_STEP[order], np.int64)
    )
