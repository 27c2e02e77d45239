"""Classified events in, answers out: the recognize and report stages of one run over one stream.

Events pass stages, then the engine, which makes compact sets of complex events of them; these pass stages,
too (`recognize/stages`), and are read as tables, counts and picks (`SetReader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore, Single
from estero.classify.column_names import BITS, ORDINAL, POSITION, TIME, numbered
from estero.engine.int64 import LEAST
from estero.engine.recognizer import Recognizer
from estero.engine.runs.numbered_events import NumberedEvents
from estero.engine.runs.runs import Runs
from estero.engine.walk.roots import Roots
from estero.engine.walk.share import WHOLE, Share
from estero.language.tree.query import Strategy
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.consumed import Consumed
from estero.recognize.ended_sets import EndedSets
from estero.recognize.engine_input import EngineInput
from estero.recognize.metrics import Extent
from estero.recognize.open_runs import OpenRuns, open_runs
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.composed import event_stages, nearby_of, reader_of, set_stages
from estero.recognize.state import Holding

if TYPE_CHECKING:
    from estero.recognize.role_rows import RoleRows


class Recognition:
    """One pass over a stream of classified batches; `events` is their schema.

    `push` yields the public table; `recognize` yields compact sets instead, for counting and picking. Each
    must be exhausted before the next batch. `time` is the type in which times are shown, `positions` says
    whether positions are shown, and `counting` that `counts` will be called; with `total` only
    `SetReader.add` and `rest` will be, and nothing else can be read. A result that is decided after its end
    is reported at once if the stream is `endless`, otherwise in order of ends. Only a `share` is reported.
    With `state`, from `snapshot`, it continues from there; raises `DataError` if that is of another query,
    plan or version. Of a plan for partial matches (`AutomatonPlan.best_per_start`) `starts` are the positions
    of those wanted. A query with CONSUME BY says in `consumed` what it forgets; plans that are `cut_by` it
    read that there.
    """

    def __init__(  # noqa: PLR0913  (what is asked, and what other recognitions know)
        self,
        plan: Plan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        positions: bool = True,
        counting: bool = False,
        total: bool = False,
        endless: bool = False,
        share: Share = WHOLE,
        state: bytes | None = None,
        starts: NDArray[np.int64] | None = None,
        consumed: Consumed | None = None,
    ) -> None:
        self._identity = plan
        self._role_rows: RoleRows | None = None
        if plan.roles is not None:
            from estero.recognize.role_rows import RoleRows  # which few plans need

            self._role_rows = RoleRows(plan.roles, events)
            plan, events = plan.of_rows(), self._role_rows.schema
        words, ordinals = numbered(BITS, events.names), ORDINAL in events.names
        total = total and share == WHOLE
        opened = plan.opened(len(words), ordinals=ordinals, counting=counting, total=total)
        # Results of SHORTEST in a partition are in order of ends, and LIMIT … PER looks at partitions.
        last_counts = plan.interval is not None and plan.strategy is Strategy.LONGEST
        self._in_order = opened.runs.in_order = not endless or last_counts
        self.plan = plan
        nearby = nearby_of(plan, events)
        self.reader: SetReader = reader_of(
            plan, opened, events, time=time, positions=positions, nearby=nearby, consumed=consumed
        )
        self.recognizer: Recognizer[Runs] = self.reader.recognizer
        self.store: EventStore = self.reader.store
        self._before = event_stages(plan, events, nearby)
        self._after = set_stages(
            self.reader, events, in_order=self._in_order, starts=starts, consumed=consumed, share=share
        )
        self._input = EngineInput(plan, opened, events)
        self._takes_single = self._after.takes_single and not (
            self._before.stages or opened.keys or plan.decides_later or self._role_rows
        )
        self._opened = opened
        self._reads_no_events = total and plan.totals_by_states and plan.window is None
        self._events = events
        self._time = LEAST
        stages = [self._before, self._after]
        self._holding = Holding(self.recognizer, self.store, opened.automaton, self.reader.marks, stages)
        if state is not None:
            self._holding.resume(state, self._identity, events)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self.reader.schema

    def read_only(self) -> Recognition:
        """The same, of which only answers will be read, within LIMIT: no open runs, and no snapshot.

        To be called before any event is given.
        """
        plan = self.plan
        limited = plan.limit is not None and plan.limit.per_end == 1
        chosen_later = plan.needs_enumeration or plan.wait is not None or bool(self._after.stages)
        self.recognizer.runs.first_only = limited and not chosen_later
        return self

    # --------------------------------------------------------------------------------- what is given

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch, as tables in order of their end."""
        for ended in self.recognize(classified):
            yield from self.reader.tables(ended)

    def recognize(self, classified: pa.RecordBatch) -> Iterator[EndedSets]:
        """The compact sets that end in this batch, or that its times decide."""
        if self._role_rows is not None and classified.num_rows:
            classified = self._role_rows.of(classified)
        if classified.num_rows:
            for ready in self._before.push(classified):
                yield from self._recognized(ready)

    def recognize_one(
        self, event: Single, as_batch: Callable[[Sequence[Single]], pa.RecordBatch]
    ) -> list[EndedSets]:
        """The compact sets that end in a single event; `as_batch` makes a classified batch of some."""
        if not self._takes_single:
            return list(self.recognize(as_batch([event])))
        self.store.append_one(event, as_batch)
        ended = [
            EndedSets(roots, np.full(roots.event.size, event[0]))
            for roots in self.recognizer.push_one(self._input.one(event))
        ]
        if self._after.stages:
            ended = [passed for sets in ended for passed in self._after.push(sets)]
        if not self.recognizer.holding:
            self._trim()
        return ended

    def decided(self, *, position: int, time: int | None) -> Iterator[EndedSets]:
        """The compact sets decided once no event before `position`, or before `time` in ticks, will come.

        Empty if everything is decided at its end.
        """
        if time is not None:
            yield from self._past_deadlines(time)
        if self.plan.decides_later:
            until = self.known_through(position, time)
            if until is not None:
                self.recognizer.expire(until)
                yield from self._decided(until)

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """The results of `decided`, as tables."""
        for ended in self.decided(position=position, time=time):
            yield from self.reader.tables(ended)

    def ended(self, known: int | None = None) -> Iterator[EndedSets]:
        """The compact sets decided by the end of the stream, whose events are known up to time `known`.

        None: no more events will come. Otherwise, results that wait for a deadline then are not decided.
        """
        yield from self._past_deadlines(known)
        if self.plan.decides_later:
            yield from self._decided(None)

    def _past_deadlines(self, time: int | None) -> Iterator[EndedSets]:
        """The results of events whose deadlines are before `time`, or of all that wait (None)."""
        for ready in self._before.advance(time):
            yield from self._recognized(ready)

    def _recognized(self, classified: pa.RecordBatch) -> Iterator[EndedSets]:
        self.store.append(classified)
        first = self.recognizer.seen
        positions = numbers_of(classified, POSITION)
        batch = self._input.batch(classified, positions)
        for roots in self.recognizer.push(batch):
            if self.recognizer.runs.decides_later:
                yield from self._after.push(self._placed(roots))
            else:
                yield from self._after.push(EndedSets(roots, positions[roots.event - first]))
        if self._in_order:
            yield from self._after.advance(int(batch.stamps[-1]))
        if not self.recognizer.holding:
            self._trim()

    def _decided(self, until: int | None) -> Iterator[EndedSets]:
        """The complex events chosen for starts whose windows end before stamp `until`, or for all (None)."""
        for roots in self.recognizer.decided(ended=until is None):
            yield from self._after.push(self._placed(roots))
        yield from self._after.advance(until)

    def _placed(self, roots: Roots) -> EndedSets:
        """Compact sets that may have ended before this batch."""
        return EndedSets(roots, numbers_of(self.store.take(roots.event, [POSITION]), POSITION))

    # -------------------------------------------------------------------------------- what is known

    def known_through(self, position: int, time: int | None) -> int | None:
        """The stamp before which no more events will be recognized."""
        if not self.plan.by_position:
            return None if time is None else time - (self.plan.wait or 0)
        first = self._before.first_position
        return position if first is None else min(position, first)

    def expire(self, *, position: int, time: int | None) -> None:
        """Declares that no event before `position`, or before `time` in ticks, will come: windows close.

        Earlier results can still be read.
        """
        until = self.known_through(position, time)
        if until is not None:
            self.recognizer.expire(until)

    def advance(self, time: int) -> None:
        """Declares that no event before `time`, in ticks, will come: windows close, and memory is freed.

        Earlier results must have been read.
        """
        if not self.plan.by_position:
            self.recognizer.expire(time - (self.plan.wait or 0))
        self._time = max(self._time, time)
        self.let_go()

    def let_go(self) -> None:
        """Frees what is out of reach, if it is much; earlier results must have been read."""
        self.recognizer.release()
        self._trim()
        self._holding.compact()

    @property
    def can_shed(self) -> bool:
        """Whether something is open in partitions that can be dropped one by one."""
        return self.recognizer.can_shed

    def shed(self) -> int:
        """Drops the oldest of the partitions in which something is open; returns how many, 0 for none.

        Earlier results must have been read.
        """
        self.recognizer.release()
        return self._holding.shed()

    def _trim(self) -> None:
        if self._reads_no_events:
            self.store.trim(self.store.next)
        if self.plan.window is None:
            return
        self.store.trim(self.recognizer.oldest)
        if self._before.forgets:
            self._before.forget(self._oldest_time())

    def _oldest_time(self) -> int | None:
        """The time of the first event that can still be part of a complex event; None if there is none."""
        if self.store.first < self.store.next:
            return int(numbers_of(self.store.take(np.array([self.store.first]), [TIME]), TIME)[0])
        return self._before.first_time

    # ------------------------------------------------------------------------ stopping and going on

    def snapshot(self) -> bytes:
        """The state needed to continue, without anything that has left the window."""
        return self._holding.written(self._identity, self._events)

    @property
    def remembers_events_alone(self) -> bool:
        """Whether nothing is remembered of a key without an event in the store."""
        runs = self._opened.runs
        is_first_asked = not isinstance(runs, NumberedEvents) or runs.settings.first_bit is not None
        return not (self._before.stages or self._after.stages or is_first_asked)

    @property
    def size(self) -> int:
        """The number of nodes, entries, partitions and events held, in reach or not."""
        return self._holding.size

    def extent(self) -> Extent:
        """The size of the state needed to continue; it takes as long as a snapshot."""
        return self._holding.extent()

    def open_runs(self) -> OpenRuns:
        """The open runs; it takes as long as a snapshot."""
        return open_runs(self.plan, self._opened, self.recognizer.snapshot(), self.store)

    @property
    def waiting(self) -> int:
        """The number of events that wait for their deadlines."""
        return self._before.waiting

    @property
    def idle(self) -> bool:
        """Whether nothing is open: a restart would change no later answer."""
        return self._before.idle(self._time) and self.recognizer.idle and self._after.idle(self._time)

    @property
    def due(self) -> int | None:
        """The time of the first deadline that an event waits for; None if there is none."""
        first = self._before.first_time
        return None if first is None else first + (self.plan.wait or 0)
