"""Checks of enumerated complex events: filters, duplicates, the strategy, LIMIT, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from estero.answers.event_store import EventStore
from estero.answers.measures.evaluator import TRUE, Evaluator
from estero.answers.measures.marked import EventsAtHand, Integers, Mask
from estero.answers.sieve.apartness import apartness
from estero.answers.sieve.candidates import bounded, most_candidates
from estero.answers.sieve.conditions import Check, check_of
from estero.answers.sieve.duplicates import Duplicates
from estero.answers.sieve.instances import Instances, MarkTable
from estero.answers.sieve.nearby import NearbyEvents
from estero.answers.sieve.strategies import strategic
from estero.answers.wait import Wait
from estero.automata.residual import Hidden, Residual, predicates_called
from estero.classify.column_names import event_column
from estero.engine.walk.matches import Matches, chosen, items_of, joined, taken
from estero.engine.walk.roots import Roots, by_end
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.query import Strategy
from estero.language.tree.whole import DEADLINE, ENDS
from estero.plan.plan import Classification, residual_text


@runtime_checkable
class Skipping(Protocol):
    """Chunks of matches that can skip the rest of an end."""

    def skip_end(self, end: int) -> None:
        """Skips the remaining matches with this end."""


def _nothing() -> None:
    pass


class Sieve:
    """Checks batches of complex events of one run.

    `label_sets[id]` and `hidden_sets[id]` are the visible and hidden labels of an event marked `id`.
    `classification` has the attributes of each type. `predicates` are those over sets of events, by name.
    `repeats`: complex events may come several times, even with the same marks. `marks_only`: those that
    differ in their starts alone are one, which starts at its first mark. `placed`: events have the positions
    of the whole stream, so that messages may mention them. STRICT is handled by the automaton, not by the
    sieve. `nearby` are the events that absences forbid, and `wait` is how long ended matches wait for
    deadlines.

    Sifting raises `QueryError` for a predicate that is not registered.
    """

    def __init__(  # noqa: PLR0913 (what a plan says of its complex events)
        self,
        residuals: Sequence[Residual],
        label_sets: Sequence[frozenset[str]],
        hidden_sets: Sequence[frozenset[Hidden]],
        *,
        classification: Classification,
        strategy: Strategy = Strategy.ALL,
        limit: int | None = None,
        predicates: Mapping[str, RegisteredPredicate] | None = None,
        repeats: bool = False,
        marks_only: bool = False,
        placed: bool = True,
        nearby: NearbyEvents | None = None,
        wait: Wait | None = None,
    ) -> None:
        self._nearby = nearby
        self._wait = wait
        self._residuals = tuple(residuals)
        self._of_whole = any(key in ENDS for residual in residuals for _, key in residual.bindings)
        self._marks = MarkTable(label_sets, hidden_sets)
        self._merges = repeats or marks_only or self._marks.merges
        self._marks_only = marks_only
        self._schema, self._type_column = classification.schema, classification.type_column
        self._keys = classification.keys
        self._strategy = strategy
        self._compares = strategy in {Strategy.MAX, Strategy.NEXT, Strategy.LAST}
        self._limit = limit
        self._most = most_candidates()
        self._placed = placed
        self._predicates = predicates or {}
        self._checks: list[tuple[Residual, Check]] | None = None
        self.before_chunk: Callable[[], None] = _nothing
        """Called before each chunk; an exception that it raises ends the sifting."""

    @property
    def one_by_one(self) -> bool:
        """Whether each complex event is kept or dropped regardless of others with the same end."""
        return not self._compares and self._limit is None and not self._merges

    @property
    def stops_at(self) -> int | None:
        """How many complex events of an end are enough; None if all are wanted, or later ones decide."""
        return None if self._compares else self._limit

    def sift_all(self, chunks: Iterable[Matches], store: EventStore) -> Iterator[Matches]:
        """The matches that stay, in order; they come in chunks, those of one end after the other.

        Their marks are as answers show them: items without visible labels are left out, and ids with the same
        visible labels become the smallest of them. Without a strategy nothing is held back, and once LIMIT is
        reached, chunks that are `Skipping` skip the rest. With a strategy, matches of the last end that may
        stay are held until that end is complete.

        Raises `DataError` for an overflow in a filter and for exceptions of a user's predicate, and
        `LimitExceeded` if a strategy has too many complex events of one end to choose from.
        """
        filled = self._filled(chunks)
        if self._compares or self._strategy.one_for_each_start:
            time, keys = self._schema.time, self._keys
            asked = next((residual_text(residual, time, keys) for residual in self._residuals), None)
            filled = bounded(filled, self._most, self._strategy, asked)
        if self._compares:
            yield from self._by_end(filled, store)
        else:
            yield from self._at_once(filled, store, chunks if isinstance(chunks, Skipping) else None)

    def _filled(self, chunks: Iterable[Matches]) -> Iterator[Matches]:
        for chunk in chunks:
            self.before_chunk()
            if len(chunk.start):
                yield chunk

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
        yield from (self._within_limit(matches) for matches in held if len(matches.start))

    def _new(self, chunk: Matches, last: int, duplicates: Duplicates, store: EventStore) -> Matches:
        """The complex events that pass the filters, as they are shown, without duplicates of earlier ones."""
        passing = self._marks.shown(self._filtered(chunk, store))
        passing = _from_first_mark(passing) if self._marks_only else passing
        return chosen(passing, duplicates.without(passing, last)) if self._merges else passing

    def _within_limit(self, matches: Matches, end: int = -1, given: int = 0) -> Matches:
        """The first complex events of each end; `given` of the end `end` have been given before."""
        if self._limit is None or not len(matches.start):
            return matches
        rows = np.arange(len(matches.start))
        begins = np.diff(matches.end, prepend=matches.end[0] - 1) != 0
        place = rows - np.maximum.accumulate(np.where(begins, rows, 0))
        return chosen(matches, np.flatnonzero(place + given * (matches.end == end) < self._limit))

    # ----------------------------------------------------------------------------------- filters

    def _filtered(self, matches: Matches, store: EventStore) -> Matches:
        """The matches that pass all residuals; each residual is evaluated on what the one before it left."""
        if not self._residuals or not len(matches.start):
            return matches
        if self._checks is None:
            self._checks = self._made_checks(store)
        asked = [matches.event, matches.start, matches.end] if self._of_whole else [matches.event]
        excerpt, rows_of = store.excerpt(asked)
        events = EventsAtHand(excerpt, *rows_of, wait=self._wait)
        for residual, check in self._checks:
            if residual.nearby is not None and self._nearby is not None:
                keep = ~self._nearby.refuted(residual, check, matches, events, store, self._marks)
            else:
                at = Instances(residual, matches, events, self._marks)
                keep = np.ones(len(matches.start), np.bool_)
                keep[at.match[~self._holds(residual, check, at)]] = False
            rows = np.flatnonzero(keep)
            if len(rows) < len(keep):
                events.keep(items_of(matches, rows), rows)
                matches = chosen(matches, rows)
        return matches

    @staticmethod
    def _holds(residual: Residual, check: Check, at: Instances) -> Mask:
        """Whether a residual filter holds in each instance."""
        holds: Mask = (check(at) == TRUE) ^ residual.refuted
        if residual.soon is not None:
            holds |= apartness(residual.soon)(at) == TRUE
        return holds

    def _made_checks(self, store: EventStore) -> list[tuple[Residual, Check]]:
        """A check for each residual; those that read more events, and those that call Python, come last."""
        schema = store.schema
        if self._wait is not None:
            schema = schema.append(pa.field(event_column(DEADLINE), self._wait.time))
        evaluator = Evaluator(schema)
        ordered = sorted(
            self._residuals,
            key=lambda residual: (residual.nearby is not None, bool(predicates_called([residual]))),
        )
        check = partial(
            check_of,
            evaluator=evaluator,
            predicates=self._predicates,
            schema=self._schema,
            type_column=self._type_column,
            placed=self._placed,
        )
        return [(residual, check(residual.condition)) for residual in ordered]


def _from_first_mark(matches: Matches) -> Matches:
    """The matches, starting at their first mark; one without marks starts at its end."""
    first, last = matches.offsets[:-1], matches.offsets[1:]
    marked = np.flatnonzero(first < last)
    start = matches.end.copy()
    start[marked] = matches.event[first[marked]]
    return matches._replace(start=start)


# --------------------------------------------------------------------------------- LIMIT after filters


Find = Callable[[Roots, int], Iterable[Matches]]
"""A function that finds the first complex events, up to a number, of each end of some roots."""

_FIRST: Final = 4
"""The number looked at for each one wanted, before it is known how many pass."""
_FACTOR: Final = 8
_AT_ONCE: Final = 1 << 16
"""The number of complex events held until their ends are complete, unless one end has more."""


def sifted_to_limit(
    sieve: Sieve, find: Find, roots: Roots, limit: int, store: EventStore
) -> Iterator[Matches]:
    """The complex events of `roots` that pass the sieve, at most `limit` per end, in order of their ends.

    Complex events are looked at until enough have passed, and few beyond that. This goes in rounds: a few of
    all ends, then more of those ends where not enough have passed. A round starts from scratch, and looks at
    several times as many as the one before, so that all rounds look at little more than the last.
    """
    ends, bounds = by_end(roots)
    step = max(1, _AT_ONCE // limit)
    for low in range(0, ends.size, step):
        part = roots.part(bounds[low], bounds[min(low + step, ends.size)])
        rounds = list(_rounds(sieve, find, part, limit, store))
        if rounds:
            together = joined(rounds)
            yield taken(together, np.argsort(together.end, kind="stable"))


def _rounds(sieve: Sieve, find: Find, roots: Roots, limit: int, store: EventStore) -> Iterator[Matches]:
    """The answers, grouped by end, in the order in which ends are settled."""
    most = _FIRST * limit
    while roots.event.size:
        ends, _ = by_end(roots)
        looked_at, passed = np.zeros(ends.size, np.int64), np.zeros(ends.size, np.int64)
        counted = _counted(find(roots, most), ends, looked_at)
        kept = list(_counted(sieve.sift_all(counted, store), ends, passed))
        unknown = ends[(passed < limit) & (looked_at >= most)]
        for matches in kept:
            done = chosen(matches, np.flatnonzero(~np.isin(matches.end, unknown)))
            if len(done.start):
                yield done
        roots = roots.chosen(np.flatnonzero(np.isin(roots.event, unknown)))
        most *= _FACTOR


def _counted(chunks: Iterable[Matches], ends: Integers, counts: Integers) -> Iterator[Matches]:
    """The same chunks, while their number for each of `ends` is added to `counts`."""
    for chunk in chunks:
        np.add.at(counts, np.searchsorted(ends, chunk.end), 1)
        yield chunk
