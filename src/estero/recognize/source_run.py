"""One query on one source of events: DuckDB → recognition → what an answer reads, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.answer_schema import answer_schema
from estero.classify.column_names import POSITION
from estero.engine.tally.totals import NoTotalError
from estero.engine.walk.share import WHOLE, Share
from estero.events.sources import Source
from estero.language.tree.schema import Kind
from estero.plan.division import thread_division_of
from estero.plan.plan import Plan
from estero.plan.reach import reach_of
from estero.recognize.attribute_values import attribute_values
from estero.recognize.budget import Budget
from estero.recognize.reading import Reading
from estero.recognize.recognition import Recognition
from estero.recognize.role_rows import recognized_schema
from estero.recognize.set_reader import ReadableSets
from estero.recognize.stages.deal import DealStage
from estero.recognize.until import AFTER_ALL, check_until

if TYPE_CHECKING:
    from estero.recognize.threads.divided import Divided

_MANY = 1 << 15
"""The number of events from which it pays to determine which of them can lie in a complex event."""
_FEW_LANES = 2
"""The number of lanes up to which a total by states takes longer than with one thread, as rows have to be
dealt to lanes.

Measured of `A ; B ; C PARTITION BY [k]` without a window: 42 ns an event with one thread, 57 in two lanes.
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """A function that is called with the number of events read, and that of all (None: not known).

    Pickled, it is None: another process has nothing to report to.
    """

    tell: Callable[[int, int | None], None]

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


