"""The progress of a running query → a line for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from estero.arguments import checked
from estero.spark.connectors.packages import following
from estero.spark.connectors.sinks import ANSWERS

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


_MOST_SECONDS = 86_400
"""The most seconds between two reports."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of events and complex events since the query was started, and its speed now.

    `speed` is in events per second; `state` are the rows that the state store holds, one for each bucket of
    partitions; `batch` is the number of the last batch.
    """

    events: int = 0
    answers: int = 0
    late: int = 0
    state: int = 0
    speed: float = 0.0
    batch: int = -1

    def with_batches(self, progresses: Iterable[Mapping[str, Any]]) -> Totals:
        """The totals after more batches; one that has already been counted does not count again."""
        totals = self
        for progress in progresses:
            totals = totals._with(progress)
        return totals

    def _with(self, progress: Mapping[str, Any]) -> Totals:
        batch = int(progress["batchId"])
        if batch <= self.batch:
            return self
        seen = progress.get("observedMetrics") or {}
        return Totals(
            events=self.events + int(progress["numInputRows"]),
            answers=self.answers + _number(seen, ANSWERS, "answers"),
            late=self.late + _number(seen, "estero", "late"),
            state=sum(int(operator["numRowsTotal"]) for operator in progress.get("stateOperators") or ()),
            speed=float(progress.get("processedRowsPerSecond") or 0.0),
            batch=batch,
        )

    def __str__(self) -> str:
        return (
            f"{self.speed:,.0f} events/s · {self.events:,} events · {self.answers:,} complex events · "
            f"{self.late:,} late · {self.state:,} state rows"
        )


def _number(seen: Mapping[str, Any], metric: str, name: str) -> int:
    row = seen.get(metric) or {}
    return int(row.get(name) or 0)


@checked
def follow(query: StreamingQuery, *, seconds: int = 1) -> Iterator[Totals]:
    """Yields the totals of a running query every few seconds, and once more when it has ended.

    Each `Totals` prints as a line; its speed is 0 while the query waits for events. A failure of the query is
    raised as an error of Estero's.
    """
    if not 1 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"seconds is from 1 to {_MOST_SECONDS:,}, not {seconds}")
    return _followed(query, seconds)


def _followed(query: StreamingQuery, seconds: int) -> Iterator[Totals]:
    totals = Totals()
    ended = False
    while not ended:
        with following():
            ended = bool(query.awaitTermination(seconds))
        totals = totals.with_batches(json.loads(report.json) for report in query.recentProgress)
        state = query.status
        idle = not (state["isTriggerActive"] or state["isDataAvailable"])
        yield replace(totals, speed=0.0) if idle else totals
