"""The interface of sources: they are polled for events, and know their place."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from estero.local.raw import Offsets, Raw


class Source(ABC):
    """Events in an order that is the same when they are read again.

    Nothing is read before `seek`. A source that has `ended` returns no more events; one that has `caught_up`
    has returned all events that existed at the last poll.
    """

    ended: bool = False
    caught_up: bool = False

    @abstractmethod
    def seek(self, offsets: Offsets | None) -> None:
        """Moves to a place; None is the first one."""

    @abstractmethod
    def place(self) -> Offsets:
        """The place after the events read, for `seek`."""

    @abstractmethod
    def poll(self, most: int, seconds: float) -> Raw | None:
        """The next events, at most `most`, within a number of seconds; None if none arrived."""

    @abstractmethod
    def replay(self, after: Offsets) -> Raw:
        """The events from the current place to the end of an earlier poll.

        Raises `DataError` if they no longer exist.
        """

    def keeps(self, _after: Offsets) -> bool:
        """Whether the journal has to contain the events before a place, because they cannot be read again."""
        return False

    def passed(self, after: Offsets) -> None:  # noqa: B027 (most can read again)
        """Notes that events up to a place, which cannot be read again, came from the journal."""

    def is_silent(self) -> bool:
        """Whether there are no events, rather than no connection."""
        return self.caught_up

    def schema(self) -> pa.Schema | None:
        """The columns of the events, if the source defines them."""
        return None

    def close(self) -> None:  # noqa: B027 (not all have something)
        """Releases resources."""
