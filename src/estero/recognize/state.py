"""Recognition that stops and goes on: what is open and the events it needs, as bytes and back.

The engine says what is open (`engine.snapshot`), the automaton what its states stand for, and the store has
the events. The deterministic automaton itself is not kept: its states are numbered as they were, and its rows
are worked out again when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.engine.recognizer import Recognizer
from estero.engine.runs.runs import Runs
from estero.engine.snapshots.snapshot import Snapshot
from estero.plan.plan import Plan
from estero.recognize.metrics import Extent
from estero.recognize.stages.stage import Stage
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
    from estero.automata.ages import AgedAutomaton
    from estero.automata.determinize import LazyAutomaton
    from estero.automata.strategies import MaxAutomaton

KIND = "a recognition"
"""The name of this kind of state, written into it."""

_FEW = 1 << 13


class Holding:
    """What a recognizer and a store hold together, so that both can be made smaller together.

    Events are marked by label sets number 0 … `marks` - 1. `automaton` is what works out states on demand.
    What `stages` remember is kept, whatever is made smaller.
    """

    def __init__(
        self,
        recognizer: Recognizer[Runs],
        store: EventStore,
        automaton: LazyAutomaton | MaxAutomaton | AgedAutomaton | None,
        marks: int,
        stages: Sequence[Stage[Any]] = (),
    ) -> None:
        self._recognizer = recognizer
        self._stages = stages
        self._marks = marks
        self._store = store
        self._automaton = automaton
        self._kept = 0
        self._compactions = 0

    def compact(self) -> None:
        """Lets go of what is out of reach, if that can be half of what is held."""
        size = self._size()
        if size <= 2 * self._kept + _FEW:
            return
        self._kept = size
        if 2 * self._recognizer.needed < size:
            self._renew()

    def shed(self) -> int:
        """Lets go of what is open in the oldest partitions; of how many, 0 for none."""
        shed = self._recognizer.shed()
        if shed:
            self._renew()
        return shed

    def _renew(self) -> None:
        """Keeps what is needed to go on, and nothing else."""
        snapshot = self._recognizer.snapshot()
        events = self._store.take(snapshot.events)
        self._recognizer.resume(snapshot)
        self._store.restart(events)
        self._kept = self._size()
        self._compactions += 1

    @property
    def size(self) -> int:
        """How much is held, in nodes, entries, partitions and events, in reach or not."""
        return self._size()

    def extent(self) -> Extent:
        """How much is needed to go on; it takes as long as a snapshot, and nothing changes by that."""
        snapshot, runs = self._recognizer.snapshot(), self._recognizer.runs
        staged = [array for stage in self._stages for array in stage.snapshot().values()]
        events = self._store.take(snapshot.events)
        return Extent(
            events=events.num_rows,
            partitions=snapshot.partitions,
            nodes=snapshot.nodes,
            bytes=snapshot.size + events.nbytes + sum(array.nbytes for array in staged),
            states=runs.states,
            compactions=runs.compactions + self._compactions,
        )

    def written(self, plan: Plan, events: pa.Schema) -> bytes:
        """The bytes of what is open; nothing changes by that."""
        snapshot = self._recognizer.snapshot()
        stood_for = [self._stands_for(number) for number in snapshot.states.tolist()]
        arrays = {
            **snapshot.arrays,
            **{name: array for stage in self._stages for name, array in stage.snapshot().items()},
            "states": np.array([number for numbers in stood_for for number in numbers], np.int64),
            "states_sizes": np.array([len(numbers) for numbers in stood_for], np.int64),
            "events": batch_as_array(self._store.take(snapshot.events)),
        }
        return written(State(plan_about(KIND, plan, events), arrays))

    def resume(self, state: bytes, plan: Plan, events: pa.Schema) -> None:
        """Goes on from bytes; raises `DataError` where they are not a state of this plan."""
        about, arrays = read(state)
        refuse_other(about, plan_about(KIND, plan, events))
        with sound_content():
            kept = batch_of_array(arrays.pop("events"))
            if not kept.schema.equals(self._store.schema):
                raise ValueError("other columns of events")
            for stage in self._stages:
                stage.resume(arrays)
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
        return np.array([self._met(part.tolist()) for part in parts], np.int32)

    def _size(self) -> int:
        return self._recognizer.size + self._store.next - self._store.first

    def _stands_for(self, state: int) -> tuple[int, ...]:
        return (state,) if self._automaton is None else self._automaton.described(state)

    def _met(self, description: list[int]) -> int:
        return description[0] if self._automaton is None else self._automaton.met(description)


def plan_about(kind: str, plan: Plan, events: pa.Schema) -> dict[str, str]:
    """What a state of this kind says that it is of; `events` are the columns of classified events."""
    return {"kind": kind, "query": plan.text, "plan": plan.fingerprint(events)}
