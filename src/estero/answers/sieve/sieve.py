"""What is checked on enumerated complex events: filters, duplicates, the strategy, LIMIT, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from estero.answers.report import EventStore
from estero.answers.sieve.asking import Asker
from estero.answers.sieve.batches import chosen, items_of, joined, shown
from estero.answers.sieve.conditions import Check, check_of
from estero.answers.sieve.duplicates import Duplicates
from estero.answers.sieve.marked import EventsAtHand, Instances, MarkTable
from estero.answers.sieve.strategies import strategic
from estero.answers.sieve.truth import TRUE
from estero.automata.residual import Hidden, Residual, columns_read, predicates_called
from estero.classify.columns import ColumnType
from estero.engine.walk.matches import Matches
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.query import Strategy
from estero.plan.plan import Classification


@runtime_checkable
class Skipping(Protocol):
    """Chunks of matches that can leave out what is left of an end."""

    def skip_end(self, end: int) -> None:
        """No more matches with this end are wanted."""


class Sieve:
    """Checks batches of complex events of one run.

    `label_sets[id]` and `hidden_sets[id]` are what an event marked `id` shows and hides. `classification`
    says which attributes types have; `columns` how to read the columns of the store (columns.py, for DuckDB;
    by default what their types in Arrow say). `predicates` are those over sets of events, by name. STRICT is
    not a matter of the sieve: the automaton sees to it.

    Raises `QueryError` for a predicate that is not there.
    """

    def __init__(
        self,
        residuals: Sequence[Residual],
        label_sets: Sequence[frozenset[str]],
        hidden_sets: Sequence[frozenset[Hidden]],
        *,
        classification: Classification,
        strategy: Strategy = Strategy.ALL,
        limit: int | None = None,
        columns: Mapping[str, ColumnType] | None = None,
        predicates: Mapping[str, RegisteredPredicate] | None = None,
    ) -> None:
        self._residuals = tuple(residuals)
        self._marks = MarkTable(label_sets, hidden_sets)
        self._schema, self._type_column = classification.schema, classification.type_column
        self._strategy = strategy
        self._limit = limit
        self._columns = columns
        self._predicates = predicates or {}
        self._checks: list[tuple[Residual, Check]] | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of the store that it reads, besides the positions."""
        return columns_read(self._residuals, self._schema, self._type_column)

    @property
    def one_by_one(self) -> bool:
        """Whether each complex event stays or not whatever the others of its end are."""
        compared = self._strategy in {Strategy.MAX, Strategy.NEXT, Strategy.LAST}
        return not compared and self._limit is None and not self._marks.merges

    @property
    def stops_at(self) -> int | None:
        """How many complex events of an end are enough, if that one stays does not depend on later ones."""
        compared = self._strategy in {Strategy.MAX, Strategy.NEXT, Strategy.LAST}
        return None if compared else self._limit

    def sift(self, matches: Matches, store: EventStore) -> Matches:
        """Those of `matches` that stay, in order; they are all complex events of their end positions.

        Matches with equal ends stand together. Their marks are as answers show them: items without visible
        labels are left out, and ids with the same visible labels become the smallest of them.

        Raises `DataError` for an overflow in a filter and for what a user's predicate raises.
        """
        kept = list(self.sift_all([matches], store))
        return joined(kept) if kept else chosen(matches, np.empty(0, np.int64))

    def sift_all(self, chunks: Iterable[Matches], store: EventStore) -> Iterator[Matches]:
        """The same for complex events that come in chunks, where an end may reach over several of them.

        Without a strategy nothing is kept back, and where LIMIT is reached, chunks that are `Skipping` are
        told so. With one, what may stay of the last end is kept until the end is complete.
        """
        filled = (chunk for chunk in chunks if len(chunk.start))
        if self._strategy in {Strategy.MAX, Strategy.NEXT, Strategy.LAST}:
            yield from self._by_end(filled, store)
        else:
            yield from self._at_once(filled, store, chunks if isinstance(chunks, Skipping) else None)

    # --------------------------------------------------------------------------------- in chunks

    def _at_once(
        self, chunks: Iterable[Matches], store: EventStore, source: Skipping | None
    ) -> Iterator[Matches]:
        end, given = -1, 0
        duplicates = Duplicates()
        for chunk in chunks:
            full = self._limit is not None and given >= self._limit
            wanted = chosen(chunk, np.flatnonzero(chunk.end != end)) if full else chunk
            last = int(chunk.end[-1])
            kept = self._within_limit(self._new(wanted, last, duplicates, store), end, given)
            given = int(np.count_nonzero(kept.end == last)) + (given if last == end else 0)
            end = last
            if len(kept.start):
                yield kept
            if source is not None and self._limit is not None and given >= self._limit:
                source.skip_end(end)

    def _by_end(self, chunks: Iterable[Matches], store: EventStore) -> Iterator[Matches]:
        held: list[Matches] = []
        duplicates = Duplicates()
        for chunk in chunks:
            last = int(chunk.end[-1])
            candidates = joined([*held, self._new(chunk, last, duplicates, store)])
            chosen_ones = chosen(candidates, strategic(self._strategy, candidates))
            complete = chosen(chosen_ones, np.flatnonzero(chosen_ones.end != last))
            if len(complete.start):
                yield self._within_limit(complete)
            held = [chosen(chosen_ones, np.flatnonzero(chosen_ones.end == last))]
        yield from (self._within_limit(each) for each in held if len(each.start))

    def _new(self, chunk: Matches, last: int, duplicates: Duplicates, store: EventStore) -> Matches:
        """What passes the filters, as it is shown, without what was there before."""
        passing = shown(self._filtered(chunk, store), self._marks)
        return chosen(passing, duplicates.without(passing, last)) if self._marks.merges else passing

    def _within_limit(self, matches: Matches, end: int = -1, given: int = 0) -> Matches:
        """The first of each end; `given` are those that the end `end` has had."""
        if self._limit is None or not len(matches.start):
            return matches
        rows = np.arange(len(matches.start))
        begins = np.diff(matches.end, prepend=matches.end[0] - 1) != 0
        place = rows - np.maximum.accumulate(np.where(begins, rows, 0))
        return chosen(matches, np.flatnonzero(place + given * (matches.end == end) < self._limit))

    # ----------------------------------------------------------------------------------- filters

    def _filtered(self, matches: Matches, store: EventStore) -> Matches:
        """The matches that all residuals let pass; each is asked of what the one before it left."""
        if not self._residuals or not len(matches.start):
            return matches
        if self._checks is None:
            self._checks = self._made_checks(store)
        events = EventsAtHand(matches, store)
        for residual, check in self._checks:
            at = Instances(residual, matches, events, self._marks)
            keep = np.ones(len(matches.start), np.bool_)
            keep[at.match[(check.truths(at) == TRUE) == residual.refuted]] = False
            rows = np.flatnonzero(keep)
            if len(rows) < len(keep):
                events.keep(items_of(matches, rows))
                matches = chosen(matches, rows)
        return matches

    def _made_checks(self, store: EventStore) -> list[tuple[Residual, Check]]:
        """One for each residual; those that call Python come last."""
        asker = Asker(store.schema, self._columns)
        ordered = sorted(self._residuals, key=lambda each: bool(predicates_called([each])))
        return [
            (each, check_of(each.condition, asker, self._predicates, self._schema, self._type_column))
            for each in ordered
        ]
