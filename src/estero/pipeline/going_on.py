"""Recognition that stops and goes on: what is open and the events it needs, as bytes and back.

The engine says what is open (`engine.snapshot`), the automaton what its states stand for, and the store has
the events. The deterministic automaton itself is not kept: its states are numbered as they were, and its rows
are worked out again when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from estero.engine.snapshot import Snapshot
from estero.pipeline.report import EventStore
from estero.pipeline.state_bytes import (
    State,
    batch_as_array,
    batch_of_array,
    read,
    refuse_other,
    written,
)
from estero.plan_identity import fingerprint, query_of
from estero.plan_joins import AnyPlan

KIND = "a recognition"
"""What such a state says that it is of."""

_FEW = 1 << 13


class States(Protocol):
    """A deterministic automaton that is worked out on demand, as far as its states are concerned."""

    def described(self, state: int) -> tuple[int, ...]:
        """What `state` stands for, whatever its number."""

    def met(self, description: Sequence[int]) -> int:
        """The number of the state that is so described."""


class Resumable(Protocol):
    """A recognizer of the engine."""

    @property
    def size(self) -> int:
        """How much it holds, in nodes and partitions, of which some may be out of reach."""

    def snapshot(self) -> Snapshot:
        """What is open."""

    def resume(self, snapshot: Snapshot) -> None:
        """Goes on from there."""


class Holding:
    """What a recognizer and a store hold together, so that both can be made smaller together."""

    def __init__(self, recognizer: Resumable, store: EventStore, automaton: States | None) -> None:
        self._recognizer = recognizer
        self._store = store
        self._automaton = automaton
        self._kept = 0

    def compact(self) -> None:
        """Lets go of what is out of reach, if that can be half of what is held."""
        if self._size() > 2 * self._kept + _FEW:
            snapshot = self._recognizer.snapshot()
            events = self._store.take(snapshot.events)
            self._recognizer.resume(snapshot)
            self._store.restart(events)
            self._kept = self._size()

    def written(self, plan: AnyPlan, events: pa.Schema) -> bytes:
        """The bytes of what is open; nothing changes by that."""
        snapshot = self._recognizer.snapshot()
        stood_for = [self._stands_for(number) for number in snapshot.states.tolist()]
        arrays = {
            **snapshot.arrays,
            "states": np.array([each for numbers in stood_for for each in numbers], np.int64),
            "states_sizes": np.array([len(numbers) for numbers in stood_for], np.int64),
            "events": batch_as_array(self._store.take(snapshot.events)),
        }
        return written(State(_about(plan, events), arrays))

    def resume(self, state: bytes, plan: AnyPlan, events: pa.Schema) -> None:
        """Goes on from bytes; raises `DataError` where they are not a state of this plan."""
        about, arrays = read(state)
        refuse_other(about, _about(plan, events))
        kept = batch_of_array(arrays.pop("events"))
        ends = np.cumsum(arrays.pop("states_sizes"))
        parts = np.split(arrays.pop("states"), ends[:-1]) if ends.size else []
        states = np.array([self._met(each.tolist()) for each in parts], np.int32)
        self._recognizer.resume(Snapshot(np.arange(kept.num_rows), states, arrays))
        self._store.restart(kept)
        self._kept = self._size()

    def _size(self) -> int:
        return self._recognizer.size + self._store.next - self._store.first

    def _stands_for(self, state: int) -> tuple[int, ...]:
        return (state,) if self._automaton is None else self._automaton.described(state)

    def _met(self, description: list[int]) -> int:
        return description[0] if self._automaton is None else self._automaton.met(description)


def _about(plan: AnyPlan, events: pa.Schema) -> dict[str, str]:
    return {"kind": KIND, "query": query_of(plan), "plan": fingerprint(plan, events)}
