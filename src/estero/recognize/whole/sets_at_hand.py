"""Sets of complex events as circuits, and the properties of their gates: labels, attributes, times.

If the plan filters complex events by enumerating, if LIMIT chooses among them, or if a share of them is
requested, they are listed, and each is a circuit of its own. Otherwise they are read from the compact set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.asked_values import Operand
from estero.answers.event_store import EventStore
from estero.classify.arrays import known_in
from estero.classify.column_names import TIME, event_column
from estero.engine.store.arena import UNION
from estero.engine.walk.blocks import in_blocks
from estero.engine.walk.circuit import Circuit
from estero.engine.walk.circuits import Counted, circuit_of, contexts, counted, unfolded
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import ReadableSets, SetReader
from estero.recognize.whole.partitions import Partitions
from estero.system.cached_property import cached_property

SMALL = 1 << 62
"""Sums below this are computed in words."""


@dataclass
class SetAtHand:
    """The complex events below some gates of a circuit, in order; ends int64: the event at which each ends.

    `roots` are the roots of the compact set from which they were read, None if they were listed.
    """

    reader: SetReader
    store: EventStore
    partitions: Partitions
    circuit: Circuit
    gates: NDArray[np.int32]
    ends: NDArray[np.int64]
    roots: Roots | None
    begun: NDArray[np.intp] | None = None
    """The gates at which complex events start, if the circuit is not in the order of enumeration."""

    @property
    def starts_known(self) -> bool:
        """Whether each complex event has one gate at which it starts."""
        return self.begun is not None or not self.circuit.branches

    def chosen(self, places: NDArray[np.intp]) -> Iterator[SetAtHand]:
        """Some of the roots, in circuits in the order of enumeration."""
        if self.roots is None:
            raise ValueError("complex events that are listed are in order")
        runs, roots = self.reader.recognizer.runs, self.roots.chosen(places)
        for circuit, gates, here in unfolded(runs.compact, runs.counter, roots):
            part = roots.part(here.start, here.stop)
            yield SetAtHand(self.reader, self.store, self.partitions, circuit, gates, part.event, part)

    def partitions_of(self, events: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the partitions of events."""
        return self.partitions.of_events(self.reader.plan, self.store, events)

    @cached_property
    def of_roots(self) -> NDArray[np.int64]:
        """The number of the partition of each root."""
        return self.partitions_of(self.ends)

    @cached_property
    def of_gates(self) -> NDArray[np.int64]:
        """The number of the partition of each gate with an event; 0 for others."""
        gates = self.events
        return self.spread(gates, self.partitions_of(self.circuit.event[gates]))

    @property
    def parts(self) -> int:
        """The number of partitions, including those of the roots."""
        return max(self.partitions.number, int(self.of_roots.max(initial=0)) + 1)

    @cached_property
    def numbers(self) -> Counted:
        """The numbers of complex events below each gate."""
        return counted(self.circuit, self.gates)

    @cached_property
    def counts(self) -> NDArray[Any]:
        """The number of complex events below each root."""
        return self.numbers.below[self.gates]

    @property
    def total(self) -> int:
        """The number of all complex events."""
        return int(self.counts.sum())

    @cached_property
    def taken(self) -> NDArray[Any]:
        """The number of complex events in which each gate takes part."""
        return contexts(self.circuit, self.gates, self.numbers)

    def listed(self) -> Iterator[SetAtHand]:
        """The same complex events, each with a gate of its own."""
        if self.roots is None:
            yield self
        else:
            for matches in self.reader.recognizer.matches(self.roots):
                yield _listed(self.reader, self.store, self.partitions, matches)

    def marked(self, label: int) -> NDArray[np.intp]:
        """The gates whose events have a label."""
        lookup, mark = self.reader.reporter.label_lookup(label), self.circuit.mark
        gates: NDArray[np.intp] = np.flatnonzero((mark >= 0) & lookup[np.maximum(mark, 0)])
        return gates

    @cached_property
    def events(self) -> NDArray[np.intp]:
        """The gates that have an event, marked or not."""
        gates: NDArray[np.intp] = np.flatnonzero(self.circuit.mark != UNION)
        return gates

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The gates at which complex events start; only where `starts_known`."""
        if self.begun is not None:
            return self.begun
        gates: NDArray[np.intp] = np.flatnonzero(
            (self.circuit.mark != UNION) & (np.diff(self.circuit.first) == 0)
        )
        return gates

    def attribute(self, operand: Operand, gates: NDArray[np.intp]) -> pa.Array:
        """An attribute of the events of gates."""
        if operand.attribute is None:
            raise ValueError("events have no value")
        name = self.reader.plan.shown[operand.label].attributes[operand.attribute]
        column = event_column(name)
        distinct, places = np.unique(self.circuit.event[gates], return_inverse=True)
        values = self.store.take(distinct, [column]).column(0)
        return values.take(pa.array(places))

    def times(self, events: NDArray[np.int64]) -> NDArray[Any]:
        """The times of events in ticks: int64, or objects where differences may need more."""
        distinct, places = np.unique(events, return_inverse=True)
        ticks: NDArray[Any] = numbers_of(self.store.take(distinct, [TIME]), TIME)
        if ticks.size and (int(ticks.max()) >= SMALL or int(ticks.min()) <= -SMALL):
            ticks = ticks.astype(object)
        return ticks[places]

    def spread(self, gates: NDArray[np.intp], values: NDArray[Any]) -> NDArray[Any]:
        """Values of these gates, and 0 for all others."""
        size = self.circuit.event.size
        spread = (
            np.zeros(size, values.dtype)
            if values.dtype != object
            else np.zeros(size, np.int64).astype(object)
        )
        spread[gates] = values
        return spread

    def has(self, gates: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each gate is among these."""
        mask = np.zeros(self.circuit.event.size, np.bool_)
        mask[gates] = True
        return mask


