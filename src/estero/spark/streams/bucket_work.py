"""The interfaces that a bucket needs: work on a stream, and the recognition that goes on in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from estero.plan.division import Division
from estero.plan.plan import Window

if TYPE_CHECKING:
    from estero.recognize.open_runs import OpenRuns


class BucketRecognition(Protocol):
    """A recognition of a query, or of rules; see `Recognition`."""

    def push(self, classified: pa.RecordBatch, /) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch, as tables."""

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """The answers that are decided once no event before `position`, or before `time` in ticks, comes."""

    def advance(self, time: int, /) -> None:
        """Announces that no event before `time`, in ticks, comes any more."""

    def snapshot(self) -> bytes:
        """The data needed to continue."""

    def open_runs(self) -> OpenRuns:
        """The open runs."""

    @property
    def idle(self) -> bool:
        """Whether starting afresh would change no later answer."""

    @property
    def due(self) -> int | None:
        """The time with which something is decided; None if nothing waits."""


@runtime_checkable
class ChangingRules(BucketRecognition, Protocol):
    """A recognition whose rules may change."""

    def change(self, texts: Mapping[str, str]) -> None:
        """Replaces the rules by these, by name."""


class BucketWork(Protocol):
    """The work of a bucket; see `Work`."""

    @property
    def division(self) -> Division:
        """The division of events among buckets."""

    @property
    def events(self) -> pa.Schema:
        """The columns of classified events."""

    @property
    def time(self) -> pa.DataType | None:
        """The type in which answers show times."""

    @property
    def answer(self) -> pa.Schema:
        """The columns of answers."""

    @property
    def steps(self) -> int:
        """The number of steps by which open runs are distinguished."""

    @property
    def window(self) -> Window | None:
        """The longest window; None if something has no window."""

    @property
    def waits(self) -> bool:
        """Whether events wait for deadlines."""

    @property
    def decides_later(self) -> bool:
        """Whether some rows are decided later than at the end of their events."""

    def recognizing(self, *, snapshots: bool = False, state: bytes | None = None) -> BucketRecognition:
        """The recognition; with `state` it continues from a snapshot."""

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of answers with the names and types that they have on Spark."""
