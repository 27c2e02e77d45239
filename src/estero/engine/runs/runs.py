"""The open runs of an automaton: the interface for recognizers."""

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
    """The events that are forgotten after an answer: one of the CONSUME codes of `cursor`."""
    capacity: int
    """The number of rows of pools at first."""
    decides_later: bool = False
    """Whether a complex event may be reported after its end, once nothing more can change it."""
    compactions: int = 0
    """The number of times that what is out of reach was dropped."""
    in_order: bool = True
    """Whether roots come in the order of their ends, even if decided ones have to wait for others."""
    first_only: bool = False
    """Whether only the first complex event of each end will be read; to be set before any event is read."""
    total: int | None = None
    """The number of complex events that end in the last batch loaded, if only their number is needed."""
    counter: Counter[Any]
    """The counter of the complex events of `compact`, which also enumerates them."""
    tally: Tally | None = None
    """The counter that does not read `compact`, if that is possible and was requested."""

    @property
    @abstractmethod
    def compact(self) -> Any:
        """The compact set of the roots, in the form read by `counter` and its walk."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of nodes, entries and partitions held, in reach or not."""

    @property
    def needed(self) -> int:
        """How much of `size`, and how many events, are needed to continue, as far as is known at once."""
        return 0

    @property
    def states(self) -> int:
        """The number of states of the automaton that are known; 0 if runs wait by keys alone."""
        return 0

    def needed_from(self, oldest: int) -> int:
        """The first event needed if windows begin at event `oldest` or later."""
        return oldest

    def decide(self, until: int) -> None:
        """Declares that starts before event `until` get no more ends: `advance` reports what follows."""
        del until

    @abstractmethod
    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        """Loads a batch for `advance`; starts int64[n]: the earliest start in the window of each event.

        `first` is the sequence number of its first event. Raises ValueError, without any change, if it lacks
        an array that the automaton reads.
        """

    def load_one(self, event: OneEvent, oldest: int, number: int) -> None:
        """As `load`, for one event; `oldest` is the earliest start in its window."""
        self.load(event.batch(), np.array([oldest]), number)

    @abstractmethod
    def advance(self, reported: Reported, last: int) -> int:
        """Advances over the batch until FULL, GROW, or DONE, which is before its event number `last`."""

    @abstractmethod
    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        """Provides the capacity that `advance` lacked, first by dropping what is out of reach.

        Nothing is dropped while roots are `held`: they stay valid, and are renumbered if necessary.
        """

    def forget(self) -> None:
        """Forgets all events up to the one at which `advance` stopped, or those of its partition only."""
        return

    @property
    def sheds(self) -> bool:
        """Whether there are partitions that `shed` can forget."""
        return False

    def shed(self, oldest: int) -> int:
        """Forgets the open runs of some of the partitions, the oldest ones; returns how many, 0 for none."""
        del oldest
        return 0

    @abstractmethod
    def idle(self, oldest: int) -> bool:
        """Whether no run is open and nothing else needs to be remembered."""

    @abstractmethod
    def snapshot(self, oldest: int) -> Snapshot:
        """The state needed to continue, without what has left the window; changes nothing."""

    @abstractmethod
    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless a snapshot with label sets 0 … `marks` - 1 can be resumed."""

    @abstractmethod
    def resume(self, snapshot: Snapshot) -> None:
        """Continues from a snapshot of the same automaton."""
