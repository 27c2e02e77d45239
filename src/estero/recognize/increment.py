"""What a push has found: an answer to any number of questions, until the recognizer goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from estero.engine.walk.share import Dealer, Share
from estero.errors import EsteroError
from estero.recognize.reader import counts_of, picked_from, tables_of
from estero.recognize.recognition import Ended, Recognition


class Turn:
    """Which push of a recognizer is the last one, and whether it can go on."""

    def __init__(self) -> None:
        self._number = 0
        self._failure = ""

    def next(self) -> int:
        """The recognizer goes on: what it has found before is gone. The number of this turn."""
        self._number += 1
        return self._number

    def fail(self, why: str) -> None:
        """The recognizer cannot go on."""
        self._failure = why

    def check_sound(self) -> None:
        """Raises `EsteroError` if it cannot."""
        if self._failure:
            raise EsteroError(self._failure)

    def check(self, number: int) -> None:
        """Raises `EsteroError` if the recognizer has gone on since turn `number`."""
        if number != self._number:
            raise EsteroError(
                "this answer is of an earlier push, and the recognizer has gone on since: "
                "read answers before the next push, or keep answer.to_arrow()"
            )


@dataclass(frozen=True, slots=True)
class PushedRun:
    """What one push has found, as an answer reads it (answer.Run)."""

    recognition: Recognition
    found: Sequence[Ended]
    turn: Turn
    number: int

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self.recognition.schema

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.recognition.plan.text

    @property
    def counts_quickly(self) -> bool:
        """Whether `counts` does without enumerating."""
        return not self.recognition.plan.sieved

    def __reduce__(self) -> NoReturn:
        raise TypeError("the answer of a push cannot be pickled: pickle its table, answer.to_arrow()")

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All complex events in order of their end, or the first `limit` of them."""
        return self._while_valid(tables_of(self._read(), limit))

    def counts(self) -> Iterator[tuple[int, int]]:
        """(end position, number of complex events that end there), ascending, without enumerating."""
        return counts_of(self._read())

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The complex events with these ascending indexes, without enumerating those between."""
        return self._while_valid(picked_from(self._read(), indexes))

    def shared(self, share: Share) -> PushedRun:
        """The run of a share: all shares together have the complex events of this one, each once."""
        self.turn.check(self.number)
        dealer = Dealer(share)
        return replace(self, found=[self.recognition.share_of(ended, dealer) for ended in self.found])

    def _read(self) -> Iterator[tuple[Recognition, Ended]]:
        self.turn.check(self.number)
        for ended in self.found:
            yield self.recognition, ended
            self.turn.check(self.number)

    def _while_valid(self, tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Enumeration reads what the recognizer holds, so it cannot go on after that has."""
        for table in tables:
            yield table
            self.turn.check(self.number)
