"""Events that an absence forbids near a start or after an end, if it compares them with other events.

A run does not mark them. They are kept beside the events of the window, and the residual filter is evaluated
on each complex event with each of the nearby events (docs/language.md, "NOT … FOR").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore, joined_events
from estero.answers.measures.evaluator import TRUE
from estero.answers.measures.marked import EventsAtHand, Integers, Marked, Mask
from estero.answers.sieve.conditions import Check
from estero.answers.sieve.instances import Instances, MarkTable
from estero.answers.sieve.starts import partition_columns
from estero.automata.residual import Residual
from estero.classify.column_names import BITS, POSITION, TIME, event_column, numbered
from estero.engine.batch import BITS_IN_WORD
from estero.engine.int64 import LEAST, saturated
from estero.engine.store.hashing import new_table, number_rows
from estero.engine.walk.matches import Matches, offsets_of, places_of, taken
from estero.language.tree import expressions as e
from estero.language.tree.conditions import conjuncts
from estero.plan.deadlines import Deadline
from estero.plan.plan import Plan

PAIRS = 1 << 18
"""The number of pairs of a complex event and a nearby event evaluated at once, unless one match has more."""

_SIGN = np.uint64(1 << 63)


class _Known(NamedTuple):
    """n events in stream order: position int64[n], time int64[n], keys uint64[n, 0 or 2]."""

    position: Integers
    time: Integers
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, events: pa.RecordBatch, key_columns: Sequence[str]) -> _Known:
        keys = [_numbers(events, name).view(np.uint64) for name in key_columns]
        rows = events.num_rows
        return cls(
            _numbers(events, POSITION),
            _numbers(events, TIME),
            np.column_stack(keys) if keys else np.empty((rows, 0), np.uint64),
        )


class _Forbidden:
    """The events that one absence forbids: `store` holds them, `known` their positions, times and keys."""

    def __init__(self, deadline: Deadline, events: pa.Schema, key_columns: Sequence[str]) -> None:
        self.deadline = deadline
        self.store = EventStore(events, key_columns)
        self._key_columns = key_columns
        self._words = numbered(BITS, events.names)
        self._parts: list[_Known] = []
        self._first = 0

    def enter(self, classified: pa.RecordBatch) -> None:
        """Adds the forbidden ones of the next events."""
        word, bit = divmod(self.deadline.forbidden, BITS_IN_WORD)
        words = _numbers(classified, self._words[word]).view(np.uint64)
        rows = np.flatnonzero(words >> np.uint64(bit) & np.uint64(1))
        if rows.size:
            self.restart(classified.take(pa.array(rows)))

    def restart(self, events: pa.RecordBatch) -> None:
        """Replaces the events by these."""
        self.store.append(events)
        self._parts.append(_Known.of(events, self._key_columns))

    @property
    def known(self) -> _Known:
        """The positions, times and keys of the events."""
        if len(self._parts) != 1:
            parts = self._parts or [_Known.of(self.batch, self._key_columns)]
            self._parts = [_Known._make(map(np.concatenate, zip(*parts, strict=True)))]
        return self._parts[0]

    @property
    def batch(self) -> pa.RecordBatch:
        """The events."""
        return self.store.take(np.arange(self.store.first, self.store.next))

    def events(self, places: Integers) -> tuple[pa.RecordBatch, Integers]:
        """A batch that contains the events at some indexes, and their rows in it."""
        excerpt, (rows,) = self.store.excerpt([self._first + places])
        return excerpt, rows

    def values(self, attribute: str, places: slice) -> pa.Array:
        """The values of an attribute of the events at these indexes."""
        name = event_column(attribute)
        return self.store.take(self._first + np.arange(places.start, places.stop), [name]).column(name)

    def forget(self, oldest: int) -> None:
        """Forgets events that are not near any start or end from time `oldest` on."""
        near = oldest if self.deadline.ahead else saturated(oldest - self.deadline.ticks)
        known = self.known
        self.store.trim(self._first + int(np.searchsorted(known.time, np.int64(near))))
        gone = self.store.first - self._first
        if gone:
            self._parts = [_Known._make(array[gone:] for array in known)]
            self._first = self.store.first

    def near(self, at: _Known) -> tuple[Integers, Integers]:
        """The index ranges [low, high) of those that are near the starts, or ends, `at`."""
        known, ticks = self.known, np.uint64(self.deadline.ticks)
        times, ends = _in_order(known.time), _in_order(at.time)
        if self.deadline.ahead:
            low = np.searchsorted(known.position, at.position, side="right")
            last = ends + np.minimum(ticks, ~ends)
            return low, np.maximum(low, np.searchsorted(times, last, side="right"))
        high = np.searchsorted(known.position, at.position)
        return np.minimum(high, np.searchsorted(times, ends - np.minimum(ticks, ends))), high


class NearbyEvents:
    """The events of one stream that a plan's compared absences forbid; `events` is the classified schema."""

    def __init__(self, plan: Plan, events: pa.Schema) -> None:
        self._key_columns = partition_columns(plan)
        compared = dict.fromkeys(
            replace(deadline, asking=()) for deadline in plan.deadlines if deadline.compared
        )
        self._forbidden = [_Forbidden(watched, events, self._key_columns) for watched in compared]
        self._now = LEAST

    def enter(self, classified: pa.RecordBatch) -> None:
        """Adds the forbidden ones of the next events, before matches near them are checked."""
        for forbidden in self._forbidden:
            forbidden.enter(classified)
        self._now = int(classified.column(TIME)[-1].as_py())

    def forget(self, oldest: int | None) -> None:
        """Forgets events that are not near anything from time `oldest` on; None: from the last event on."""
        for forbidden in self._forbidden:
            forbidden.forget(self._now if oldest is None else oldest)

    def idle(self, time: int) -> bool:
        """Whether no past event matters to starts or ends from time `time` on."""
        before = [forbidden for forbidden in self._forbidden if not forbidden.deadline.ahead]
        return not any(
            (forbidden.known.time >= saturated(time - forbidden.deadline.ticks)).any() for forbidden in before
        )

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """The events, for `restart`."""
        return [forbidden.batch for forbidden in self._forbidden]

    def restart(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Restores the state from `batches`; raises ValueError for other batches."""
        for forbidden, batch in zip(self._forbidden, batches, strict=True):
            if not batch.schema.equals(forbidden.store.schema):
                raise ValueError("forbidden events have other columns")
            forbidden.restart(batch)

    def refuted(
        self,
        residual: Residual,
        check: Check,
        matches: Matches,
        events: EventsAtHand,
        store: EventStore,
        marks: MarkTable,
    ) -> Mask:
        """The matches for which a nearby event makes the condition true; `events` are those they mark."""
        nearby = residual.nearby
        if nearby is None:
            raise TypeError("a filter of what is nearby")
        (forbidden,) = (
            candidate
            for candidate in self._forbidden
            if (candidate.deadline.said, candidate.deadline.ahead) == (nearby.said, nearby.ahead)
        )
        result = np.zeros(matches.start.size, np.bool_)
        ends = matches.end if nearby.ahead else matches.start
        at = _Known.of(store.take(ends, [POSITION, TIME, *self._key_columns]), self._key_columns)
        low, high = forbidden.near(at)
        if not (high > low).any():
            return result
        within = slice(int(low[high > low].min()), int(high.max()))
        of_matches = Instances(residual, matches, events, marks)
        groups = _same_key(forbidden.known.keys[within], at.keys)
        for name, values in _equal_values(residual, of_matches):
            groups = _both(groups, _same_value(forbidden.values(name, within), values))
        places, first, sizes = _grouped(groups, low - within.start, high - within.start)
        for rows in _blocks(sizes):
            match = np.repeat(rows, sizes[rows])
            place = within.start + places[places_of(first[rows], sizes[rows])]
            if place.size:
                pairs = _pairs(residual, taken(matches, rows), store, forbidden.events(place), marks)
                pairs.match = match - rows[0]
                result[match[check(pairs) == TRUE]] = True
        return result


class _Pairs(Instances):
    """Pairs of a complex event and a nearby event, one per instance; `rows` are those of the latter."""

    def __init__(
        self,
        residual: Residual,
        matches: Matches,
        events: EventsAtHand,
        marks: MarkTable,
        rows: Integers,
    ) -> None:
        super().__init__(residual, matches, events, marks)
        self._nearby = () if residual.nearby is None else residual.nearby.variables
        self._rows = rows

    def of(self, variable: str) -> Marked:
        """The events of a variable."""
        if variable in self._nearby:
            return Marked(np.arange(len(self) + 1), self._rows)
        marked = super().of(variable)
        sizes = marked.sizes[self.match]
        return Marked(offsets_of(sizes), marked.rows[places_of(marked.offsets[:-1][self.match], sizes)])


def _pairs(
    residual: Residual,
    matches: Matches,
    store: EventStore,
    nearby: tuple[pa.RecordBatch, Integers],
    marks: MarkTable,
) -> _Pairs:
    excerpt, (rows,) = store.excerpt([matches.event])
    events, rows_nearby = nearby
    together = joined_events([excerpt, events])
    at_hand = EventsAtHand(together, np.concatenate((rows, rows_nearby + excerpt.num_rows)))
    at_hand.rows, rows_nearby = np.split(at_hand.rows, [rows.size])
    return _Pairs(residual, matches, at_hand, marks, rows_nearby)


# ----------------------------------------------------------------------------- candidates for pairs

Groups = tuple[Integers, Integers]
"""A number, from 0, for each event and each match; only those with the same number can form a pair."""


def _same_key(events: NDArray[np.uint64], matches: NDArray[np.uint64]) -> Groups:
    together = np.concatenate((events, matches))
    numbers = np.zeros(len(together), np.int32)
    if together.shape[1]:
        number_rows(new_table(2 * len(together), 2), np.ascontiguousarray(together), numbers, insert=True)
    return _divided(numbers.astype(np.int64), len(events))


def _same_value(events: pa.Array, matches: pa.Array) -> Groups:
    codes = pa.concat_arrays([events, matches]).dictionary_encode().indices
    numbers = codes.cast(pa.int64()).fill_null(-1).to_numpy() + 2
    numbers[len(events) :][numbers[len(events) :] == 1] = 0  # NULL equals nothing
    return _divided(numbers, len(events))


def _divided(numbers: Integers, events: int) -> Groups:
    return numbers[:events], numbers[events:]


def _both(one: Groups, other: Groups) -> Groups:
    numbers = np.concatenate(one) * (int(np.concatenate(other).max()) + 1) + np.concatenate(other)
    _, dense = np.unique(numbers, return_inverse=True)
    return _divided(dense.astype(np.int64), len(one[0]))


def _equal_values(residual: Residual, at: Instances) -> Iterator[tuple[str, pa.Array]]:
    """The attributes of nearby events that must equal a value of each match, and these values.

    Only those for which one event of each match has the value, and of types whose equal values are identical.
    """
    nearby = () if residual.nearby is None else residual.nearby.variables
    condition = residual.condition
    for part in conjuncts(condition) if isinstance(condition, e.Node) else ():
        match part:
            case e.Comparison(
                operator="=", left=e.Attribute(one, str() as left), right=e.Attribute(two, str() as right)
            ) if (left in nearby) != (right in nearby):
                own, variable, other = (one, right, two) if left in nearby else (two, left, one)
                marked = at.of(variable)
                kinds = {at.events.column(name).type for name in (own, other) if at.events.has(name)}
                if at.events.has(own) and at.events.has(other) and len(kinds) == 1:
                    (kind,) = kinds
                    if _is_exact(kind) and bool((marked.sizes == 1).all()):
                        yield own, at.events.values(other, marked.rows)
            case _:
                pass


def _is_exact(kind: pa.DataType) -> bool:
    """Whether values of this type are equal only if they are identical."""
    tests = pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean
    return any(test(kind) for test in tests)


def _grouped(groups: Groups, low: Integers, high: Integers) -> tuple[Integers, Integers, Integers]:
    """The indexes of events by group; and for each match the first that may be near, and their number."""
    of_events, of_matches = groups
    places = np.argsort(of_events, kind="stable")
    step = of_events.size + 1
    order = of_events[places] * step + places
    first, last = (
        np.searchsorted(order, of_matches * step + np.clip(times, 0, of_events.size)) for times in (low, high)
    )
    return places, first, np.maximum(last - first, 0)


def _blocks(sizes: Integers) -> Iterator[Integers]:
    """Ascending rows in blocks of about `PAIRS` pairs each."""
    block = np.cumsum(sizes) // PAIRS
    yield from np.split(np.arange(sizes.size), np.flatnonzero(np.diff(block)) + 1)


def _in_order(times: Integers) -> NDArray[np.uint64]:
    """Unsigned numbers in the order of the times, and at the same distances."""
    return times.view(np.uint64) ^ _SIGN


def _numbers(batch: pa.RecordBatch, name: str) -> Integers:
    return np.ascontiguousarray(batch.column(name).to_numpy(zero_copy_only=False))
