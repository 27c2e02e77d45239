"""Enumerating the complex events of compact sets in batches, from the first one or from any other.

One walk for every kind of compact set. What is left to visit is a stack of *choices*: each is a place in the
compact set, with the number of items of the complex event above it, and leads to a complex event. A kind
says how to `seek` (put the choices so that the complex event with a given index is the next), how to
`descend` from the top choice to a complex event, leaving new choices on the way, and how to `write` its
items. Seeking to index 0 is to choose the root. The delay is linear in the output (distributed-cea, 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, SEEK
from estero.engine.kernels import Grid, inlined, pool
from estero.engine.store.schema import counters, data, grown, new
from estero.engine.walk.counter import Counter, S
from estero.engine.walk.matches import Matches, filled, new_matches
from estero.engine.walk.roots import Roots
from estero.engine.walk.share import NO_RANGES, Part, for_kernels

ROOT, LEFT, CHOICES, STEPS = range(4)
"""Places in a walk's cursor: the next root; complex events still to be given of the end, or root, at hand;
choices left; nodes visited in all."""
_LARGEST_BATCH = 1 << 16
_NO_LIMIT = 1 << 62


@pool
class Asked(NamedTuple):
    """The complex events that are requested.

    Those of roots (see `Roots`), at most `limit` for each end. Or, if skip and take int64[r] are not empty,
    those of root i from number skip[i] on, take[i] of them; skip is -1 if it exceeds a word.
    """

    event: NDArray[np.int64]
    root: NDArray[np.int32]
    oldest: NDArray[np.int64]
    skip: NDArray[np.int64]
    take: NDArray[np.int64]
    limit: int


@pool
class Walk(NamedTuple):
    """The position of an enumeration.

    ======= ===== ==================== ================================================================
    array   dtype shape                meaning
    ======= ===== ==================== ================================================================
    cursor  int64 [4]                  see `ROOT`
    choice  int64 [4 × (capacity + 1)] four numbers each: a place, as each kind has it, and the items above
    event   int64 [capacity]           the items of the current complex event,
    marks   int32 [capacity]           from its end backwards
    agenda  int64 [capacity, 3]        the heaps that the current complex event still needs, for products only
    sorting                            scratch for as many items
    ======= ===== ==================== ================================================================

    There is room for one more choice than items, so that a walk that stops because its arrays are full can
    leave its current state as a choice. Choices are flat: as a table, whose width is a factor in each access,
    they made walks over run nodes 8 % slower.
    """

    cursor: NDArray[np.int64] = counters("root", "left", "choices", "steps")
    choice: NDArray[np.int64] = data(length="choice")
    event: NDArray[np.int64] = data()
    marks: NDArray[np.int32] = data()
    agenda: Grid[np.int64] = data(axes=(3,))
    sort_event: NDArray[np.int64] = data()
    sort_marks: NDArray[np.int32] = data()


def new_walk(capacity: int = 256) -> Walk:
    """A walk before the first root, for complex events of up to `capacity` items."""
    return new(Walk, capacity, choice=4 * (capacity + 1))


def deeper(walk: Walk, capacity: int) -> Walk:
    """The same walk for complex events of up to `capacity` items."""
    return grown(walk, rows=capacity, choice=4 * (capacity + 1))


@inlined
def next_root(asked, place, left):  # type: ignore[no-untyped-def]
    """The first root from `place` on that still has complex events to report, and how many."""
    while place < asked.root.size:
        if asked.take.size > 0:
            left = asked.take[place]
        elif place == 0 or asked.event[place] != asked.event[place - 1]:
            left = asked.limit
        if left > 0:
            break
        place += 1
    return place, left


@inlined
def go_on(compact, counts, asked, walk, matches, sizes, seek, descend, write):  # type: ignore[no-untyped-def]
    """Appends to `matches`, which holds sizes[0] complex events with sizes[1] items.

    Returns the reason for stopping: DONE, GROW, FULL or SEEK. Each kind makes a kernel of this with

    - ``seek(compact, counts, root, oldest, skip, walk)``: puts choices so that the complex event number
      `skip` comes next; returns DONE, GROW or SEEK, and the number of choices. Where `counts` is None, `skip`
      is 0; machine code for that leaves out what it takes otherwise;
    - ``descend(compact, oldest, walk, choices, most)``: takes the top choice; returns DONE, the choices then,
      the number of items of the complex event, at most `most`, and where it starts; or GROW or FULL, leaving
      what is at hand as a choice;
    - ``write(walk, length, start, matches, first)``: writes these items; returns where it starts.
    """
    cursor = walk.cursor
    choices = cursor[CHOICES]
    left = cursor[LEFT]
    end = np.int64(0)
    oldest = np.int64(0)
    if choices > 0:
        end = asked.event[cursor[ROOT] - 1]
        oldest = asked.oldest[cursor[ROOT] - 1]
    count = sizes[0]
    items = sizes[1]
    code = DONE
    while code == DONE:
        if count == matches.start.size:
            code = FULL
            break
        if choices == 0:
            place, left = next_root(asked, cursor[ROOT], left)
            cursor[ROOT] = place
            if place == asked.root.size:
                break
            end = asked.event[place]
            oldest = asked.oldest[place]
            skip = asked.skip[place] if asked.skip.size > 0 else 0
            code, choices = seek(compact, counts, asked.root[place], oldest, skip, walk)
            if code != DONE:
                choices = 0
                break
            cursor[ROOT] = place + 1
        code, choices, length, start = descend(compact, oldest, walk, choices, matches.event.size - items)
        if code == DONE:
            matches.start[count] = write(walk, length, start, matches, items)
            matches.end[count] = end
            items += length
            count += 1
            matches.offsets[count] = items
            left -= 1
            if left == 0:
                choices = 0
    cursor[CHOICES] = choices
    cursor[LEFT] = left
    sizes[0] = count
    sizes[1] = items
    return code


@inlined
def write_back(walk, length, start, matches, first):  # type: ignore[no-untyped-def]
    """Writes the current items to matches from place `first` on, ascending; returns `start`.

    Measured: with `first + place` as an index, the loop is vectorised by gathering and scattering, and a
    complex event of three items takes 12 ns instead of 8.
    """
    for place in range(length - 1, -1, -1):
        matches.event[first] = walk.event[place]
        matches.marks[first] = walk.marks[place]
        first += 1
    return start


class Enumeration(Generic[S]):
    """The complex events of roots in batches that grow from `first_batch`: at most `limit` for each end.

    With a `part` they are those, and earlier ones are not visited. Each batch is enumerated when it is
    requested. Can be iterated once only. Later additions to the compact set change nothing.
    """

    def __init__(
        self,
        compact: S,
        counter: Counter[S],
        roots: Roots,
        *,
        limit: int | None = None,
        part: Part | None = None,
        first_batch: int = 256,
    ) -> None:
        self._compact = compact
        self._counter = counter
        self._part = part
        chosen = roots if part is None else roots.chosen(part.place)
        skip, take = NO_RANGES if part is None else for_kernels(part)
        self._asked = Asked(*chosen, skip, take, _NO_LIMIT if limit is None else min(limit, _NO_LIMIT))
        self._walk = new_walk()
        self._batch_size = first_batch

    @property
    def steps(self) -> int:
        """The number of nodes of the compact set visited so far."""
        return int(self._walk.cursor[STEPS])

    def __iter__(self) -> Iterator[Matches]:
        matches, sizes = new_matches(self._batch_size, 8 * self._batch_size), np.zeros(2, np.int64)
        while True:
            code = self.fill(matches, sizes)
            if sizes[0] == 0 and code == FULL:  # not even one fits
                matches = new_matches(self._batch_size, 4 * matches.event.size)
                continue
            if sizes[0]:
                yield filled(matches, sizes)
            if code == DONE:
                return
            self._batch_size = min(4 * self._batch_size, _LARGEST_BATCH)
            matches = new_matches(self._batch_size, max(8 * self._batch_size, matches.event.size))
            sizes = np.zeros(2, np.int64)

    def fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        """Continues: appends to `matches`, which holds sizes[0] complex events with sizes[1] items.

        Returns DONE, or FULL if the next one does not fit.
        """
        counter, asked = self._counter, self._asked
        if self._part is not None:
            counter.catch_up(self._compact)
        while True:
            counts = None if self._part is None else counter.counts
            code = counter.walk(self._compact, counts, asked, self._walk, matches, sizes)
            if code == GROW:
                self._walk = deeper(self._walk, 2 * self._walk.event.size)
            elif code == SEEK and self._part is not None:
                self._put(int(self._walk.cursor[ROOT]), self._part)
            else:
                return code

    def _put(self, place: int, part: Part) -> None:
        """Positions the walk at the beginning of the range of root number `place`, if that exceeds a word."""
        here = Roots(*self._asked[:3]).part(place, place + 1)
        self._counter.of_roots(self._compact, here)
        root, oldest = int(here.root[0]), int(here.oldest[0])
        at = self._counter.seek(self._compact, root, oldest, int(part.first[place]))
        capacity = max(len(at.choices), len(at.items), len(at.agenda))
        if capacity > self._walk.event.size:
            self._walk = deeper(self._walk, 2 * capacity)
        walk = self._walk
        height, width = at.choices.shape
        walk.choice[: 4 * height].reshape(height, 4)[:, :width] = at.choices
        walk.event[: len(at.items)], walk.marks[: len(at.items)] = at.items.T
        walk.agenda[: len(at.agenda), :2] = at.agenda
        walk.cursor[[ROOT, LEFT, CHOICES]] = place + 1, self._asked.take[place], len(at.choices)

    def skip_end(self, end: int) -> None:
        """Skips the remaining complex events that end at `end`."""
        cursor, ends = self._walk.cursor, self._asked.event
        root = int(cursor[ROOT])
        if root > 0 and ends[root - 1] == end:
            cursor[[ROOT, CHOICES]] = np.searchsorted(ends, end, side="right"), 0


def match_at(compact: S, counter: Counter[S], roots: Roots, place: int, index: int) -> Matches:
    """The complex event number `index` of root number `place`, without enumerating those before it."""
    number = np.array([index], np.int64 if index < _NO_LIMIT else object)
    part = Part(np.array([place]), number, np.array([1]))
    return next(iter(Enumeration(compact, counter, roots, part=part, first_batch=1)))
