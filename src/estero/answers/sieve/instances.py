"""Which events each variable of a residual condition has, in every instance of its place.

Truths, counts and values of instances are arrays with one element for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.report import EventStore
from estero.automata.residual import ALL_MARKED, Hidden, Key, Residual
from estero.classify.column_names import POSITION, event_column
from estero.engine.walk.matches import Matches, offsets_of, places_of
from estero.events.tables.shown_types import plain

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Truths = NDArray[np.int8]
"""Of each instance one of FALSE, UNKNOWN, TRUE: AND is the minimum, OR the maximum, NOT is ``2 - truth``."""

FALSE, UNKNOWN, TRUE = np.int8(0), np.int8(1), np.int8(2)

Number = TypeVar("Number", bound=np.integer)


def fold(values: NDArray[Number], owners: Integers, into: NDArray[Number]) -> None:
    """Each of `into` becomes the smallest of its `values` and itself: of truths, their AND.

    `owners` are the places in `into` that `values` belong to, ascending.
    """
    if len(owners) == 0:
        return
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    places = owners[starts]
    into[places] = np.minimum(into[places], np.minimum.reduceat(values, starts))


class Marked(NamedTuple):
    """The events of one variable: instance i has ``rows[offsets[i]] … rows[offsets[i + 1] - 1]``.

    `offsets` is int64 [instances + 1]. `rows`, int64, are rows of `EventsAtHand`, for each instance in stream
    order.
    """

    offsets: Integers
    rows: Integers

    @property
    def sizes(self) -> Integers:
        """How many events each instance has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Integers:
        """The instance of each of `rows`."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)


class EventsAtHand:
    """The distinct events that a batch of matches marks; `rows` gives the row of each item of the matches."""

    def __init__(self, matches: Matches, store: EventStore) -> None:
        self._excerpt, (rows,) = store.excerpt([matches.event])
        present = np.zeros(max(1, self._excerpt.num_rows), np.bool_)
        present[rows] = True
        self._chosen = np.flatnonzero(present)
        self.rows: Integers = (np.cumsum(present) - 1)[rows]
        self._columns: dict[str, pa.Array] = {}

    def keep(self, items: Integers) -> None:
        """From now on the matches have only these of their items left."""
        self.rows = self.rows[items]

    @property
    def count(self) -> int:
        """How many events there are."""
        return len(self._chosen)

    def column(self, name: str) -> pa.Array:
        """The values of all events, plain, in the type of the store."""
        if name not in self._columns:
            kept = self._excerpt.column(event_column(name))
            self._columns[name] = plain(pc.take(kept, pa.array(self._chosen), boundscheck=False))
        return self._columns[name]

    def values(self, name: str, rows: Integers) -> pa.Array:
        """The values of the events in these rows."""
        return pc.take(self.column(name), pa.array(rows), boundscheck=False)

    def positions(self, rows: Integers) -> pa.Array:
        """The stream positions of the events in these rows."""
        return pc.take(self._excerpt.column(POSITION), pa.array(self._chosen[rows]), boundscheck=False)

    def numbers(self, name: str, rows: Integers) -> Integers:
        """A working column of integers, for the events in these rows."""
        kept: Integers = self._excerpt.column(name).to_numpy(zero_copy_only=False)
        return kept[self._chosen[rows]]


class MarkTable:
    """What mark ids stand for: `label_sets[id]` and `hidden_sets[id]`."""

    def __init__(
        self, label_sets: Sequence[frozenset[str]], hidden_sets: Sequence[frozenset[Hidden]]
    ) -> None:
        self._labels = tuple(label_sets)
        self._hidden = tuple(hidden_sets)
        self._holders: dict[Key, Mask] = {}
        smallest: dict[frozenset[str], int] = {}
        self.shown_as = np.array(
            [smallest.setdefault(labels, mark) for mark, labels in enumerate(self._labels)], np.int32
        )
        """int32 [marks]: the smallest id with the same visible labels."""
        self.is_visible: Mask = np.array([bool(labels) for labels in self._labels], np.bool_)

    @property
    def merges(self) -> bool:
        """Whether different runs can show the same."""
        ambiguous = self.shown_as != np.arange(len(self.shown_as))
        return bool(ambiguous.any()) or not bool(self.is_visible.all())

    def shown(self, matches: Matches) -> Matches:
        """The matches as answers show them: no items without visible labels, equal sets under one id."""
        if not self.merges:
            return matches
        visible: Mask = self.is_visible[matches.marks]
        return matches._replace(
            offsets=offsets_of(visible)[matches.offsets],
            event=matches.event[visible],
            marks=self.shown_as[matches.marks[visible]],
        )

    def holders(self, key: Key) -> Mask:
        """Whether an event with a mark belongs to `key`, bool [marks]."""
        if key not in self._holders:
            if isinstance(key, Hidden):
                found = [key in hidden for hidden in self._hidden]
            else:
                found = [key in labels for labels in self._labels]
            self._holders[key] = self.is_visible if key == ALL_MARKED else np.array(found, np.bool_)
        return self._holders[key]


class Instances:
    """The instances of a residual's place in a batch of matches, and what its variables have there.

    `match` is int64 [instances], ascending: the complex event that each belongs to.
    """

    def __init__(self, residual: Residual, matches: Matches, events: EventsAtHand, marks: MarkTable) -> None:
        self.matches = matches
        self.events = events
        self._marks = marks
        self._place = residual.place
        self._bindings: Mapping[str, Key] = dict(residual.bindings)
        self._marked: dict[str, Marked] = {}
        low, high = matches.offsets[:-1], matches.offsets[1:]
        if residual.place is None:
            self.match = np.arange(len(low))
            self._first, self._low, self._high = low, low, high
        else:
            self._first = self._items(Hidden(residual.place))
            owners = np.repeat(np.arange(len(low)), np.diff(matches.offsets))
            self.match = owners[self._first]
            self._low, self._high = self._around(self._first)

    def __len__(self) -> int:
        return len(self.match)

    def of(self, variable: str) -> Marked:
        """The events of a variable."""
        if variable not in self._marked:
            self._marked[variable] = self._find(self._bindings.get(variable, variable))
        return self._marked[variable]

    def before(self, variable: str) -> tuple[Integers, Integers]:
        """Of each instance the last event of a variable before its first event, and that one; rows of events.

        Every instance has to have one.
        """
        belongs = self._items(self._bindings[variable])
        last = belongs[np.searchsorted(belongs, self._first) - 1]
        return self.events.rows[last], self.events.rows[self._first]

    def positions(self, instance: int) -> list[int]:
        """The stream positions that the complex event around an instance shows."""
        low, high = self.matches.offsets[self.match[instance] : self.match[instance] + 2]
        shown = self._marks.is_visible[self.matches.marks[low:high]]
        found: list[int] = self.events.positions(self.events.rows[low:high][shown]).to_pylist()
        return found

    def _find(self, key: Key) -> Marked:
        low, high = self._low, self._high
        if self._place is not None and not (isinstance(key, Hidden) and key.place == self._place):
            if isinstance(key, Hidden):
                low, high = self._around(self._first, Hidden(key.place))
            else:
                low, high = self.matches.offsets[self.match], self.matches.offsets[self.match + 1]
        belongs = self._marks.holders(key)[self.matches.marks]
        before = offsets_of(belongs)
        rows = self.events.rows[belongs]
        first, sizes = before[low], before[high] - before[low]
        offsets = offsets_of(sizes)
        if offsets[-1] == len(rows) and bool((first == offsets[:-1]).all()):
            return Marked(offsets, rows)  # each event in one instance
        return Marked(offsets, rows[places_of(first, sizes)])

    def _items(self, key: Key) -> Integers:
        """The items of the matches that belong to `key`, ascending."""
        return np.flatnonzero(self._marks.holders(key)[self.matches.marks])

    def _around(self, first: Integers, begin: Hidden | None = None) -> tuple[Integers, Integers]:
        """The items [low, high) of the instance around each item of `first`.

        An instance reaches from its first item, which `begin` marks, to just before that of the next one.
        What is before all of them, or has none, is an instance, too.
        """
        begins = first if begin is None else self._items(begin)
        before = np.searchsorted(begins, first, side="right")
        bounded = np.concatenate([[0], begins, [len(self.matches.event)]])
        low = np.maximum(bounded[before], self.matches.offsets[self.match])
        return low, np.minimum(bounded[before + 1], self.matches.offsets[self.match + 1])
