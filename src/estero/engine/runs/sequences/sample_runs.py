"""Runs of a sample: what `run_samples` works on, how it grows, and its snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported, reset, taken_needs
from estero.engine.runs.sequences import run_samples
from estero.engine.runs.sequences.choose_samples import Choice, KeptEvents, KeptLists
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
from estero.engine.store.checks import Arrays, need
from estero.engine.store.schema import EVENTS, ROWS, check, count_written, grown, new, read, written
from estero.engine.walk.roots import Roots


class SampleRuns(StageRuns):
    """See `Runs`. Condition i is predicate bits[i] with key column keys[i].

    A key has at most `most` samples. Raises ValueError for more than `MOST_CONDITIONS` conditions.
    """

    cursor_kind: ClassVar[Any] = run_samples.Cursor

    def __init__(self, bits: NDArray[np.int64], keys: NDArray[np.int64], most: int = 1) -> None:
        if bits.size > MOST_CONDITIONS:
            raise ValueError(f"a sample has at most {MOST_CONDITIONS} conditions, not {bits.size}")
        super().__init__([bits], [keys], None)
        count = bits.size
        self.tables = SampleTables(bits, keys, most, *np.empty((2, count), np.int64))
        self.matchings: Matchings = new(Matchings, self.capacity, conditions=count)
        self._limit = most + count - 2  # how many events of each condition are kept
        rows = self.capacity if most > 1 else 0
        self._lists: KeptLists = new(KeptLists, rows, conditions=count)
        self._kept: KeptEvents = new(KeptEvents, rows)
        candidates = np.empty((2, 1 + count * self._limit if most > 1 else 0), np.int64)
        self._choice = Choice(*candidates, *np.empty((5, count), np.int64))

    def advance(self, reported: Reported, last: int) -> int:
        self._cursor.last = last
        pools = self.arena, self.index, self.matchings, self._lists, self._kept, self._choice
        return int(advance_samples(self.tables, *pools, self._events, reported, self._cursor))

    @property
    def size(self) -> int:
        return super().size + int(self.matchings.size[0] + self._kept.size[0])

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        """See `Runs`. Nodes are needed until they are read."""
        needed = taken_needs(self._cursor)
        self.index = with_room(self.index, needed["entries"], 0, self.capacity)
        if self.matchings.size[0] + needed["matchings"] > self.matchings.matched.size:
            rows = 2 * (int(self.matchings.size[0]) + needed["matchings"])
            self.matchings = grown(self.matchings, rows=rows)
            if self.tables.most > 1:
                self._lists = grown(self._lists, rows=rows)
        if self._kept.size[0] + needed["kept"] > self._kept.row.size:
            self._set_kept(self._needed_events(), needed["kept"])
        if self.arena.size[0] + needed["nodes"] > self.arena.kind.size:
            if held is None:
                self.arena.size[0] = 0
                self.counter.forget()
            rows = int(self.arena.size[0]) + needed["nodes"]
            if rows > self.arena.kind.size:
                self.arena = grown(self.arena, rows=2 * rows)

    def idle(self, oldest: int) -> bool:  # noqa: ARG002 - there is no window
        return int(self.matchings.size[0]) == 0

    def _needed_events(self) -> tuple[NDArray[Any], ...]:
        """The keys, events and conditions from which further samples are chosen, without complete keys."""
        used = int(self._kept.size[0])
        row, event, satisfied = (column[:used] for column in self._kept[:3])
        needed = self.matchings.matched[row] != COMPLETE
        return row[needed], event[needed], satisfied[needed]

    def _set_kept(self, columns: Sequence[NDArray[Any]], further: int) -> None:
        """Replaces the kept events, in the order of their keys' lists, with capacity for `further` ones."""
        row, event, satisfied = columns
        used = row.size
        kept = new(KeptEvents, max(self.capacity, 2 * (used + further)))
        kept.row[:used], kept.event[:used], kept.satisfied[:used], kept.size[0] = row, event, satisfied, used
        lists = new(KeptLists, self.matchings.matched.size, conditions=self.tables.bit.size)
        lists.first.fill(NONE)
        lists.last.fill(NONE)
        lists.held.fill(0)
        by_row = np.argsort(row, kind="stable").astype(np.int32)
        ordered = row[by_row]
        goes_on = ordered[1:] == ordered[:-1]
        kept.next[by_row[-1:]] = NONE
        kept.next[by_row[:-1]] = np.where(goes_on, by_row[1:], NONE)
        lists.last[ordered] = by_row
        lists.first[ordered[::-1]] = by_row[::-1]
        np.add.at(lists.held, row, _bits(satisfied, self.tables.bit.size))
        self._kept, self._lists = kept, lists

    def snapshot(self, oldest: int) -> Snapshot:  # noqa: ARG002
        """See `Runs`. Of complete samples only the keys are kept, and further samples need no matching."""
        used = int(self.matchings.size[0])
        matchings = grown(self.matchings, rows=used)
        settled = (matchings.matched == COMPLETE) | (matchings.matched > self.tables.bit.size)
        matchings.event[settled] = NONE
        matchings.satisfied[settled] = 0
        row, of_kept, satisfied = self._needed_events()
        events = np.union1d(matchings.event[matchings.event != NONE], of_kept)
        arrays = written(matchings, "matchings", events)
        place = np.searchsorted(events, matchings.event)
        arrays["matchings.event"] = np.where(matchings.event == NONE, NONE, place)
        if self.tables.most > 1:
            order = np.argsort(row, kind="stable")
            arrays["kept.row"], arrays["kept.satisfied"] = row[order], satisfied[order]
            arrays["kept.event"] = np.searchsorted(events, of_kept[order])
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
        goes_on = (matchings.matched > conditions) & (matchings.matched < conditions + self.tables.most)
        need(
            complete | (matchings.matched == there) | (goes_on & (there == 0)),
            "matchings have as many events as they say",
        )
        need(complete | (there < conditions), "what is complete is no matching")
        need(matchings.satisfied >> conditions == 0, "events satisfy conditions that are there")
        of_condition = matchings.satisfied >> np.arange(conditions) & 1
        need((matchings.event == NONE) | (of_condition == 1), "events satisfy their condition")
        if self.tables.most > 1:
            self._check_kept(arrays, sizes, complete)

    def _check_kept(self, arrays: Arrays, sizes: Mapping[str, int], complete: NDArray[np.bool_]) -> None:
        """Raises ValueError unless the kept events are the first of a condition with their key."""
        count = count_written(KeptEvents, "kept", arrays)
        kept = check(KeptEvents, "kept", arrays, {**sizes, "kept": count})
        need(~complete[kept.row], "events are kept of what is not complete")
        need(kept.satisfied >> self.tables.bit.size == 0, "events satisfy conditions that are there")
        rises = (kept.row[1:] > kept.row[:-1]) | (
            (kept.row[1:] == kept.row[:-1]) & (kept.event[1:] > kept.event[:-1])
        )
        need(rises, "events are kept by key, in order")
        bits = _bits(kept.satisfied, self.tables.bit.size)
        before = np.cumsum(bits, axis=0) - bits
        before -= before[np.searchsorted(kept.row, kept.row)]
        need((bits * (before < self._limit)).any(axis=1), "events are the first ones of a condition")

    def resume(self, snapshot: Snapshot) -> None:
        self.matchings = read(Matchings, "matchings", snapshot.arrays, self.capacity)
        if self.tables.most > 1:
            names = ("kept.row", "kept.event", "kept.satisfied")
            self._set_kept([snapshot.arrays[name] for name in names], 0)
        self.index = index_of(snapshot.arrays["index"], self.capacity)
        reset(self._cursor)


def _bits(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The lowest bits of numbers: int64[n, count]."""
    return numbers[:, None] >> np.arange(count) & 1
