"""DuckDB → recognition → answer, in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.answer import Run
from estero.answers.report import answer_schema
from estero.answers.why_not import WhyNot
from estero.classify.column_names import POSITION
from estero.engine.walk.share import WHOLE, Dealer, Share
from estero.events.sources import Source
from estero.language.tree.schema import Kind
from estero.plan.plan import Plan
from estero.recognize.budget import Budget
from estero.recognize.recognition import Found, Recognition, number_of
from estero.recognize.until import AFTER_ALL, check_until

if TYPE_CHECKING:
    from estero.recognize.partials import PartialsRun

_PICKED_AT_ONCE = 256
"""Complex events that are gone to by their indexes before they are handed on."""


class Reading(Run, ABC):
    """What recognition finds → tables, counts and single complex events, however often they are asked for.

    All of it is about a share: its number and indexes follow from those of the whole, if nothing is sieved.
    """

    share: Share

    @property
    @abstractmethod
    def _sieved(self) -> bool:
        """Whether complex events are left out when they are read."""

    @abstractmethod
    def _found(self, share: Share, *, counting: bool = False, showing: bool = True) -> Found:
        """All that is found, or a share.

        With `counting`, numbers will be asked for; unless `showing`, nothing else is.
        """

    def _check_valid(self) -> None:
        """Raises where what was found cannot be read on."""

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        if limit is not None and limit <= 0:
            return
        left = limit
        for recognition, ended in self._found(self.share):
            for table in recognition.tables(ended):
                if left is not None and table.num_rows >= left:
                    yield table.slice(0, left)
                    return
                yield table
                self._check_valid()
                left = None if left is None else left - table.num_rows

    def count(self, *, enough: int | None = None) -> int:
        if self._sieved:
            return number_of(self._found(self.share, counting=True, showing=False), enough)
        enough = None if enough is None else enough * self.share.of
        found = self._found(WHOLE, counting=True, showing=False)
        return self.share.size_of(number_of(found, enough))

    def counts(self) -> Iterator[tuple[int, int]]:
        """(end position, number of complex events that end there), ascending, without enumerating."""
        for recognition, ended in self._found(self.share, counting=True, showing=False):
            yield from recognition.counts(ended)

    def ends(self) -> NDArray[np.int64]:
        """The positions at which complex events end, ascending, each once."""
        if self._sieved or self.share != WHOLE:
            return np.fromiter((end for end, number in self.counts() if number), np.int64)
        found = self._found(WHOLE, counting=True, showing=False)
        return np.unique(np.concatenate([np.empty(0, np.int64), *(ended.position for _, ended in found)]))

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        wanted = _Ahead(indexes)
        dealt = 0
        share, sieved = (WHOLE, True) if self._sieved else (self.share, False)
        for recognition, ended in self._found(self.share if sieved else WHOLE, counting=True):
            if wanted.next is None:
                return
            if sieved:
                total = sum(number for _, number in recognition.counts(ended))
                for here in wanted.until(dealt + total):
                    yield recognition.pick_sifted(ended, [index - dealt for index in here])
                    self._check_valid()
            else:
                ends = recognition.ends(ended)
                total = ends.total
                for here in wanted.until(share.size_of(dealt + total)):
                    yield recognition.pick(ended, ends, here, share, dealt)
                    self._check_valid()
            dealt += total


class _Ahead:
    """Ascending indexes, of which `next` is the next one, None after the last."""

    def __init__(self, indexes: Iterable[int]) -> None:
        self._indexes = iter(indexes)
        self.next = next(self._indexes, None)

    def until(self, end: int) -> Iterator[list[int]]:
        """Those before `end`, some at a time."""
        here: list[int] = []
        while self.next is not None and self.next < end:
            here.append(self.next)
            self.next = next(self._indexes, None)
            if len(here) == _PICKED_AT_ONCE:
                yield here
                here = []
        if here:
            yield here


@dataclass(frozen=True, slots=True)
class Progress:
    """A function that is told how many events are read, and how many there are (None: not known).

    Pickled, it is None: another process has nobody to tell.
    """

    tell: Callable[[int, int | None], None]

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


@dataclass(frozen=True, slots=True)
class InProcessRun(Reading):
    """One query on one source of events; every question reads the events anew.

    With a `share` all of them are about that share of the complex events. Events are known up to time
    `until`, in ticks, and up to the last one where it is None. `progress` is told behind each batch. Filters
    that are checked of whole complex events for longer than the `budget` raise `OutOfTimeError`.
    """

    plan: Plan
    source: Source
    share: Share = WHOLE
    until: int | None = None
    progress: Progress | None = None
    budget: Budget | None = None

    @property
    def schema(self) -> pa.Schema:
        plan, events = self.plan, self.source.classified_schema(self.plan.classification)
        return answer_schema(
            plan.shown,
            events,
            keys=plan.shown_keys,
            time=time_type(self.source),
            suppressed=plan.interval is not None,
            measures=plan.measures,
            waits=plan.wait is not None,
        )

    @property
    def query(self) -> str:
        return self.plan.text

    @property
    def counts_quickly(self) -> bool:
        """Whether `counts` does without enumerating, and the events can be read for it."""
        return not (self.plan.needs_enumeration or self.source.one_shot)

    def tables_with_starts(self, also: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The tables of all rows, each with the positions and some columns of the events that start them."""
        for recognition, ended in self._found(self.share):
            yield from recognition.tables_with_starts(ended, also)

    def funnel(self, *, by_partition: bool, by: Sequence[str] = (), chosen: bool = False) -> pa.Table:
        from estero.plan.levels import levels_plan  # loads the rules of planning
        from estero.recognize.funnels import funnel_table

        layout = replace(self.source.layout, schema=self.plan.classification.schema)
        levels = levels_plan(self.plan.tree, layout, chosen=chosen)
        return funnel_table(levels, self.source, by_partition=by_partition, by=by, until=self.until)

    def partials(self, *, chosen: bool = False) -> PartialsRun:
        from estero.plan.levels import partials_plan  # loads the rules of planning
        from estero.recognize.partials import PartialsRun

        layout = replace(self.source.layout, schema=self.plan.classification.schema)
        plan = partials_plan(self.plan.tree, layout, chosen=chosen)
        return PartialsRun(plan, self.source, self.until)

    def why_not(self, sample: int | None, seconds: float | None) -> WhyNot:
        from estero.recognize.why_not import why_not  # loads the rules of planning

        return why_not(self, sample, seconds)

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        from estero.recognize.attribute_values import attribute_values

        return attribute_values(self.plan, self.source, attribute, first, last)

    def shared(self, share: Share) -> InProcessRun:
        """The run of one share of what this one finds; raises ValueError for a share of a share."""
        if self.share != WHOLE:
            raise ValueError("this is a share already: divide the whole answer into more shares")
        return replace(self, share=share)

    @property
    def _sieved(self) -> bool:
        return self.plan.needs_enumeration

    def _found(self, share: Share, *, counting: bool = False, showing: bool = True) -> Found:
        recognition = self._recognition(
            self.plan if showing else self.plan.showing_nothing(), counting=counting
        )
        if share != WHOLE:
            recognition.give_only(share)
        if self.budget is not None:
            recognition.limit_time(self.budget.check)
        size = None if self.progress is None else self.source.size()
        for batch in self.source.read(recognition.plan.classification):
            for ended in recognition.recognize(batch):
                yield recognition, ended
            if self.progress is not None:
                self.progress.tell(batch.column(POSITION)[-1].as_py() + 1, size)
        if self.progress is not None and size is not None:
            self.progress.tell(size, size)
        for ended in recognition.ended(self._known()):
            yield recognition, ended

    def undecided(self) -> UndecidedRun:
        """The run of what waits for its deadline."""
        return UndecidedRun(self)

    def waiting(self, share: Share, *, showing: bool) -> Found:
        """A share of what would be found if nothing came any more, and is not decided; see `_found`."""
        if self.plan.wait is None:
            return
        recognition = self._recognition(self.plan if showing else self.plan.showing_nothing())
        for batch in self.source.read(recognition.plan.classification):
            for _ in recognition.recognize(batch):
                pass  # decided, as the times of later events say
        known, dealer = self._known(), Dealer(share)
        if known is None:
            return
        for ended in recognition.ended(AFTER_ALL):
            waiting = recognition.undecided(ended, known)
            if waiting.roots.event.size:
                parts = [waiting] if share == WHOLE else recognition.dealt(waiting, dealer)
                for part in parts:
                    yield recognition, part

    def _known(self) -> int | None:
        """Up to which time events are known; None where that does not matter."""
        if self.plan.wait is None:
            return None
        last = self.source.last_time()
        if self.until is None:
            return AFTER_ALL if last is None else last  # without events nothing waits
        check_until(self.until, last)
        return self.until

    def _recognition(self, plan: Plan, *, counting: bool = False) -> Recognition:
        events = self.source.classified_schema(plan.classification)
        return Recognition(plan, events, time=time_type(self.source), counting=counting)


