"""The state of a recognition that stops and continues later: what is open and the events it needs, as bytes.

The engine provides the open state (`engine.snapshot`), the automaton the meaning of its states, and the store
the events. The deterministic automaton itself is not kept: its states keep their numbers, and its rows are
computed again on demand.
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
    """The state of a recognizer and a store together, so that both can be reduced together.

    Events are marked by label sets number 0 … `marks` - 1. `automaton` computes states on demand. The state
    of `stages` is kept in any case.
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
        """Drops what is out of reach, if that may be half of what is held."""
        size = self._size()
        if size <= 2 * self._kept + _FEW:
            return
        self._kept = size
        if 2 * self._recognizer.needed < size:
            self._renew()

    def shed(self) -> int:
        """Drops the open state of the oldest partitions; returns how many, 0 for none."""
        shed = self._recognizer.shed()
        if shed:
            self._renew()
        return shed

    def _renew(self) -> None:
        """Keeps the state needed to continue, and nothing else."""
        snapshot = self._recognizer.snapshot()
        events = self._store.take(snapshot.events)
        self._recognizer.resume(snapshot)
        self._store.restart(events)
        self._kept = self._size()
        self._compactions += 1

    @property
    def size(self) -> int:
        """The number of nodes, entries, partitions and events held, in reach or not."""
        return self._size()

    def extent(self) -> Extent:
        """The size of the state needed to continue; it takes as long as a snapshot, and changes nothing."""
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
        """The open state as bytes; changes nothing."""
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
        """Continues from bytes; raises `DataError` if they are not a state of this plan."""
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
    """The description in a state of this kind; `events` are the columns of classified events."""
    return {"kind": kind, "query": plan.text, "plan": plan.fingerprint(events)}
