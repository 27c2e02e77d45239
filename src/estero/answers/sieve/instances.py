"""The events of each variable of a residual condition, in every instance of the part that it belongs to.

Truths, counts and values of instances are arrays with one element for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from estero.answers.measures.marked import EventsAtHand, Integers, Marked, Mask
from estero.automata.residual import ALL_MARKED, Hidden, Key, Residual
from estero.engine.walk.matches import Matches, offsets_of, places_of
from estero.language.tree.whole import ENDS, START_OF


class MarkTable:
    """The meaning of mark ids: `label_sets[id]` and `hidden_sets[id]`."""

    def __init__(
        self, label_sets: Sequence[frozenset[str]], hidden_sets: Sequence[frozenset[Hidden]]
    ) -> None:
        self._labels = tuple(label_sets)
        self._hidden = tuple(hidden_sets)
        self._holders: dict[Key, Mask] = {}
        smallest: dict[frozenset[str], int] = {}
        self.shown_as: NDArray[np.int32] = np.array(
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
        """The matches as shown: no items without visible labels, and one id for equal sets of labels."""
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
                holding = [key in hidden for hidden in self._hidden]
            else:
                holding = [key in labels for labels in self._labels]
            self._holders[key] = self.is_visible if key == ALL_MARKED else np.array(holding, np.bool_)
        return self._holders[key]


class Instances:
    """The instances of a residual's part of a pattern in a batch of matches, and its variables' events.

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
            self.match: Integers = np.arange(len(low))
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
        if variable in ENDS:
            rows = self.events.starts if variable == START_OF else self.events.ends
            return Marked(np.arange(len(self) + 1), rows[self.match])
        if variable not in self._marked:
            self._marked[variable] = self._find(self._bindings.get(variable, variable))
        return self._marked[variable]

    def before(self, variable: str) -> tuple[Integers, Integers]:
        """For each instance, the last event of a variable before its first event, and that one; as rows.

        Every instance has to have one.
        """
        belongs = self._items(self._bindings[variable])
        last = belongs[np.searchsorted(belongs, self._first) - 1]
        return self.events.rows[last], self.events.rows[self._first]

    def positions(self, instance: int) -> list[int]:
        """The stream positions that the complex event around an instance shows."""
        low, high = self.matches.offsets[self.match[instance] : self.match[instance] + 2]
        shown = self._marks.is_visible[self.matches.marks[low:high]]
        positions: list[int] = self.events.positions(self.events.rows[low:high][shown]).to_pylist()
        return positions

    def _find(self, key: Key) -> Marked:
        low, high = self._low, self._high
        if self._place is not None and not (isinstance(key, Hidden) and key.place == self._place):
            if isinstance(key, Hidden):
                low, high = self._around(self._first, Hidden(key.place))
            else:
                low, high = self.matches.offsets[self.match], self.matches.offsets[self.match + 1]
        belongs = self._marks.holders(key)[self.matches.marks]
        if int(np.count_nonzero(belongs)) == len(low):
            items = np.flatnonzero(belongs)
            if bool(((low <= items) & (items < high)).all()):  # one event in each instance
                return Marked(np.arange(len(low) + 1), self.events.rows[items])
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

        An instance reaches from its first item, which `begin` marks, to just before that of the next one. The
        items before all of them, or without any, form an instance, too.
        """
        begins = first if begin is None else self._items(begin)
        before = np.searchsorted(begins, first, side="right")
        bounded = np.concatenate([[0], begins, [len(self.matches.event)]])
        low = np.maximum(bounded[before], self.matches.offsets[self.match])
        return low, np.minimum(bounded[before + 1], self.matches.offsets[self.match + 1])
