"""The stage of events forbidden by compared absences: it records them, and lets everything pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.engine.store.checks import Arrays
from estero.recognize.stages.stage import Stage
from estero.recognize.state_bytes import batch_as_array, batch_of_array

if TYPE_CHECKING:
    from estero.answers.sieve.nearby import NearbyEvents

_PREFIX = "events_nearby_"


class NearbyStage(Stage[pa.RecordBatch]):
    """Records forbidden events before anything near them is checked."""

    forgets = True

    def __init__(self, nearby: NearbyEvents) -> None:
        self._nearby = nearby

    def push(self, item: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The events, as they came."""
        self._nearby.enter(item)
        yield item

    def idle(self, time: int) -> bool:
        """Whether no recorded event is near what starts or ends from `time` on."""
        return self._nearby.idle(time)

    def forget(self, oldest: int | None) -> None:
        """Forgets events that are near nothing from time `oldest` on."""
        self._nearby.forget(oldest)

    def snapshot(self) -> Arrays:
        """The forbidden events."""
        batches = enumerate(self._nearby.batches)
        return {f"{_PREFIX}{number}": batch_as_array(batch) for number, batch in batches}

    def resume(self, arrays: Arrays) -> None:
        """Takes the forbidden events out of `arrays`."""
        names = [f"{_PREFIX}{number}" for number in range(len(self._nearby.batches))]
        self._nearby.restart([batch_of_array(arrays.pop(name)) for name in names])
