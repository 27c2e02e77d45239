"""Runs that are told apart by their state alone, with the arrays that `run_cea` works on."""

from __future__ import annotations

from typing import Any, ClassVar

from estero.engine.cursor import CONSUME_NONE, Reported
from estero.engine.runs import run_cea, run_first
from estero.engine.runs.cea_runs import CeaRuns


class PlainRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind: ClassVar[Any] = run_cea.Cursor
    store_kind: ClassVar[Any] = run_cea.Plain
    lists: ClassVar[str] = "entries"
    scratch: ClassVar[str] = "pending"

    def _advance(self, reported: Reported) -> int:
        tables, read = self._builder.tables, (reported, self._events, self._cursor)
        settings, consume = self.settings, self.consume
        if self.first_only and not settings.keyed and not settings.gaps and consume == CONSUME_NONE:
            return run_first.advance_alone(tables, self.store, *read)
        advance = run_first.advance_first if self.first_only else run_cea.advance
        return advance(tables, self.store, *read, settings.gaps, consume)

    def _drop(self, partition: int) -> None:
        _, cells, entries, partitions, _ = self.store
        run_cea.drop_all(cells, entries, partitions, partition)
