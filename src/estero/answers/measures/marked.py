"""The events that a variable marks in each of many instances, and their values."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.wait import Wait
from estero.classify.column_names import POSITION, TIME, event_column
from estero.events.tables.shown_types import plain
from estero.language.tree.whole import DEADLINE

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NONE: Final = np.empty(0, np.int64)

Number = TypeVar("Number", bound=np.integer)


def fold(values: NDArray[Number], owners: Integers, into: NDArray[Number]) -> None:
    """Reduces each element of `into` to the minimum of itself and its `values`; for truths, AND.

    `owners` are the indexes in `into` that `values` belong to, ascending.
    """
    if len(owners) == 0:
        return
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    places = owners[starts]
    into[places] = np.minimum(into[places], np.minimum.reduceat(values, starts))


def distinct(rows: Integers, count: int) -> tuple[Integers, Integers]:
    """The distinct rows, ascending, and the index of each item's row among them."""
    present = np.zeros(max(1, count), np.bool_)
    present[rows] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[rows]


def occurring(*numbers: Integers) -> Integers:
    """The numbers that occur, ascending; quick where they lie close together.

    >>> occurring(np.array([7, 5]), np.array([5])).tolist()
    [5, 7]
    """
    every = np.concatenate(numbers)
    if not every.size:
        return every
    first, last = int(every.min()), int(every.max())
    if last - first > _FAR * every.size:
        return np.unique(every)
    present = np.zeros(last - first + 1, np.bool_)
    present[every - first] = True
    return np.flatnonzero(present) + first


_FAR: Final = 16
"""The average gap between numbers above which they are sorted."""


class Marked(NamedTuple):
    """The events of one variable: instance i has ``rows[offsets[i]] … rows[offsets[i + 1] - 1]``.

    `offsets` is int64 [instances + 1]. `rows`, int64, are rows of `EventsAtHand`, for each instance in stream
    order.
    """

    offsets: Integers
    rows: Integers

    @property
    def sizes(self) -> Integers:
        """The number of events of each instance."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Integers:
        """The instance of each of `rows`."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)

    def followed(self) -> Followed:
        """The events that come after another event of their instance, each with the one before it."""
        owners = self.owners
        follows = np.zeros(len(owners), np.bool_)
        follows[1:] = owners[1:] == owners[:-1]
        return Followed(self.only(follows), self.rows[np.flatnonzero(follows) - 1])

    def only(self, wanted: Mask) -> Marked:
        """The wanted events of each instance; `wanted` has one element for each of `rows`."""
        before = np.zeros(len(wanted) + 1, np.int64)
        np.cumsum(wanted, out=before[1:])
        return Marked(before[self.offsets], self.rows[wanted])


class Followed(NamedTuple):
    """Events, and the rows of those that come before them in their instance."""

    later: Marked
    earlier: Integers


class EventsAtHand:
    """The distinct events among items, which are `rows` of an excerpt of the events that are kept.

    `rows` gives the row of each item here, `chosen` the rows of the events in the excerpt. `starts` and
    `ends` are those of the events with which the matches start and end, if given; `wait` is the time that
    ended matches wait, if there is one.
    """

    chosen: Integers

    def __init__(
        self,
        excerpt: pa.RecordBatch,
        rows: Integers,
        starts: Integers = _NONE,
        ends: Integers = _NONE,
        *,
        wait: Wait | None = None,
    ) -> None:
        self._excerpt = excerpt
        self._wait = wait
        asked = np.concatenate((rows, starts, ends)) if starts.size else rows
        self.chosen, places = distinct(asked, excerpt.num_rows)
        split = np.split(places, [rows.size, rows.size + starts.size])
        self.rows: Integers = split[0]
        self.starts: Integers = split[1]
        self.ends: Integers = split[2]
        self._columns: dict[str, pa.Array] = {}

    def keep(self, items: Integers, matches: Integers) -> None:
        """Keeps only these matches, with these items."""
        self.rows = self.rows[items]
        if self.starts.size:
            self.starts, self.ends = self.starts[matches], self.ends[matches]

    @property
    def count(self) -> int:
        """The number of events."""
        return len(self.chosen)

    def has(self, name: str) -> bool:
        """Whether an attribute is kept."""
        return event_column(name) in self._excerpt.schema.names

    def column(self, name: str) -> pa.Array:
        """The values of all events, plain, in the type of the store; `DEADLINE` is the end of the wait."""
        if name not in self._columns:
            waits = name == DEADLINE and self._wait is not None
            kept = self._excerpt.column(TIME if waits else event_column(name))
            values = plain(pc.take(kept, pa.array(self.chosen), boundscheck=False))
            self._columns[name] = self._wait.over(values) if waits and self._wait is not None else values
        return self._columns[name]

    def values(self, name: str, rows: Integers) -> pa.Array:
        """The values of the events in these rows."""
        return pc.take(self.column(name), pa.array(rows), boundscheck=False)

    def positions(self, rows: Integers) -> pa.Array:
        """The stream positions of the events in these rows."""
        return pc.take(self._excerpt.column(POSITION), pa.array(self.chosen[rows]), boundscheck=False)

    def numbers(self, name: str, rows: Integers) -> Integers:
        """A working column of integers, for the events in these rows."""
        kept: Integers = self._excerpt.column(name).to_numpy(zero_copy_only=False)
        return kept[self.chosen[rows]]