@dataclass(frozen=True, slots=True)
class UndecidedRun(Reading):
    """The complex events of a run that wait for a deadline; every question reads the events anew."""

    of: InProcessRun
    share: Share = WHOLE

    @property
    def schema(self) -> pa.Schema:
        return self.of.schema

    @property
    def query(self) -> str:
        return self.of.query

    @property
    def counts_quickly(self) -> bool:
        """Whether it is so of the whole."""
        return self.of.counts_quickly

    def undecided(self) -> UndecidedRun:
        """All of these wait."""
        return self

    def funnel(self, **asked: object) -> NoReturn:  # noqa: ARG002
        raise ValueError("a funnel is of all starts: ask the answer that these complex events wait for")

    def partials(self, **asked: object) -> NoReturn:  # noqa: ARG002
        raise ValueError(
            "partial matches are of a whole stream: ask the answer that these complex events wait for"
        )

    def why_not(self, sample: int | None, seconds: float | None) -> NoReturn:  # noqa: ARG002
        raise ValueError(
            "why not more is asked of a whole stream: ask the answer that these complex events wait for"
        )

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        return self.of.values(attribute, first, last)

    def shared(self, share: Share) -> UndecidedRun:
        if self.share != WHOLE:
            raise ValueError("this is a share already: divide the whole answer into more shares")
        return replace(self, share=share)

    @property
    def _sieved(self) -> bool:
        return self.of.plan.needs_enumeration

    def _found(self, share: Share, *, counting: bool = False, showing: bool = True) -> Found:
        del counting  # which ends wait is not known before all is read
        return self.of.waiting(share, showing=showing)


def time_type(source: Source) -> pa.DataType | None:
    """The type in which times of a source are shown: timestamps in the zone they came in, or integers."""
    name = source.schema.time
    if name is None:
        return None
    column = source.column_types[name]
    return pa.timestamp(column.tick, source.zone) if column.kind is Kind.TIMESTAMP else pa.int64()
