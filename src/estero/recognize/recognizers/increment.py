"""The answer to one push, which can be asked questions until the recognizer continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.held_run import HeldRun
from estero.answers.participation import Aggregates, Participation
from estero.engine.walk.share import WHOLE, Share
from estero.errors import EsteroError
from estero.recognize.ended_sets import EndedSets
from estero.recognize.reading import Reading
from estero.recognize.set_reader import ReadableSets, SetReader
from estero.recognize.stages.deal import DealStage

T = TypeVar("T")


class Turn:
    """The number of a recognizer's last push, and whether it can continue.

    The state of a recognizer is read and changed by one thread at a time, which holds the `lock`.
    """

    def __init__(self) -> None:
        self.lock: RLock = RLock()
        self._number = 0
        self._failure = ""

    def next(self) -> int:
        """Begins the next turn, in which earlier results are gone; returns its number."""
        self._number += 1
        return self._number

    def fail(self, why: str) -> None:
        """Declares that the recognizer cannot continue."""
        self._failure = why

    def check_sound(self) -> None:
        """Raises `EsteroError` if it cannot continue."""
        if self._failure:
            raise EsteroError(self._failure)

    def check(self, number: int) -> None:
        """Raises `EsteroError` if the recognizer has continued since turn `number`."""
        if number != self._number:
            raise EsteroError(
                "this answer is of an earlier push, and the recognizer has gone on since: "
                "read answers before the next push, or keep answer.to_arrow()"
            )

    def steps(self, number: int, items: Iterator[T]) -> Iterator[T]:
        """The items, each made by one thread at a time; raises `EsteroError` as `check` does.

        The lock is not held between two items, since the next one may be requested at any time.
        """
        while True:
            self.check(number)  # at once, if the recognizer has continued
            with self.lock:
                self.check(number)
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item


@dataclass(frozen=True, slots=True)
class PushedRun(Reading):
    """The compact sets that end with one push, each with its reader, as an answer reads them.

    `reader` is that of the recognizer.
    """

    reader: SetReader
    sets: Sequence[tuple[SetReader, EndedSets]]
    turn: Turn
    number: int
    share: Share = WHOLE

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    @property
    def query(self) -> str:
        return self.reader.plan.text

    @property
    def counts_quickly(self) -> bool:
        return not self.reader.plan.needs_enumeration

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        return self._steps(Reading.tables(self, limit=limit))

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        return self._steps(Reading.at(self, indexes))

    def counts(self) -> Iterator[tuple[int, int]]:
        return self._steps(Reading.counts(self))

    def count(self, *, enough: int | None = None) -> int:
        with self.turn.lock:
            return Reading.count(self, enough=enough)

    def ends(self) -> NDArray[np.int64]:
        with self.turn.lock:
            return Reading.ends(self)

    def participation(self, *, by_partition: bool) -> Participation:
        with self.turn.lock:
            return Reading.participation(self, by_partition=by_partition)

    def aggregate(self, expressions: Mapping[str, str]) -> dict[str, Any]:
        with self.turn.lock:
            return Reading.aggregate(self, expressions)

    def aggregate_by_partition(self, expressions: Mapping[str, str]) -> Aggregates:
        with self.turn.lock:
            return Reading.aggregate_by_partition(self, expressions)

    def top(self, n: int, by: str, *, ascending: bool, by_partition: bool) -> HeldRun:
        with self.turn.lock:
            return Reading.top(self, n, by, ascending=ascending, by_partition=by_partition)

    def ranked_tables(self, by: str, *, ascending: bool) -> Iterator[pa.RecordBatch]:
        return self._steps(Reading.ranked_tables(self, by, ascending=ascending))

    def __reduce__(self) -> NoReturn:
        raise TypeError("the answer of a push cannot be pickled: pickle its table, answer.to_arrow()")

    def shared(self, share: Share) -> PushedRun:
        self._check_valid()
        return Reading.shared(self, share)

    @property
    def _sieved(self) -> bool:
        return self.reader.plan.needs_enumeration

    def _sets(
        self, share: Share, *, counting: bool = False, total: bool = False, showing: bool = True
    ) -> ReadableSets:
        del counting, total, showing  # all results of a push are there already
        self._check_valid()
        deal = DealStage(self.reader, share)
        for reader, ended in self.sets:
            for part in [ended] if share == WHOLE else deal.with_reader(reader).push(ended):
                yield reader, part
                self._check_valid()

    def _steps(self, items: Iterator[T]) -> Iterator[T]:
        """The items, made while no other thread reads or changes the recognizer's state."""
        return self.turn.steps(self.number, items)

    def _check_valid(self) -> None:
        """Raises `EsteroError` if the recognizer has continued, since enumeration reads its state."""
        self.turn.check(self.number)