@dataclass(frozen=True, slots=True)
class SourceRun(Reading):
    """One query on one source of events; every question reads the events anew.

    With a `share` all questions refer to that share of the complex events. Events are known up to time
    `until`, in ticks, or up to the last one if it is None. `progress` is called after each batch, and now and
    then while filters on whole complex events are checked; if that takes longer than the `budget`,
    `OutOfTimeError` is raised. Tables and numbers are computed by that many `threads`, if the plan can be
    divided and there are enough events.
    """

    plan: Plan
    source: Source
    share: Share = WHOLE
    until: int | None = None
    progress: Progress | None = None
    budget: Budget | None = None
    threads: int = 1

    @property
    def schema(self) -> pa.Schema:
        plan, events = self.plan, self.source.classified_schema(self.plan.classification)
        return answer_schema(
            plan.shown,
            recognized_schema(plan, events),
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
        """Whether `counts` works without enumerating, and the events can be read for it."""
        return not (self.plan.needs_enumeration or self.source.one_shot)

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        if limit is not None or (divided := self._divided(self.plan)) is None:
            return super(SourceRun, self).tables(limit=limit)
        from estero.recognize.threads.questions import Tables

        return (rows.table for rows in divided.ask(Tables()))

    def count(self, *, enough: int | None = None) -> int:
        if not self.source.one_shot:  # otherwise the events cannot be read again
            try:
                return self._number(enough, total=True)
            except NoTotalError:
                pass
        return self._number(enough)

    def _number(self, enough: int | None, *, total: bool = False) -> int:
        divided = self._divided(self.plan.showing_nothing(), counting=True, total=total)
        if divided is None:
            return super(SourceRun, self)._number(enough, total=total)
        from estero.recognize.threads.questions import Count

        number = 0
        for here in divided.ask(Count()):
            number += here
            if enough is not None and number >= enough:
                break
        return number

    def counts(self) -> Iterator[tuple[int, int]]:
        divided = self._divided(self.plan.showing_nothing(), counting=True)
        if divided is None:
            return super(SourceRun, self).counts()
        from estero.recognize.threads.questions import Counts

        return divided.ask(Counts())

    def _divided(self, plan: Plan, *, counting: bool = False, total: bool = False) -> Divided | None:
        """The stream for several threads; None if one thread has to do it, or is requested."""
        if self.threads == 1 or self.share != WHOLE or self.budget is not None or self.source.one_shot:
            return None
        division = thread_division_of(plan)
        if not division.possible:
            return None
        if total and plan.totals_by_states and division.window is None and self.threads <= _FEW_LANES:
            return None
        from estero.recognize.threads import ranges

        size = self.source.size()
        if size is not None and size <= ranges.SHORTEST:
            return None
        from estero.recognize.threads.divided import Divided

        return Divided(
            open=partial(self._recognition, plan, counting=counting, total=total),
            batches=self._batches(plan),
            division=division,
            threads=self.threads,
            known=self.known,
            read=partial(self._tell, size),
        )

    def _batches(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The classified events; if there are many, irrelevant ones may be missing."""
        size = self.source.size()
        reach = None if size is not None and size < _MANY else reach_of(plan)
        return self.source.read(plan.classification, self.threads, reach)

    def _tell(self, size: int | None, batch: pa.RecordBatch | None) -> None:
        """Reports how many of `size` events have been read: up to the end of a batch, or all (None)."""
        if self.progress is not None:
            if batch is not None:
                self.progress.tell(batch.column(POSITION)[-1].as_py() + 1, size)
            elif size is not None:
                self.progress.tell(size, size)

    def tables_with_starts(self, also: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The tables of all rows, each with the positions and some columns of the events that start them."""
        for reader, ended in self._sets(self.share):
            yield from reader.tables_with_starts(ended, also)

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        return attribute_values(self.plan, self.source, attribute, first, last)

    @property
    def _sieved(self) -> bool:
        return self.plan.needs_enumeration

    def _sets(
        self, share: Share, *, counting: bool = False, total: bool = False, showing: bool = True
    ) -> ReadableSets:
        plan = self.plan if showing else self.plan.showing_nothing()
        recognition = self._recognition(plan, counting=counting, total=total, share=share)
        reader = recognition.reader
        size = None if self.progress is None else self.source.size()
        read = 0

        def sifting() -> None:
            if self.budget is not None:
                self.budget.check()
            if self.progress is not None:
                self.progress.tell(read, size)

        reader.limit_time(sifting)
        for batch in self._batches(plan):
            for ended in recognition.recognize(batch):
                yield reader, ended
            read = batch.column(POSITION)[-1].as_py() + 1
            self._tell(size, batch)
        self._tell(size, None)
        for ended in recognition.ended(self.known()):
            yield reader, ended

    def undecided(self) -> UndecidedRun:
        """The run of what waits for its deadline."""
        return UndecidedRun(self)

    def waiting(self, share: Share, *, showing: bool) -> ReadableSets:
        """A share of the results that would end if nothing more came, and are not decided; see `Reading`."""
        if self.plan.wait is None:
            return
        plan = self.plan if showing else self.plan.showing_nothing()
        recognition = self._recognition(plan)
        reader = recognition.reader
        for batch in self.source.read(plan.classification):
            for _ in recognition.recognize(batch):
                pass  # decided, as the times of later events say
        known, deal = self.known(), DealStage(reader, share)
        if known is None:
            return
        for ended in recognition.ended(AFTER_ALL):
            waiting = reader.undecided(ended, known)
            if waiting.roots.event.size:
                parts = [waiting] if share == WHOLE else deal.push(waiting)
                for part in parts:
                    yield reader, part

    def known(self) -> int | None:
        """The time up to which events are known; None if that does not matter."""
        if self.plan.wait is None:
            return None
        last = self.source.last_time()
        if self.until is None:
            return AFTER_ALL if last is None else last  # without events nothing waits
        check_until(self.until, last)
        return self.until

    def _recognition(
        self, plan: Plan, *, counting: bool = False, total: bool = False, share: Share = WHOLE
    ) -> Recognition:
        events, time = self.source.classified_schema(plan.classification), time_type(self.source)
        made = Recognition(plan, events, time=time, counting=counting, total=total, share=share)
        return made.read_only()


@dataclass(frozen=True, slots=True)
class UndecidedRun(Reading):
    """The complex events of a run that wait for a deadline; every question reads the events anew."""

    of: SourceRun
    share: Share = WHOLE

    @property
    def schema(self) -> pa.Schema:
        return self.of.schema

    @property
    def query(self) -> str:
        return self.of.query

    @property
    def whole_answer(self) -> str:
        return "the answer that these complex events wait for"

    @property
    def counts_quickly(self) -> bool:
        """Whether it is so of the whole."""
        return self.of.counts_quickly

    def undecided(self) -> UndecidedRun:
        """All of these wait."""
        return self

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        return self.of.values(attribute, first, last)

    @property
    def _sieved(self) -> bool:
        return self.of.plan.needs_enumeration

    def _sets(
        self, share: Share, *, counting: bool = False, total: bool = False, showing: bool = True
    ) -> ReadableSets:
        del counting, total  # which ends wait is not known before all is read
        return self.of.waiting(share, showing=showing)


def time_type(source: Source) -> pa.DataType | None:
    """The type in which times of a source are shown: timestamps in the zone they came in, or integers."""
    name = source.schema.time
    if name is None:
        return None
    column = source.column_types[name]
    return pa.timestamp(column.tick, source.zone) if column.kind is Kind.TIMESTAMP else pa.int64()
