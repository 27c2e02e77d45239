"""The open runs of a recognition: how many at which step, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.automata.cea import CEA
from estero.classify.column_names import POSITION, TIME
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.store.checks import Arrays
from estero.engine.store.hash_index import TAG
from estero.plan.plan import Opened, Plan
from estero.plan.stages import StagedPlan
from estero.plan.steps import labels_of_steps, step_behind, steps_of_states
from estero.recognize.batch_columns import numbers_of

_LOWER = np.uint64((1 << 32) - 1)


class OpenRuns(NamedTuple):
    """The number of runs at each step (`RecognizerProgress.steps`), and the first event of any open run.

    `oldest` is the position and the time, in ticks, of the first event that an open run has marked; None if
    nothing is open.
    """

    steps: Mapping[int, int]
    oldest: tuple[int, int] | None


def open_runs(plan: Plan, opened: Opened, snapshot: Snapshot, store: EventStore) -> OpenRuns:
    """The open runs in a snapshot of the runs of a plan; `store` has its events."""
    oldest = None
    marked = snapshot.events[np.unique(snapshot.arrays.get("arena.event", np.arange(snapshot.events.size)))]
    if marked.size:
        first = store.take(marked[:1], [POSITION, TIME])
        oldest = int(numbers_of(first, POSITION)[0]), int(numbers_of(first, TIME)[0])
    return OpenRuns(_steps(plan, opened, snapshot), oldest)


def _steps(plan: Plan, opened: Opened, snapshot: Snapshot) -> dict[int, int]:
    if isinstance(plan, StagedPlan):
        return dict(Counter(_stages(snapshot.arrays)))
    steps, machine, automaton = labels_of_steps(plan.tree.pattern), plan.machine, opened.automaton
    if automaton is None or not isinstance(machine, CEA):
        done = [step_behind(labels, steps, 1) for labels in opened.label_sets]
        return dict(Counter(done[mark] for mark in _marks_that_wait(snapshot.arrays).tolist()))
    of_state = steps_of_states(machine, steps)
    state = snapshot.state
    sizes = np.bincount(state[state >= 0], minlength=snapshot.states.size).tolist()
    runs: Counter[int] = Counter()
    for number, size in zip(snapshot.states.tolist(), sizes, strict=True):
        going_on = automaton.behind(number) - machine.final
        if size and going_on:
            runs[max(of_state[place] for place in going_on)] += size
    return dict(runs)


def _stages(arrays: Arrays) -> list[int]:
    """The number of events of each candidate of a sequence, pending result, or sample."""
    if "matchings.matched" in arrays:
        conditions = arrays["matchings.event"].shape[1]
        matched = np.minimum(
            arrays["matchings.matched"], conditions - 1
        )  # after a sample any event makes one
        return [int(number) for number in matched[matched > 0]]
    kinds = arrays["arena.kind"]
    candidates = kinds[(arrays["index"][:, TAG] & _LOWER).astype(np.int64)]
    pending = kinds[arrays.get("pending.root", np.empty(0, np.int32))]
    return [int(stage) + 1 for stage in np.concatenate((candidates, pending))]


def _marks_that_wait(arrays: Arrays) -> NDArray[np.int32]:
    """The marks of the events that wait for others in an index by keys."""
    if "entries.node" in arrays:
        return np.asarray(arrays["nodes.mark"][np.unique(arrays["entries.node"])], np.int32)
    return np.asarray(arrays["products.mark"][np.unique(arrays["nodes.product"])], np.int32)
