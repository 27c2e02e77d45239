"""Runs told apart by registers, or by support (NEXT and LAST), with the arrays that `run_split` works on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported
from estero.engine.runs.cea_runs import CAPACITY, CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.split import run_split
from estero.engine.runs.split.fronts import Keys, link_all, table_sizes
from estero.engine.runs.split.registers import program_of
from estero.engine.runs.split.run_split import Order, Split
from estero.engine.runs.tables import Automaton
from estero.engine.store.checks import Arrays
from estero.engine.store.schema import grown, new, with_sizes


class SplitRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind: ClassVar[Any] = run_split.Cursor
    store_kind: ClassVar[Any] = Split
    lists: ClassVar[str] = "groups"
    scratch: ClassVar[str] = "taken"

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        self._program = program_of(settings.registers)
        registers = 0 if settings.registers is None else settings.registers.registers
        sizes = {"registers": registers, "runs": CAPACITY, "merging": CAPACITY, "ranks": CAPACITY}
        super().__init__(automaton, settings, **sizes, **table_sizes(CAPACITY, self._program.joins.size))
        visible = np.array([] if settings.visible is None else settings.visible, np.bool_)
        windowed = settings.window is not None or settings.per_start
        self._order = Order(settings.order, windowed, visible, settings.per_start, settings.apart)

    def _advance(self, reported: Reported) -> int:
        read = reported, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_split.advance(self._builder.tables, self._program, self.store, *read, self._order))

    def _enlarge_pools(self, needed: dict[str, int]) -> None:
        taken = {name: needed.pop(name) for name in ("runs", "merging", "ranks")}
        self._replace("taken", with_sizes(self.store.taken, **taken))
        rows = needed.pop("keys")
        super()._enlarge_pools({**needed, "groups": rows})
        keys, joins = self.store.keys, self._program.joins
        if rows > keys.free[1]:
            rows += 2 * keys.group.size
            self._replace("keys", grown(keys, rows=rows, **table_sizes(rows, joins.size)))
            link_all(self.store.keys, joins)

    def _drop(self, partition: int) -> None:
        _, *pools, partitions, _ = self.store
        run_split.drop_partition(*pools, self._program.joins, partitions, partition)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        parts, in_groups, joins = arrays["elements.count"], arrays["keys.count"], self._program.joins
        used, rows = parts.size, 2 * parts.size
        if rows > self.store.keys.group.size:
            sizes = table_sizes(rows, joins.size)
            self._replace("keys", new(Keys, rows, registers=self._registers, **sizes))
        first_group = super()._put(arrays)
        arena, cells, elements, keys, groups, _, _ = self.store
        elements.free[2] = arrays["cells.count"].max(initial=1)
        keys.group[:used] = np.repeat(np.arange(in_groups.size), in_groups)
        keys.last[:used] = keys.first[:used] + parts - 1
        keys.newest[:used] = arena.start[cells.node[elements.head[keys.last[:used]]]]
        keys.before[:used] = np.arange(-1, used - 1)
        keys.before[groups.first[: in_groups.size]] = -1 - np.arange(in_groups.size)
        link_all(keys, joins)
        return first_group
