"""Recognition that stops and goes on: what is open and the events it needs, as bytes and back.

The engine says what is open (`engine.snapshot`), the automaton what its states stand for, and the store has
the events. The deterministic automaton itself is not kept: its states are numbered as they were, and its rows
are worked out again when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.answers.sieve.starts import Starts
from estero.engine.recognizer import Recognizer, Runs
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.store.checks import Arrays
from estero.plan.plan import Plan
from estero.recognize.state_bytes import (
    State,
    batch_as_array,
    batch_of_array,
    read,
    refuse_other,
    sound_content,
    written,
)

if TYPE_CHECKING:
    from estero.answers.sieve.nearby import NearbyEvents
    from estero.automata.ages import AgedAutomaton
    from estero.automata.determinize import LazyAutomaton
    from estero.automata.strategies import MaxAutomaton

KIND = "a recognition"
"""What such a state says that it is of."""

_OF_CANDIDATES = "events_of_candidates"
_NEARBY = "events_nearby_"

_FEW = 1 << 13


class Remembering(Protocol):
    """What a recognition remembers beside what is open."""

    def arrays(self) -> Arrays:
        """What has to be remembered, for `resume`."""

    def resume(self, arrays: Arrays) -> None:
        """Takes what `arrays` gave out of them; raises ValueError or KeyError for other arrays."""


class Holding:
    """What a recognizer and a store hold together, so that both can be made smaller together.

    Events are marked by label sets number 0 … `marks` - 1. `automaton` is what works out states on demand.
    What `others` remember is kept, what may be chosen for `starts`, and events `nearby`, whatever is made
    smaller.
    """

    def __init__(
        self,
        recognizer: Recognizer[Runs],
        store: EventStore,
        automaton: LazyAutomaton | MaxAutomaton | AgedAutomaton | None,
        marks: int,
        others: Sequence[Remembering] = (),
        starts: Starts | None = None,
        nearby: NearbyEvents | None = None,
    ) -> None:
        self._recognizer = recognizer
        self._others = others
        self._starts = starts
        self._nearby = nearby
        self._marks = marks
        self._store = store
        self._automaton = automaton
        self._kept = 0

    def compact(self) -> None:
        """Lets go of what is out of reach, if that can be half of what is held."""
        size = self._size()
        if size <= 2 * self._kept + _FEW:
            return
        self._kept = size
        if 2 * self._recognizer.needed < size:
            snapshot = self._recognizer.snapshot()
            events = self._store.take(snapshot.events)
            self._recognizer.resume(snapshot)
            self._store.restart(events)
            self._kept = self._size()

    def written(self, plan: Plan, events: pa.Schema) -> bytes:
        """The bytes of what is open; nothing changes by that."""
        snapshot = self._recognizer.snapshot()
        stood_for = [self._stands_for(number) for number in snapshot.states.tolist()]
        arrays = {
            **snapshot.arrays,
            **{name: array for each in self._others for name, array in each.arrays().items()},
            "states": np.array([each for numbers in stood_for for each in numbers], np.int64),
            "states_sizes": np.array([len(numbers) for numbers in stood_for], np.int64),
            "events": batch_as_array(self._store.take(snapshot.events)),
        }
        if self._starts is not None:
            candidates, of_candidates = self._starts.arrays()
            arrays |= {**candidates, _OF_CANDIDATES: batch_as_array(of_candidates)}
        if self._nearby is not None:
            batches = enumerate(self._nearby.batches)
            arrays |= {f"{_NEARBY}{number}": batch_as_array(batch) for number, batch in batches}
        return written(State(plan_about(KIND, plan, events), arrays))

    def resume(self, state: bytes, plan: Plan, events: pa.Schema) -> None:
        """Goes on from bytes; raises `DataError` where they are not a state of this plan."""
        about, arrays = read(state)
        refuse_other(about, plan_about(KIND, plan, events))
        with sound_content():
            kept = batch_of_array(arrays.pop("events"))
            if not kept.schema.equals(self._store.schema):
                raise ValueError("other columns of events")
            for each in self._others:
                each.resume(arrays)
            if self._starts is not None:
                of_candidates = batch_of_array(arrays.pop(_OF_CANDIDATES))
                self._starts.resume(arrays, of_candidates, self._marks)
            if self._nearby is not None:
                names = [f"{_NEARBY}{number}" for number in range(len(self._nearby.batches))]
                self._nearby.restart([batch_of_array(arrays.pop(name)) for name in names])
            states = self._states_of(arrays.pop("states"), arrays.pop("states_sizes"))
            snapshot = Snapshot(np.arange(kept.num_rows), states, arrays)
            self._recognizer.check(snapshot, self._marks)
            self._recognizer.resume(snapshot)
        self._store.restart(kept)
        self._kept = self._size()

    def _states_of(self, numbers: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the states that stand for these."""
        if (sizes < 1).any() or int(sizes.sum()) != numbers.size:
            raise ValueError("states without a beginning or an end")
        parts = np.split(numbers, np.cumsum(sizes)[:-1]) if sizes.size else []
        return np.array([self._met(each.tolist()) for each in parts], np.int32)

    def _size(self) -> int:
        return self._recognizer.size + self._store.next - self._store.first

    def _stands_for(self, state: int) -> tuple[int, ...]:
        return (state,) if self._automaton is None else self._automaton.described(state)

    def _met(self, description: list[int]) -> int:
        return description[0] if self._automaton is None else self._automaton.met(description)


def plan_about(kind: str, plan: Plan, events: pa.Schema) -> dict[str, str]:
    """What a state of this kind says that it is of; `events` are the columns of classified events."""
    return {"kind": kind, "query": plan.text, "plan": plan.fingerprint(events)}