def sets_at_hand(sets: ReadableSets, partitions: Partitions) -> Iterator[SetAtHand]:
    """All complex events of `sets`, in order, in parts that are valid until the next one is requested."""
    for reader, ended in sets:
        store = ended.store or reader.store
        if _are_listed(reader, ended):
            for matches in reader.matches(ended):
                if matches.start.size:
                    yield _listed(reader, store, partitions, matches)
        elif ended.roots.event.size:
            runs = reader.recognizer.runs
            for circuit, gates, here, begun in in_blocks(runs.compact, runs.counter, ended.roots):
                roots = ended.roots.part(here.start, here.stop)
                yield SetAtHand(reader, store, partitions, circuit, gates, roots.event, roots, begun)


def _are_listed(reader: SetReader, ended: EndedSets) -> bool:
    """Whether the requested complex events can only be found by enumeration."""
    chosen = reader.limit is not None or ended.part is not None or ended.sifted is not None
    return chosen or reader.plan.needs_enumeration


def _listed(reader: SetReader, store: EventStore, partitions: Partitions, matches: Matches) -> SetAtHand:
    circuit, gates = circuit_of(matches)
    return SetAtHand(reader, store, partitions, circuit, gates, matches.end, None)


def integers_of(column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers as int64, float64, or Python integers, and which are known; decimals without their point.

    Unknown ones are 0.
    """
    known = known_in(column)
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        return numbers, known
    if pa.types.is_decimal(kind):
        scaled = [_scaled(value, kind.scale) for value in column.to_pylist()]
        return _objects(scaled), known
    if pa.types.is_uint64(kind):
        return _objects([value or 0 for value in column.to_pylist()]), known
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), known


def _scaled(value: Any, scale: int) -> int:
    """A decimal number as an integer of its last digits; 0 for None."""
    if value is None:
        return 0
    numerator, denominator = value.as_integer_ratio()
    return int(numerator * 10**scale // denominator)


def _objects(numbers: list[int]) -> NDArray[Any]:
    objects = np.empty(len(numbers), object)
    objects[:] = numbers
    return objects
