"""Runs, which answers read, and the questions that only some of them answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from estero.engine.walk.share import Share

if TYPE_CHECKING:
    from estero.answers.participation import Aggregates, Participation
    from estero.answers.why_not import WhyNot


class Run(Protocol):
    """One query on one source of events, ready to be evaluated as often as an answer is read.

    Complex events have an index: 0, 1, 2, … in the order of `tables`, which is by end position and, within
    one end position, the same in every evaluation.
    """

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table, known before any event is read."""

    @property
    def query(self) -> str:
        """The canonical text of the query."""

    @property
    def whole_answer(self) -> str:
        """The answer to use instead for questions that this run cannot answer."""
        return "the answer of query.run"

    @property
    def counts_quickly(self) -> bool:
        """Whether `count` can be called while tables are read, and does not enumerate."""

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All complex events, or the first `limit` of them; no more events are read than that needs."""

    def count(self, *, enough: int | None = None) -> int:
        """The exact number of complex events, without enumerating; at least `enough` if there are more."""

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The complex events with these ascending indexes, without enumerating those between.

        An index past the last one ends the iteration.
        """


@runtime_checkable
class WholeStream(Protocol):
    """A run that reads a whole stream, and answers questions about its starts."""

    def funnel(self, *, by_partition: bool, by: Sequence[str], chosen: bool) -> pa.Table:
        """The number of starts that reach each step: the table of a `Funnel`."""

    def partials(self, *, chosen: bool) -> Run:
        """The run of the partial matches whose windows have passed."""

    def why_not(self, sample: int | None, seconds: float | None) -> WhyNot:
        """The reasons why there are not more complex events."""


@runtime_checkable
class KnownLater(Protocol):
    """A run some of whose complex events may not be decided yet."""

    def undecided(self) -> Run:
        """The run of the complex events that wait for a deadline that has not passed."""


@runtime_checkable
class WithEvents(Protocol):
    """A run whose events can be read again."""

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        """A numeric attribute of the events between two positions (`estero.recognize.attribute_values`)."""


@runtime_checkable
class Divisible(Protocol):
    """A run that can be divided into shares."""

    def shared(self, share: Share) -> Run:
        """The run of a share: all shares together have the complex events of this one, each once."""


@runtime_checkable
class WholeSet(Protocol):
    """A run that answers questions on all its complex events together, without listing them."""

    def participation(self, *, by_partition: bool) -> Participation:
        """The number of complex events that each event is in."""

    def aggregate(self, expressions: Mapping[str, str]) -> dict[str, Any]:
        """Aggregates over all complex events, by name."""

    def aggregate_by_partition(self, expressions: Mapping[str, str]) -> Aggregates:
        """The same for each partition."""

    def top(self, n: int, by: str, *, ascending: bool, by_partition: bool) -> Run:
        """The run of the `n` best complex events, or of those of each partition, best first."""

    def ranked(self, by: str, *, ascending: bool) -> Run:
        """The run of all complex events, best first, which is lazy."""


def first_rows(tables: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows of some tables, or all of them; no more tables are read than that needs."""
    if limit is None:
        yield from tables
        return
    for table in tables if limit > 0 else ():
        yield table.slice(0, limit) if limit < table.num_rows else table
        limit -= table.num_rows
        if limit <= 0:
            return


def whole_stream(run: Run, refused: str) -> WholeStream:
    """The run itself; raises ValueError, which says what is `refused`, if it does not read a whole stream."""
    if isinstance(run, WholeStream):
        return run
    raise ValueError(f"{refused} of a whole stream: ask {run.whole_answer}")
