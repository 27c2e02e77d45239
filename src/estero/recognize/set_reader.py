"""Compact sets that have ended → tables, counts, and single complex events by their indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.answers.placed_rows import PlacedRows
from estero.answers.report import Reporter
from estero.classify.arrays import array_of, one_batch
from estero.classify.column_names import POSITION, TIME
from estero.engine.int64 import are_before
from estero.engine.recognizer import Recognizer
from estero.engine.runs.runs import Runs
from estero.engine.walk.matches import Matches, joined
from estero.engine.walk.roots import Roots, by_end
from estero.engine.walk.share import Dealer, Part, Share
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndBounds, EndedSets

if TYPE_CHECKING:
    from estero.answers.sieve.sieve import Sieve

_FIRST_CAPACITY, _LARGEST_CAPACITY = 256, 1 << 16
_CAPACITY_FOR_ROOTS = 1 << 12
"""The initial capacity for the complex events of existing roots: each has at least one."""
_SHORT = 1 << 61
"""The number up to which counts are read from a compact set without a window at once."""


class SetReader:
    """Reads the results of a recognizer; `sieve` rejects complex events that are no answers."""

    def __init__(
        self,
        plan: Plan,
        recognizer: Recognizer[Runs],
        store: EventStore,
        reporter: Reporter,
        sieve: Sieve | None,
    ) -> None:
        self.plan = plan
        self.recognizer = recognizer
        self.store = store
        self.sieve = sieve
        self.limit: int | None = None if plan.limit is None else plan.limit.per_end
        self._reporter = reporter
        self._placed: PlacedRows | None = None
        self._capacity = _FIRST_CAPACITY

    @property
    def schema(self) -> pa.Schema:
        """The schema of the tables."""
        return self._reporter.schema

    @property
    def marks(self) -> int:
        """The number of label sets: events are marked by those from 0 on."""
        return self._reporter.marks

    @property
    def reporter(self) -> Reporter:
        """The maker of tables of complex events."""
        return self._reporter

    def limit_time(self, check: Callable[[], None]) -> None:
        """Calls `check` now and then while complex events are sieved; if it raises an error, that ends it."""
        if self.sieve is not None:
            self.sieve.before_chunk = check

    # ------------------------------------------------------------------------------- complex events

    def matches(self, ended: EndedSets) -> Iterator[Matches]:
        """The complex events of `ended` that are answers."""
        if ended.sifted is not None:
            yield from ended.sifted
        elif self.sieve is None:
            roots = ended.roots.event.size
            capacity = max(self._capacity, min(4 * roots, _CAPACITY_FOR_ROOTS))
            if self.limit is not None:  # no more than that, and one place free: a full batch is not the last
                capacity = min(capacity, max(_FIRST_CAPACITY, self.limit * roots + 1))
            yield from self.recognizer.matches(ended.roots, self.limit, capacity, ended.part)
        elif ended.part is None and self.sieve.stops_at is not None:
            from estero.answers.sieve.sieve import sifted_to_limit  # loads DuckDB

            enough = self.sieve.stops_at
            yield from sifted_to_limit(self.sieve, self._first_matches, ended.roots, enough, self.store)
        else:
            yield from self.passing(ended.roots, ended.part)

    def passing(self, roots: Roots, part: Part | None = None) -> Iterable[Matches]:
        """The complex events of `roots`, or of a part of them, that pass the sieve, regardless of LIMIT."""
        matches = self.recognizer.matches(roots, None, self._capacity, part)
        return matches if self.sieve is None else self.sieve.sift_all(matches, self.store)

    def _first_matches(self, roots: Roots, most: int) -> Iterable[Matches]:
        """The first `most` complex events of each end of `roots`, each of which has one."""
        capacity = max(_FIRST_CAPACITY, min(roots.event.size, _LARGEST_CAPACITY))
        return self.recognizer.matches(roots, most, capacity)

    def tables(self, ended: EndedSets) -> Iterator[pa.RecordBatch]:
        """The complex events of `ended`, as tables."""
        for table, _ in self._tables(ended):
            yield table

    def tables_with_ends(self, ended: EndedSets) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """The tables of `ended`, each with the positions at which its rows end."""
        for table, matches in self._tables(ended):
            yield table, ended.positions_of(matches.end)

    def _tables(self, ended: EndedSets) -> Iterator[tuple[pa.RecordBatch, Matches]]:
        for matches, suppressed in self._with_suppressed(ended):
            yield self._reporter.table(matches, ended.store or self.store, suppressed), matches
            self._capacity = min(4 * self._capacity, _LARGEST_CAPACITY)

    def tables_with_starts(
        self, ended: EndedSets, also: Sequence[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The tables of `ended`, each with columns of the events that start its rows.

        They are the positions, the times, and the requested ones.
        """
        store, columns = ended.store or self.store, list(dict.fromkeys([POSITION, TIME, *also]))
        for matches, suppressed in self._with_suppressed(ended):
            yield self._reporter.table(matches, store, suppressed), store.take(matches.start, columns)

    def placed_rows(
        self, ended: EndedSets, names: Sequence[str], column: str | None
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """The rows of `ended` in the common table of rules with some `names`, and the rule of each row.

        The event that starts a row has its rule in a `column`; without one, all rows are of the first rule.
        """
        if self._placed is None:
            self._placed = PlacedRows.of(self._reporter)
        store = ended.store or self.store
        for matches in self.matches(ended):
            rules = np.zeros(matches.start.size, np.int64)
            if column is not None:
                rules = store.numbers(matches.start, column)
            yield self._placed.rows(matches, store, names, rules), rules

    def _with_suppressed(self, ended: EndedSets) -> Iterator[tuple[Matches, NDArray[np.int64] | None]]:
        """The complex events of `ended`, with the number left out before each, if that is shown."""
        last = -1
        for matches in self.matches(ended):
            suppressed = None
            if ended.suppressed is not None:
                ends, before = ended.suppressed
                first = np.diff(matches.end, prepend=last) != 0
                suppressed = np.where(first, before[np.searchsorted(ends, matches.end)], 0)
                last = int(matches.end[-1])
            yield matches, suppressed

    def undecided(self, ended: EndedSets, known: int) -> EndedSets:
        """The part of `ended` that waits for its deadline if times are known up to `known`."""
        times = numbers_of((ended.store or self.store).take(ended.roots.event, [TIME]), TIME)
        return ended.at(np.flatnonzero(~are_before(times, known - (self.plan.wait or 0))))

    # -------------------------------------------------------------------------------------- counts

    def counts(self, ended: EndedSets) -> Iterable[tuple[int, int]]:
        """(end position, exact number of complex events) for each end, with LIMIT applied."""
        if self.plan.needs_enumeration:
            return self._counts_of_sifted(ended)
        if ended.part is not None:
            of_ends = dict(ended.part.by_end(ended.roots.event))
            ends, numbers = np.array(list(of_ends), np.int64), list(of_ends.values())
        else:
            ends, numbers = self.recognizer.counts_by_end(ended.roots, self.limit)
        positions = ended.position[np.searchsorted(ended.roots.event, ends)].tolist()
        return zip(positions, numbers, strict=True)

    def _counts_of_sifted(self, ended: EndedSets) -> list[tuple[int, int]]:
        """Counts by enumeration: nothing else tells which complex events pass the sieve."""
        numbers: Counter[int] = Counter()
        for matches in self.matches(ended):
            ends, counts = np.unique(matches.end, return_counts=True)
            numbers.update(dict(zip(ends.tolist(), counts.tolist(), strict=True)))
        places = np.searchsorted(ended.roots.event, list(numbers))
        return list(zip(ended.position[places].tolist(), numbers.values(), strict=True))

    def add(self, ended: EndedSets) -> int:
        """Adds sets to be counted now or later, with LIMIT applied; returns the exact number counted now."""
        if self.plan.needs_enumeration or ended.part is not None:
            return sum(number for _, number in self.counts(ended))
        tally, roots = self.recognizer.runs.tally, ended.roots
        if self.recognizer.runs.total is not None:
            return self.recognizer.runs.total
        if self.limit is not None:
            return self.recognizer.total(roots, self.limit)
        if tally is None:
            return self.recognizer.total(roots)
        if tally.scattered:
            return tally.rest() + self.recognizer.total(roots)
        return tally.add(int(roots.event[0]), int(roots.event[-1]) + 1)

    def rest(self) -> int:
        """The exact number of complex events that were added and not counted yet."""
        tally = self.recognizer.runs.tally
        return 0 if tally is None else tally.rest()

    # ------------------------------------------------------------------------------------- indexes

    def ends(self, ended: EndedSets) -> EndBounds:
        """The ends in the sets, and their numbers of complex events; there is no sieve."""
        roots = ended.roots
        tally = self.recognizer.runs.tally if self.limit is None else None
        ends, bounds = by_end(roots)
        if tally is not None and self.plan.window is not None:
            return EndBounds(bounds, tally.before(ends))
        _, numbers = self.recognizer.counts_by_end(roots, self.limit if tally is None else _SHORT)
        if tally is not None and max(numbers) == _SHORT:
            return EndBounds(bounds, tally.before(ends))
        return EndBounds(bounds, list(accumulate(numbers, initial=0)).__getitem__)

    def pick(
        self, ended: EndedSets, ends: EndBounds, indexes: list[int], share: Share, dealt: int
    ) -> pa.RecordBatch:
        """The complex events with these ascending indexes in a share, with LIMIT applied.

        `dealt` is the number dealt to all shares before those of `ended`. The complex events of one window
        are counted together, so that long numbers are computed once.
        """
        roots, limit, matches = ended.roots, self.limit, []
        wanted = [(index, ends.with_index(index, share, dealt)) for index in indexes]
        for _, of_window in groupby(wanted, lambda pair: roots.oldest.item(ends.bounds[pair[1]])):
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
        return self._reporter.table(joined(matches), self.store)

    def pick_sifted(self, ended: EndedSets, indexes: list[int]) -> pa.RecordBatch:
        """The complex events with these ascending indexes in `ended`, of which enough pass the sieve."""
        picked = []
        before = 0
        wanted = np.array(indexes, np.int64)
        for table in self.tables(ended):
            here = wanted[(wanted >= before) & (wanted < before + table.num_rows)] - before
            picked.append(table.take(array_of(here)))
            before += table.num_rows
            if before > indexes[-1]:
                break
        return one_batch(pa.Table.from_batches(picked, schema=self.schema))


ReadableSets = Iterator[tuple[SetReader, EndedSets]]
"""Compact sets in order of their ends, each with what reads it."""


def number_in(sets: ReadableSets, enough: int | None = None) -> int:
    """The exact number of complex events in all sets of one stream; at least `enough` if there are more."""
    total, last = 0, None
    for reader, ended in sets:
        total += reader.add(ended)
        last = reader
        if enough is not None and total >= enough:
            return total
    return total if last is None else total + last.rest()
