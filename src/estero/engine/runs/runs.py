"""The open runs of an automaton: what a recognizer asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import EventBatch, OneEvent
from estero.engine.cursor import CONSUME_NONE, Reported
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.tally.tally import Tally
from estero.engine.walk.counter import Counter
from estero.engine.walk.roots import Roots


class Runs(ABC):
    """The open runs of one automaton, between events; `oldest` is the earliest start inside the window."""

    window: int | None
    """The window, in the unit of the stamps; None where there is none."""
    consume: int = CONSUME_NONE
    """What is forgotten after an answer: one of the CONSUME codes of `cursor`."""
    capacity: int
    """How many rows pools have at first."""
    decides_later: bool = False
    """Whether something that has ended may be found after its end, when no more can change it."""
    compactions: int = 0
    """How often what is out of reach was dropped."""
    in_order: bool = True
    """Whether roots come in the order of their ends, even if what is decided later has to wait for others."""
    total: int | None = None
    """How many complex events end in what was loaded last, where nothing but their number is asked for."""
    counter: Counter[Any]
    """What counts and enumerates the complex events of `compact`."""
    tally: Tally | None = None
    """What counts without looking at `compact`, where that is possible and was asked for."""

    @property
    @abstractmethod
    def compact(self) -> Any:
        """The compact set that roots are in, as `counter` and its walk read it."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How much is held, in nodes, entries and partitions, in reach or not."""

    @property
    def needed(self) -> int:
        """How much of `size`, and how many events, are needed to go on, as far as that is known at once."""
        return 0

    @property
    def states(self) -> int:
        """How many states of the automaton are worked out; 0 where runs wait by keys alone."""
        return 0

    def needed_from(self, oldest: int) -> int:
        """The first event that is needed where windows begin at event `oldest` or later."""
        return oldest

    def decide(self, until: int) -> None:
        """What starts before event `until` has all the ends that it gets: `advance` finds what follows."""
        del until

    @abstractmethod
    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        """Takes a batch to advance over; starts int64[n]: the earliest start in the window of each event.

        `first` is the sequence number of its first event. Raises ValueError where it has not all that the
        automaton asks about; then nothing has changed.
        """

    def load_one(self, event: OneEvent, oldest: int, number: int) -> None:
        """As `load`, of one event; `oldest` is the earliest start in its window."""
        self.load(event.batch(), np.array([oldest]), number)

    @abstractmethod
    def advance(self, reported: Reported, last: int) -> int:
        """Goes on with the batch until FULL, GROW, or DONE: before its event number `last`."""

    @abstractmethod
    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        """Provides the capacity whose lack ended `advance`, first by dropping what is out of reach.

        Nothing is dropped while roots are `held`: they stay valid, and are renumbered if they must be.
        """

    def forget(self) -> None:
        """Forgets what was read up to the event that `advance` stopped after, or of its partition only."""
        return

    @property
    def sheds(self) -> bool:
        """Whether there are partitions that `shed` can forget."""
        return False

    def shed(self, oldest: int) -> int:
        """Forgets what is open in some of the partitions, the oldest ones; of how many, 0 for none."""
        del oldest
        return 0

    @abstractmethod
    def idle(self, oldest: int) -> bool:
        """Whether no run is open and nothing else has to be remembered."""

    @abstractmethod
    def snapshot(self, oldest: int) -> Snapshot:
        """What is needed to go on, without what has left the window; nothing changes by that."""

    @abstractmethod
    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless it can go on from a snapshot with label sets 0 … `marks` - 1."""

    @abstractmethod
    def resume(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot of the same automaton."""
