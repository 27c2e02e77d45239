"""What a bucket asks of work on a stream, and of the recognition that goes on in it."""

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
        """What is decided as no event before `position`, or before `time` in ticks, comes any more."""

    def advance(self, time: int, /) -> None:
        """No event before `time`, in ticks, comes any more."""

    def snapshot(self) -> bytes:
        """All that is needed to go on."""

    def open_runs(self) -> OpenRuns:
        """What is open."""

    @property
    def idle(self) -> bool:
        """Whether to begin anew would change no later answer."""

    @property
    def due(self) -> int | None:
        """The time with which something is decided; None where nothing waits."""


@runtime_checkable
class ChangingRules(BucketRecognition, Protocol):
    """A recognition whose rules may change."""

    def change(self, texts: Mapping[str, str]) -> None:
        """Has the rules be these, by name."""


class BucketWork(Protocol):
    """The work of a bucket; see `Work`."""

    @property
    def division(self) -> Division:
        """How events are divided among buckets."""

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
        """How many steps open runs are told apart by."""

    @property
    def window(self) -> Window | None:
        """The longest window; None where there is one without."""

    @property
    def waits(self) -> bool:
        """Whether events wait for deadlines."""

    @property
    def decides_later(self) -> bool:
        """Whether some rows are decided later than at the end of what they show."""

    def recognizing(self, *, snapshots: bool = False, state: bytes | None = None) -> BucketRecognition:
        """The recognition; with `state` it goes on from a snapshot."""

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of answers with the names and types that they have on Spark."""
