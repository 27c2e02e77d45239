"""Runs that are told apart by their state alone, with the arrays that `run_cea` works on."""

from __future__ import annotations

from typing import Any, ClassVar

from estero.engine.cursor import Reported
from estero.engine.runs import run_cea, run_first
from estero.engine.runs.cea_runs import CeaRuns


class PlainRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind: ClassVar[Any] = run_cea.Cursor
    store_kind: ClassVar[Any] = run_cea.Plain
    lists: ClassVar[str] = "entries"
    scratch: ClassVar[str] = "pending"

    def _advance(self, reported: Reported) -> int:
        read = reported, self._events, self._cursor, self.settings.gaps, self.consume
        advance = run_first.advance_first if self.first_only else run_cea.advance
        return int(advance(self._builder.tables, self.store, *read))

    def _drop(self, partition: int) -> None:
        _, cells, entries, partitions, _ = self.store
        run_cea.drop_all(cells, entries, partitions, partition)
