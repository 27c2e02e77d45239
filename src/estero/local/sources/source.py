"""The contract of sources: they are asked for the next events, and know their place."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from estero.local.raw import Offsets, Raw


class Source(ABC):
    """Events in an order that is the same when they are read again.

    Nothing is read before `seek`. A source that has `ended` gives nothing any more; one that has `caught_up`
    has given all that was there when it was asked last.
    """

    ended: bool = False
    caught_up: bool = False

    @abstractmethod
    def seek(self, offsets: Offsets | None) -> None:
        """Goes to a place; None is the first one."""

    @abstractmethod
    def place(self) -> Offsets:
        """The place behind what was read, to which `seek` goes."""

    @abstractmethod
    def poll(self, most: int, seconds: float) -> Raw | None:
        """The next events, `most` at most, which may be waited for so long; None where none came."""

    @abstractmethod
    def replay(self, after: Offsets) -> Raw:
        """The events from here to where a poll had ended, as it said.

        Raises `DataError` where they are not there any more.
        """

    def keeps(self, _after: Offsets) -> bool:
        """Whether the journal has to keep the events before a place, since they cannot be read again."""
        return False

    def passed(self, after: Offsets) -> None:  # noqa: B027 (most can read again)
        """Takes note that events up to a place, which cannot be read again, came from the journal."""

    def is_silent(self) -> bool:
        """Whether nothing comes since nothing is there, and not since nobody can look."""
        return self.caught_up

    def schema(self) -> pa.Schema | None:
        """The columns of the events, where the source says them."""
        return None

    def close(self) -> None:  # noqa: B027 (not all have something)
        """Lets go of what it has open."""
