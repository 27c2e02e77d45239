"""Classified events in, answers out: the recognise and report stages of one run over one stream.

What is found are compact sets of complex events; from them come tables, counts and picks. Where filters are
left that are checked of whole complex events, all of it goes through the sieve.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore, Single
from estero.answers.report import Reporter
from estero.answers.sieve.starts import Starts, partition_columns
from estero.answers.wait import Wait
from estero.classify.arrays import array_of
from estero.classify.column_names import BITS, KEYS, ORDINAL, POSITION, TIME, VALUES, numbered
from estero.classify.compared import as_integer, as_integers
from estero.classify.join_keys import join_keys
from estero.engine.batch import NO_PARTITION, EventBatch, OneEvent
from estero.engine.int64 import LEAST, are_before
from estero.engine.recognizer import Recognizer
from estero.engine.throttle import MOST_COUNTED, Throttle
from estero.engine.walk.matches import Matches, chosen, joined
from estero.engine.walk.roots import Roots, by_end, ranks_of_ends
from estero.engine.walk.share import Dealer, Part, Share
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Opened, Plan
from estero.recognize.batch_columns import numbers_of, side_by_side
from estero.recognize.consumed import Consumed
from estero.recognize.deadlines import DeadlineHold
from estero.recognize.open_runs import OpenRuns, open_runs
from estero.recognize.state import Holding

if TYPE_CHECKING:
    from estero.answers.sieve.nearby import NearbyEvents
    from estero.answers.sieve.sieve import Sieve

_FIRST_ROOM, _LARGEST_ROOM = 256, 1 << 16
_FOUND_ROOM = 1 << 12
"""Room for the complex events of roots that are there, at first: each has one at least."""
_DEALT_AT_ONCE = 1 << 14
_SHORT = 1 << 61
"""Numbers below this are read off a compact set without a window at once."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Compact sets of complex events that end in one batch; `position` is the stream position of each end."""

    roots: Roots
    position: NDArray[np.int64]
    sifted: list[Matches] | None = None
    """The answers among them, where they had to be known before going on (CONSUME BY)."""
    part: Part | None = None
    """Which of the complex events are asked for, where that is a share of them."""
    suppressed: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Ends, and how many were left out before the first that is given there, where LIMIT … PER has chosen."""
    store: EventStore | None = None
    """The events, where they are kept apart from those of the window."""


class Ends(NamedTuple):
    """The ends of compact sets; end i has those from number bounds[i] to before number bounds[i + 1].

    before(i) is the exact number of complex events at ends 0 … i - 1.
    """

    bounds: list[int]
    before: Callable[[int], int]

    @property
    def total(self) -> int:
        """How many complex events there are at all ends."""
        return self.before(len(self.bounds) - 1)

    def roots_of(self, end: int) -> range:
        """The numbers of the compact sets of an end."""
        return range(self.bounds[end], self.bounds[end + 1])

    def with_index(self, index: int, share: Share, dealt: int) -> int:
        """The end of the complex event with an index in a share; `dealt` were dealt before to all shares."""
        ends = range(len(self.bounds) - 1)
        return bisect_right(ends, index, key=lambda end: share.size_of(dealt + self.before(end + 1)))


class Recognition:
    """One pass over a stream of classified batches; `events` is their schema.

    `push` yields the public table; `recognize` yields compact sets instead, for counting and picking.
    Each must be read to its end before the next batch. `time` is the type in which times are shown,
    `positions` says whether positions are, and `counting` that `counts` will be asked for. What is decided
    after its end is given at once where the stream is `endless`, else in order of ends. With `state`, from
    `snapshot`, it goes on from there; raises `DataError` where that is of another query, plan or version.
    Of a plan for partial matches (`AutomatonPlan.best_per_start`) `starts` are the positions of those wanted.
    A query with CONSUME BY says in `consumed` what it forgets; plans that are `cut_by` it read that there.
    """

    def __init__(  # noqa: PLR0913  (what is asked, and what other recognitions know)
        self,
        plan: Plan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        positions: bool = True,
        counting: bool = False,
        endless: bool = False,
        state: bytes | None = None,
        starts: NDArray[np.int64] | None = None,
        consumed: Consumed | None = None,
    ) -> None:
        words, ordinals = numbered(BITS, events.names), ORDINAL in events.names
        runs = plan.opened(len(words), ordinals=ordinals, counting=counting)
        self.plan = plan
        self._limit = None if plan.limit is None else plan.limit.per_end
        self.recognizer = Recognizer(runs.runs)
        # What SHORTEST gives in a partition ends in order, and LIMIT … PER looks at partitions.
        last_counts = plan.interval is not None and plan.strategy is Strategy.LONGEST
        in_order = self._in_order = not endless or last_counts
        runs.runs.in_order = in_order
        limit = plan.limit
        self._throttle: Throttle | None = None
        if limit is not None and limit.interval is not None:
            self._throttle = Throttle(limit.most, limit.interval)
        self._starts = (
            Starts(plan, events, ordered=in_order, wanted=starts) if plan.lists_for_starts else None
        )
        self._consumed = consumed
        self._waiting = DeadlineHold(plan, events) if plan.deadlines else None
        compares = any(each.compared for each in plan.deadlines)
        self._nearby = _nearby_events(plan, events) if compares else None
        self._partition_columns = partition_columns(plan)
        self.store = EventStore(events, self._partition_columns)
        self.reporter = Reporter(
            plan.shown,
            runs.label_sets,
            events,
            keys=plan.shown_keys,
            time=time,
            positions=positions,
            suppressed=self._throttle is not None,
            measures=plan.measures,
            wait=plan.wait,
        )
        self._opened = runs
        self._events = events
        self._words = words
        self._values = numbered(VALUES, events.names) if runs.compared else []
        self._in_positions = plan.by_position
        self._ordinals = ordinals
        self._sieve = _sieve_of(
            plan,
            runs,
            self._nearby,
            placed=positions or plan.needs_positions,
            wait=None if plan.wait is None or time is None else Wait(plan.wait, time),
        )
        self._dealer: Dealer | None = None
        self._room = _FIRST_ROOM
        self._time = LEAST
        self._dealt_at_once = 1
        self._holding = Holding(
            self.recognizer,
            self.store,
            runs.automaton,
            self.reporter.marks,
            [each for each in (self._throttle, self._waiting) if each is not None],
            self._starts,
            self._nearby,
        )
        if state is not None:
            self._holding.resume(state, plan, events)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self.reporter.schema

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch, as tables in order of their end."""
        for ended in self.recognize(classified):
            yield from self.tables(ended)

    def limit_time(self, check: Callable[[], None]) -> None:
        """Calls `check` now and then while complex events are sifted; what it raises ends the sifting."""
        if self._sieve is not None:
            self._sieve.before_chunk = check

    def recognize(self, classified: pa.RecordBatch) -> Iterator[Ended]:
        """The compact sets that end in this batch, or that its times decide."""
        if classified.num_rows == 0:
            return
        if self._waiting is None:
            yield from self._recognized(classified)
        else:
            self._waiting.enter(classified)
            if self._nearby is not None:
                self._nearby.enter(classified)
            yield from self._past_deadlines(int(numbers_of(classified, TIME)[-1]))

    def _past_deadlines(self, time: int | None) -> Iterator[Ended]:
        """What ends with events whose deadlines are before `time`, or with all that wait (None)."""
        if self._waiting is not None:
            for ready in self._waiting.let_go(time):
                yield from self._recognized(ready)

    def _recognized(self, classified: pa.RecordBatch) -> Iterator[Ended]:
        self.store.append(classified)
        first = self.recognizer.seen
        positions = numbers_of(classified, POSITION)
        for roots in self.recognizer.push(self._batch(classified, positions)):
            if self._starts is not None:
                self._add_to(self._starts, roots)
                continue
            ended = (
                self._ended(roots)
                if self.plan.decides_later
                else Ended(roots, positions[roots.event - first])
            )
            if self._sieve is not None and self.plan.consume is not Consume.NONE:
                ended = replace(ended, sifted=list(self._matches(ended)))
            if self._consumed is not None and self.plan.consume is not Consume.NONE:
                self._consume(self._consumed, ended, classified, first)
            yield from self._given(ended)
            if ended.sifted:
                self.recognizer.consume()
        if self._starts is not None and self._in_order:
            stamps = positions if self._in_positions else numbers_of(classified, TIME)
            yield from self._chosen(self._starts, int(stamps[-1]))
        if not self.recognizer.holding:
            self._trim()

    def _consume(self, consumed: Consumed, ended: Ended, classified: pa.RecordBatch, first: int) -> None:
        """Says at which of some classified events there are answers; the first of them has number `first`."""
        ends = [ended.roots.event] if ended.sifted is None else [each.end for each in ended.sifted]
        if ends:
            here = classified.take(array_of(np.unique(np.concatenate(ends)) - first))
            consumed.add(here, numbers_of(here, POSITION if self._in_positions else TIME))

    def decided(self, *, position: int, time: int | None) -> Iterator[Ended]:
        """The compact sets that are decided as no event before `position`, or before `time` in ticks, comes.

        Empty where all is known at its end.
        """
        if time is not None:
            yield from self._past_deadlines(time)
        if self.plan.decides_later:
            until = self.known_through(position, time)
            if until is not None:
                self.recognizer.expire(until)
                yield from self._decided(until)

    def ended(self, known: int | None = None) -> Iterator[Ended]:
        """The compact sets that are decided as the stream ends, whose events are known up to time `known`.

        None: nothing comes any more. What then waits for a deadline is not decided.
        """
        yield from self._past_deadlines(known)
        if self.plan.decides_later:
            yield from self._decided(None)

    def _decided(self, until: int | None) -> Iterator[Ended]:
        """What is chosen for the starts whose windows end before stamp `until`, or for all (None)."""
        if self._starts is not None:
            yield from self._chosen(self._starts, until)
            return
        for roots in self.recognizer.decided(ended=until is None):
            yield from self._given(self._ended(roots))

    def known_through(self, position: int, time: int | None) -> int | None:
        """The stamp before which no event is recognized any more."""
        if not self.plan.by_position:
            return None if time is None else time - (self.plan.wait or 0)
        first = None if self._waiting is None else self._waiting.first_position
        return position if first is None else min(position, first)

    def undecided(self, ended: Ended, known: int) -> Ended:
        """What of `ended` waits for its deadline where times are known up to `known`."""
        times = numbers_of((ended.store or self.store).take(ended.roots.event, [TIME]), TIME)
        return _at_ends(ended, np.flatnonzero(~are_before(times, known - (self.plan.wait or 0))))

    def _add_to(self, starts: Starts, roots: Roots) -> None:
        """Adds those complex events of `roots` that may be chosen for their start."""
        if self.plan.selects_in_kernel:  # those below a root have one start
            nodes = self.recognizer.runs.compact
            if not self.plan.best_per_start:
                ranks = ranks_of_ends(roots, nodes, last=self.plan.strategy is Strategy.LONGEST)
                if self._sieve is not None:
                    self._add_passing(starts, roots, ranks, self._sieve)
                    return
                roots = roots.chosen(np.flatnonzero(ranks == 0))
            elif starts.wanted is not None:
                begun = self.store.take(nodes.start[roots.root], [POSITION])
                roots = roots.chosen(np.flatnonzero(starts.wants(numbers_of(begun, POSITION))))
        if not roots.event.size:
            return
        matches = self.recognizer.matches(roots, None, self._room)
        for each in matches if self._sieve is None else self._sieve.sift_all(matches, self.store):
            starts.add(self._seen(each), self.store)

    def _seen(self, matches: Matches) -> Matches:
        """Those whose starts are not forgotten before their ends."""
        if self._consumed is None or not matches.start.size:
            return matches
        until = self._consumed.until(self.store.take(matches.start, self._consumed.columns))
        ends = numbers_of(self.store.take(matches.end, [POSITION]), POSITION)
        return chosen(matches, np.flatnonzero(ends <= until))

    def _add_passing(self, starts: Starts, roots: Roots, ranks: NDArray[np.int64], sieve: Sieve) -> None:
        """Adds of each start what passes at its best ends: at twice as many in each round, until one does."""
        begun = self.recognizer.runs.compact.start[roots.root]
        passed, low, high = np.zeros(begun.size, np.bool_), 0, 1
        while (asked := np.flatnonzero(~passed & (low <= ranks) & (ranks < high))).size:
            matches = self.recognizer.matches(roots.chosen(asked), None, self._room)
            for each in sieve.sift_all(matches, self.store):
                starts.add(each, self.store)
                passed |= np.isin(begun, each.start)
            low, high = high, 2 * high

    def _chosen(self, starts: Starts, until: int | None) -> Iterator[Ended]:
        """What is chosen for the starts that are decided."""
        found = starts.decided(until)
        if found is not None:
            ends, first = np.unique(found.matches.end, return_index=True)
            roots = Roots(ends, np.zeros(ends.size, np.int32), np.zeros(ends.size, np.int64))
            ended = Ended(roots, found.position[first], sifted=[found.matches], store=found.store)
            yield from self._given(ended)

    def _given(self, ended: Ended) -> Iterator[Ended]:
        """What is given of what has ended: as much as LIMIT … PER lets through, and a share of it."""
        if self._throttle is not None:
            ended = self._let_through(ended, self._throttle)
            if not ended.sifted:
                return
        if self._dealer is None:
            yield ended
        else:
            yield from self.dealt(ended, self._dealer)

    def _let_through(self, ended: Ended, throttle: Throttle) -> Ended:
        """What a throttle lets through: counted at each end, and as much enumerated as is given."""
        roots = ended.roots
        ends, bounds = by_end(roots)
        sifted, store = ended.sifted, ended.store or self.store
        if sifted is None and self._sieve is not None:
            sifted = list(self._matches(ended))
        if sifted is None:
            of_roots = np.array(self.recognizer.counts(roots, MOST_COUNTED), np.int64)
            rough = np.add.reduceat(of_roots.astype(np.float64), bounds[:-1])
            exact = np.minimum(np.add.reduceat(of_roots, bounds[:-1]), MOST_COUNTED)
            counts = np.where(rough < MOST_COUNTED, exact, MOST_COUNTED)
        else:
            counts = np.zeros(ends.size, np.int64)
            for each in sifted:
                np.add.at(counts, np.searchsorted(ends, each.end), 1)
        known = store.take(ends, [TIME, *self._partition_columns])
        keys = np.zeros((ends.size, 2), np.uint64)
        if self._partition_columns:
            keys = side_by_side(known, self._partition_columns)
        take, before = throttle.admitted(keys, numbers_of(known, TIME), counts)
        if sifted is None:
            sifted = list(self.recognizer.matches(roots, None, self._room, _first_of(bounds, of_roots, take)))
        elif sifted:
            together = joined(sifted)
            of_end = np.searchsorted(ends, together.end)
            place = np.arange(of_end.size) - np.searchsorted(of_end, of_end)
            sifted = [chosen(together, np.flatnonzero(place < take[of_end]))]
        sifted = [each for each in sifted if each.start.size]
        return replace(ended, sifted=sifted, suppressed=(ends, before))

    def _ended(self, roots: Roots) -> Ended:
        """Compact sets that may have ended before this batch."""
        return Ended(roots, numbers_of(self.store.take(roots.event, [POSITION]), POSITION))

    def recognize_one(
        self, event: Single, as_batch: Callable[[Sequence[Single]], pa.RecordBatch]
    ) -> list[Ended]:
        """The compact sets that end in a single event; `as_batch` makes a classified batch of some."""
        consumed_when_asked = self._sieve is not None and self.plan.consume is not Consume.NONE
        waits = self._waiting is not None or self.plan.decides_later
        slow = consumed_when_asked or self._opened.keys or waits or self._consumed is not None
        if slow or self._dealer is not None:
            return list(self.recognize(as_batch([event])))
        self.store.append_one(event, as_batch)
        position, row = event
        values = row.values if self._values else ()
        one = OneEvent(
            position if self._in_positions else row.time,
            row.bits,
            self._opened.words,
            row.key if self._opened.partitioned else None,
            position,
            tuple(map(as_integer, values)),
            tuple([value is not None for value in values]),
        )
        if self._opened.clocks:
            shown = tuple([position if each else row.time for each in self._opened.clocks])
            one = one._replace(values=(*one.values, *shown), valid=(*one.valid, *(True for _ in shown)))
        found = [
            ended
            for roots in self.recognizer.push_one(one)
            for ended in self._given(Ended(roots, np.full(roots.event.size, position)))
        ]
        if not self.recognizer.holding:
            self._trim()
        return found

    def _batch(self, classified: pa.RecordBatch, positions: NDArray[np.int64]) -> EventBatch:
        """The columns that the automaton asks about, as integers."""
        partition = side_by_side(classified, KEYS) if self._opened.partitioned else None
        words = side_by_side(classified, self._words)
        if (missing := self._opened.words - len(self._words)) > 0:  # no SQL has written them
            words = np.pad(words, ((0, 0), (0, missing)))
        batch = EventBatch(
            stamps=positions if self._in_positions else numbers_of(classified, TIME),
            words=words,
            partition=NO_PARTITION if partition is None else partition,
            ordinal=numbers_of(classified, ORDINAL) if self._ordinals else positions,
        )
        if self._opened.keys:
            keys, known = join_keys(self._opened.keys, classified, partition)
            batch = batch._replace(keys=keys, known=known)
        values = [as_integers(classified.column(name)) for name in self._values]
        there = np.ones(positions.size, np.bool_)
        clocks = [positions if each else numbers_of(classified, TIME) for each in self._opened.clocks]
        values += [(each, there) for each in clocks]
        if values:
            batch = batch._replace(
                values=np.column_stack([each for each, _ in values]),
                valid=np.column_stack([known for _, known in values]),
            )
        return batch

    def _trim(self) -> None:
        if self.plan.window is None:
            return
        self.store.trim(self.recognizer.oldest)
        if self._nearby is not None:
            self._nearby.forget(self._oldest_time())

    def _oldest_time(self) -> int | None:
        """The time of the first event that can still be part of a complex event; None where there is none."""
        if self.store.first < self.store.next:
            return int(numbers_of(self.store.take(np.array([self.store.first]), [TIME]), TIME)[0])
        return None if self._waiting is None else self._waiting.first_time

    def give_only(self, share: Share) -> None:
        """From now on only a share is given: all shares of a stream together are its answers, each once.

        Sizes differ by one complex event at most. Where filters are left, that is so of what they are asked
        about; where these, or LIMIT behind them, compare the complex events of an end, whole ends are dealt.
        """
        self._dealer = Dealer(share)

    def dealt(self, ended: Ended, dealer: Dealer) -> Iterator[Ended]:
        """The share of what has ended that a dealer deals, few ends after few; dealt in order of their ends.

        How many depends on how much they hold, so that what nobody reads to the end is not counted, either.
        """
        roots, limit = ended.roots, self._limit
        ends, bounds = by_end(roots)
        if ended.sifted is None and (self._sieve is None or self._sieve.one_by_one):
            first = 0
            while first < ends.size:
                last = min(first + self._dealt_at_once, ends.size)
                here = slice(bounds[first], bounds[last])
                few = Ended(roots.part(here.start, here.stop), ended.position[here])
                counts = self.recognizer.counts(few.roots, limit)
                many = sum(counts) > _DEALT_AT_ONCE
                self._dealt_at_once = max(1, self._dealt_at_once // 4) if many else 2 * self._dealt_at_once
                yield replace(few, part=dealer.deal(few.roots.event, counts, limit))
                first = last
            return
        own = ends[dealer.deal(ends, [1] * ends.size).place]
        yield _at_ends(ended, np.flatnonzero(np.isin(roots.event, own)))

    # ------------------------------------------------------------------------- reading what was found

    def tables(self, ended: Ended) -> Iterator[pa.RecordBatch]:
        """The complex events of `ended`, as tables."""
        for matches, suppressed in self._with_suppressed(ended):
            yield self.reporter.table(matches, ended.store or self.store, suppressed)
            self._room = min(4 * self._room, _LARGEST_ROOM)

    def tables_with_starts(
        self, ended: Ended, also: Sequence[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The tables of `ended`, each with columns of the events that start its rows.

        They are the positions, the times, and those that are asked for.
        """
        store, columns = ended.store or self.store, list(dict.fromkeys([POSITION, TIME, *also]))
        for matches, suppressed in self._with_suppressed(ended):
            yield self.reporter.table(matches, store, suppressed), store.take(matches.start, columns)

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """What `decided` gives, as tables."""
        for ended in self.decided(position=position, time=time):
            yield from self.tables(ended)

    def _with_suppressed(self, ended: Ended) -> Iterator[tuple[Matches, NDArray[np.int64] | None]]:
        """The complex events of `ended`, with how many were left out before each, where that is shown."""
        last = -1
        for matches in self._matches(ended):
            suppressed = None
            if ended.suppressed is not None:
                ends, before = ended.suppressed
                first = np.diff(matches.end, prepend=last) != 0
                suppressed = np.where(first, before[np.searchsorted(ends, matches.end)], 0)
                last = int(matches.end[-1])
            yield matches, suppressed

    def _matches(self, ended: Ended) -> Iterator[Matches]:
        """The complex events of `ended` that are answers."""
        if ended.sifted is not None:
            yield from ended.sifted
        elif self._sieve is None:
            room = max(self._room, min(4 * ended.roots.event.size, _FOUND_ROOM))
            yield from self.recognizer.matches(ended.roots, self._limit, room, ended.part)
        elif ended.part is None and self._sieve.stops_at is not None:
            enough = self._sieve.stops_at
            from estero.answers.sieve.sieve import sifted_to_limit

            yield from sifted_to_limit(self._sieve, self._first_matches, ended.roots, enough, self.store)
        else:
            found = self.recognizer.matches(ended.roots, None, self._room, ended.part)
            yield from self._sieve.sift_all(found, self.store)

    def _first_matches(self, roots: Roots, most: int) -> Iterable[Matches]:
        """The first `most` complex events of each end of `roots`, each of which has one."""
        return self.recognizer.matches(roots, most, max(_FIRST_ROOM, min(roots.event.size, _LARGEST_ROOM)))

    def counts(self, ended: Ended) -> Iterable[tuple[int, int]]:
        """(end position, exact number of complex events), each end once, LIMIT respected."""
        if self.plan.needs_enumeration:
            return self._counts_of_sifted(ended)
        if ended.part is not None:
            found = dict(ended.part.by_end(ended.roots.event))
            ends, numbers = np.array(list(found), np.int64), list(found.values())
        else:
            ends, numbers = self.recognizer.counts_by_end(ended.roots, self._limit)
        positions = ended.position[np.searchsorted(ended.roots.event, ends)].tolist()
        return zip(positions, numbers, strict=True)

    def _counts_of_sifted(self, ended: Ended) -> list[tuple[int, int]]:
        """By enumeration: nothing else tells which complex events the sieve leaves."""
        numbers: Counter[int] = Counter()
        for matches in self._matches(ended):
            ends, counts = np.unique(matches.end, return_counts=True)
            numbers.update(dict(zip(ends.tolist(), counts.tolist(), strict=True)))
        places = np.searchsorted(ended.roots.event, list(numbers))
        return list(zip(ended.position[places].tolist(), numbers.values(), strict=True))

    def add(self, ended: Ended) -> int:
        """Counts what has ended, now or later, LIMIT respected; the exact number that was counted now."""
        if self.plan.needs_enumeration or ended.part is not None:
            return sum(number for _, number in self.counts(ended))
        tally, roots = self.recognizer.runs.tally, ended.roots
        if self._limit is not None:
            return sum(self.recognizer.counts_by_end(roots, self._limit)[1])
        if tally is None:
            return self.recognizer.total(roots)
        if tally.scattered:
            return tally.rest() + self.recognizer.total(roots)
        return tally.add(int(roots.event[0]), int(roots.event[-1]) + 1)

    def rest(self) -> int:
        """The exact number of complex events that were added and are not counted yet."""
        tally = self.recognizer.runs.tally
        return 0 if tally is None else tally.rest()

    def ends(self, ended: Ended) -> Ends:
        """The ends at which something has ended, and how many complex events they have; there is no sieve."""
        roots = ended.roots
        tally = self.recognizer.runs.tally if self._limit is None else None
        ends, bounds = by_end(roots)
        if tally is not None and self.plan.window is not None:
            return Ends(bounds, tally.before(ends))
        _, numbers = self.recognizer.counts_by_end(roots, self._limit if tally is None else _SHORT)
        if tally is not None and max(numbers) == _SHORT:
            return Ends(bounds, tally.before(ends))
        return Ends(bounds, list(accumulate(numbers, initial=0)).__getitem__)

    def pick(self, ended: Ended, ends: Ends, indexes: list[int], share: Share, dealt: int) -> pa.RecordBatch:
        """The complex events with these ascending indexes in a share, LIMIT respected.

        `dealt` is how many were dealt to all shares before those of `ended`. What is in one window is counted
        together: long numbers are worked out once.
        """
        roots, limit, matches = ended.roots, self._limit, []
        found = [(index, ends.with_index(index, share, dealt)) for index in indexes]
        for _, of_window in groupby(found, lambda each: roots.oldest.item(ends.bounds[each[1]])):
            together = list(of_window)
            places = sorted({place for _, number in together for place in ends.roots_of(number)})
            counts = dict(
                zip(places, self.recognizer.counts(roots.chosen(np.array(places)), limit), strict=True)
            )
            for index, number in together:
                before, places = dealt + ends.before(number), list(ends.roots_of(number))
                here = roots.part(places[0], places[-1] + 1)
                part = Dealer(share, before).deal(here.event, [counts[place] for place in places], limit)
                ((place, place_below),) = part.at([index - share.size_of(before)])
                matches.append(self.recognizer.match_at(here, place, place_below))
        return self.reporter.table(joined(matches), self.store)

    def pick_sifted(self, ended: Ended, indexes: list[int]) -> pa.RecordBatch:
        """The complex events with these ascending indexes in `ended`, of which the sieve leaves enough."""
        picked = []
        before = 0
        wanted = np.array(indexes, np.int64)
        for table in self.tables(ended):
            here = wanted[(wanted >= before) & (wanted < before + table.num_rows)] - before
            picked.append(table.take(array_of(here)))
            before += table.num_rows
            if before > indexes[-1]:
                break
        return pa.Table.from_batches(picked, schema=self.schema).combine_chunks().to_batches()[0]

    # ------------------------------------------------------------------------- stopping and going on

    def snapshot(self) -> bytes:
        """All that is needed to go on; nothing that has left the window is in it."""
        return self._holding.written(self.plan, self._events)

    def advance(self, time: int) -> None:
        """No event before `time`, in ticks, comes any more: windows close, and memory is freed.

        What was recognized before must have been read.
        """
        if not self.plan.by_position:
            self.recognizer.expire(time - (self.plan.wait or 0))
        self._time = max(self._time, time)
        self.let_go()

    def let_go(self) -> None:
        """Frees what is out of reach, if it is much; what was recognized before must have been read."""
        self.recognizer.release()
        self._trim()
        self._holding.compact()

    def expire(self, *, position: int, time: int | None) -> None:
        """No event before `position`, or before `time` in ticks, comes any more: windows close.

        What was recognized before can still be read.
        """
        until = self.known_through(position, time)
        if until is not None:
            self.recognizer.expire(until)

    def open_runs(self) -> OpenRuns:
        """What is open; it takes as long as a snapshot."""
        return open_runs(self.plan, self._opened, self.recognizer.snapshot(), self.store)

    @property
    def waiting(self) -> int:
        """How many events wait for their deadlines."""
        return 0 if self._waiting is None else self._waiting.waiting

    @property
    def idle(self) -> bool:
        """Whether nothing is open: to begin anew would change no later answer."""
        others = self._throttle, self._starts
        waits = self._waiting is not None and not self._waiting.idle(self._time)
        waits = waits or (self._nearby is not None and not self._nearby.idle(self._time))
        return not waits and self.recognizer.idle and all(each is None or each.idle for each in others)

    @property
    def due(self) -> int | None:
        """The time of the first deadline that something waits for; None where nothing waits."""
        first = None if self._waiting is None else self._waiting.first_time
        return None if first is None else first + (self.plan.wait or 0)


Found = Iterator[tuple[Recognition, Ended]]
"""Compact sets in order of their ends, each with what has found it."""


def number_of(found: Found, enough: int | None = None) -> int:
    """The exact number of complex events in what one stream has; at least `enough` if there are more."""
    total, last = 0, None
    for recognition, ended in found:
        total += recognition.add(ended)
        last = recognition
        if enough is not None and total >= enough:
            return total
    return total if last is None else total + last.rest()


def _at_ends(ended: Ended, places: NDArray[np.intp]) -> Ended:
    """What of `ended` ends where the roots at these places do: all of an end, or nothing."""
    if places.size == ended.roots.event.size:
        return ended
    roots, sifted = ended.roots.chosen(places), ended.sifted
    if sifted is not None:
        found = (chosen(each, np.flatnonzero(np.isin(each.end, roots.event))) for each in sifted)
        sifted = [each for each in found if each.start.size]
    return replace(ended, roots=roots, position=ended.position[places], sifted=sifted)


def _first_of(bounds: Sequence[int], counts: NDArray[np.int64], take: NDArray[np.int64]) -> Part:
    """The first take[i] complex events of end i, which has the roots between bounds[i] and bounds[i + 1]."""
    sizes = np.diff(bounds)
    wanted = np.repeat(take, sizes)
    some = np.minimum(counts, wanted)
    after = np.cumsum(some)
    before = after - some
    size = np.clip(wanted - (before - np.repeat(before[list(bounds[:-1])], sizes)), 0, some)
    place = np.flatnonzero(size)
    return Part(place, np.zeros(place.size, np.int64), size[place])


def _nearby_events(plan: Plan, events: pa.Schema) -> NearbyEvents:
    from estero.answers.sieve.nearby import NearbyEvents

    return NearbyEvents(plan, events)


def _sieve_of(
    plan: Plan, opened: Opened, nearby: NearbyEvents | None, *, placed: bool, wait: Wait | None
) -> Sieve | None:
    """What sifts the complex events of a plan."""
    if not plan.sieved:
        return None
    from estero.answers.sieve.sieve import Sieve  # loads DuckDB, which few workers of Spark need

    return Sieve(
        plan.residuals,
        opened.label_sets,
        opened.hidden_sets,
        classification=plan.classification,
        strategy=plan.strategy,
        limit=None if plan.limit is None or plan.lists_for_starts else plan.limit.per_end,
        predicates=plan.predicates,
        repeats=plan.has_hidden,
        marks_only=plan.merges_starts,
        placed=placed,
        nearby=nearby,
        wait=wait,
    )
