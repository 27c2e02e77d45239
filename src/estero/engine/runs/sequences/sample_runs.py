"""Runs of a sample: what `run_samples` works on, how it grows, and its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported, reset, taken_needs
from estero.engine.runs.sequences import run_samples
from estero.engine.runs.sequences.run_samples import (
    COMPLETE,
    MOST_CONDITIONS,
    Matchings,
    SampleTables,
    advance_samples,
)
from estero.engine.runs.sequences.stage_runs import StageRuns, with_room
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import index_of, index_rows
from estero.engine.snapshots.sound import check_index
from estero.engine.store.arena import NONE
from estero.engine.store.checks import need
from estero.engine.store.schema import EVENTS, ROWS, check, count_written, grown, new, read, written
from estero.engine.walk.roots import Roots


class SampleRuns(StageRuns):
    """See `Runs`. Condition i asks for predicate bits[i] and key column keys[i].

    Raises ValueError for more than `MOST_CONDITIONS`.
    """

    cursor_kind: ClassVar[Any] = run_samples.Cursor

    def __init__(self, bits: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        if bits.size > MOST_CONDITIONS:
            raise ValueError(f"a sample has at most {MOST_CONDITIONS} conditions, not {bits.size}")
        super().__init__([bits], [keys], None)
        self.tables = SampleTables(bits, keys, np.empty_like(bits), np.empty_like(bits))
        self.matchings: Matchings = new(Matchings, self.capacity, conditions=bits.size)

    def advance(self, reported: Reported, last: int) -> int:
        self._cursor.last = last
        pools = self.arena, self.index, self.matchings
        return int(advance_samples(self.tables, *pools, self._events, reported, self._cursor))

    @property
    def size(self) -> int:
        return super().size + int(self.matchings.size[0])

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        """See `Runs`: nodes are needed until they are read."""
        needed = taken_needs(self._cursor)
        self.index = with_room(self.index, needed["entries"], 0, self.capacity)
        if self.matchings.size[0] + needed["matchings"] > self.matchings.matched.size:
            self.matchings = grown(
                self.matchings, rows=2 * (int(self.matchings.size[0]) + needed["matchings"])
            )
        if self.arena.size[0] + needed["nodes"] > self.arena.kind.size:
            if held is None:
                self.arena.size[0] = 0
                self.counter.forget()
            rows = int(self.arena.size[0]) + needed["nodes"]
            if rows > self.arena.kind.size:
                self.arena = grown(self.arena, rows=2 * rows)

    def idle(self, oldest: int) -> bool:  # noqa: ARG002 - there is no window
        return int(self.matchings.size[0]) == 0

    def snapshot(self, oldest: int) -> Snapshot:  # noqa: ARG002
        """See `Runs`. Of complete samples only the keys are kept."""
        used = int(self.matchings.size[0])
        matchings = grown(self.matchings, rows=used)
        complete = matchings.matched == COMPLETE
        matchings.event[complete] = NONE
        matchings.satisfied[complete] = 0
        events = np.unique(matchings.event[matchings.event != NONE])
        arrays = written(matchings, "matchings", events)
        place = np.searchsorted(events, matchings.event)
        arrays["matchings.event"] = np.where(matchings.event == NONE, NONE, place)
        arrays["index"] = index_rows(self.index, 0, np.arange(used, dtype=np.int32), np.zeros(1, np.int64))
        return Snapshot(events, np.empty(0, np.int32), arrays)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        del marks
        arrays, conditions = snapshot.arrays, self.tables.bit.size
        rows = count_written(Matchings, "matchings", arrays)
        sizes = {"matchings": rows, EVENTS: snapshot.events.size, "conditions": conditions, ROWS: rows}
        matchings = check(Matchings, "matchings", arrays, sizes)
        check_index(arrays, "index", rows, 1)
        there = (matchings.event != NONE).sum(axis=1)
        complete = matchings.matched == COMPLETE
        need(complete | (matchings.matched == there), "matchings have as many events as they say")
        need(complete | (there < conditions), "what is complete is no matching")
        need(matchings.satisfied >> conditions == 0, "events satisfy conditions that are there")
        of_condition = matchings.satisfied >> np.arange(conditions) & 1
        need((matchings.event == NONE) | (of_condition == 1), "events satisfy their condition")

    def resume(self, snapshot: Snapshot) -> None:
        self.matchings = read(Matchings, "matchings", snapshot.arrays, self.capacity)
        self.index = index_of(snapshot.arrays["index"], self.capacity)
        reset(self._cursor)
