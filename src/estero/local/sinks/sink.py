"""The interface of sinks: they receive the rows of numbered batches, and know which they have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import pyarrow as pa

from estero.local.stopping import Stopping


def _nothing(_name: str) -> None:
    """Does nothing; the default for `reached`."""


class Sink(ABC):
    """Receives the rows of batches in order of their numbers.

    The batches up to `delivered` are stored completely; it is -1 if there are none or it is unknown. A later
    batch may come again, with the same rows. `stopping` ends waiting, and `reached` is called at steps.
    """

    def __init__(self) -> None:
        self.delivered = -1
        self.stopping = Stopping()
        self.reached: Callable[[str], None] = _nothing

    @abstractmethod
    def open(self, stream: str, schema: pa.Schema) -> None:
        """Prepares for the rows of a stream, and finds out which of its batches are stored."""

    @abstractmethod
    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Writes the rows of a batch, and returns their number."""

    def update(self) -> None:  # noqa: B027 (most deliver at once)
        """Finds out which batches have been delivered meanwhile; raises `DataError` if that has failed."""

    def flush(self, number: int) -> None:  # noqa: B027 (most deliver at once)
        """Waits until all rows up to a batch are delivered."""

    def close(self) -> None:  # noqa: B027 (not all have something)
        """Releases resources; rows that were not flushed are lost."""
