"""The contract of sinks: they are given the rows of batches with their numbers, and know which they have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import pyarrow as pa

from estero.local.stopping import Stopping


def _nothing(_name: str) -> None:
    """What is done at a step by default."""


class Sink(ABC):
    """Takes the rows of batches in order of their numbers.

    Rows of a batch up to `delivered` are there and stay, whole; -1 where none are, or nobody knows. A batch
    behind that may come again, with the same rows. `stopping` ends what waits; `reached` is told of steps.
    """

    def __init__(self) -> None:
        self.delivered = -1
        self.stopping = Stopping()
        self.reached: Callable[[str], None] = _nothing

    @abstractmethod
    def open(self, stream: str, schema: pa.Schema) -> None:
        """Gets ready for the rows of a stream, and finds out which of its batches are there."""

    @abstractmethod
    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Takes the rows of a batch; how many there are."""

    def update(self) -> None:  # noqa: B027 (most deliver at once)
        """Finds out what was delivered meanwhile; raises `DataError` where that has failed."""

    def flush(self, number: int) -> None:  # noqa: B027 (most deliver at once)
        """Has all rows up to a batch delivered."""

    def close(self) -> None:  # noqa: B027 (not all have something)
        """Lets go of what it has open; what was not flushed is lost."""
