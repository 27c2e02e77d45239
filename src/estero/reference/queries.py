"""The reference semantics: an executable definition of queries, obviously right and slow (docs/semantics.md).

All engines are compared with it. It enumerates the complex events of a finite stream as sets, so
it is for tens of events. `values` holds the meaning of expressions, `filters` that of
filters over complex events, `patterns` of patterns; here they become answers to queries.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from estero.errors import DataError, QueryError
from estero.language.tree.distances import AttributeWindow, DurationWindow, EventWindow, Window
from estero.language.tree.literals import Value
from estero.language.tree.pattern import Pattern, ending
from estero.language.tree.query import Consume, KeyBracket, QueryTree, Strategy
from estero.language.tree.whole import DEADLINE, with_whole
from estero.reference.filters import SetPredicates
from estero.reference.patterns import Candidate, Stream, find, is_interval, unbound_variables
from estero.reference.times import with_ticks
from estero.reference.values import Event, evaluate_expression, evaluate_predicate, in_utc

__all__ = [
    "Answer",
    "ComplexEvent",
    "Event",
    "evaluate_expression",
    "evaluate_pattern",
    "evaluate_predicate",
    "evaluate_query",
    "is_answer",
    "is_within",
]


@dataclass(frozen=True, slots=True)
class ComplexEvent:
    """A complex event: its first and last position, and the nonempty set of positions of each label."""

    start: int
    end: int
    labels: frozenset[tuple[str, frozenset[int]]]

    @property
    def support(self) -> frozenset[int]:
        """All marked positions."""
        return frozenset(position for _, positions in self.labels for position in positions)

    def __str__(self) -> str:
        by_name = sorted((label, sorted(positions)) for label, positions in self.labels)
        shown = ", ".join(f"{label}: {positions}" for label, positions in by_name)
        return f"[{self.start}, {self.end}] {{{shown}}}"


Answer = Mapping[int, set[ComplexEvent]]
"""The complex events by end position, without positions that have none."""


def evaluate_pattern(
    pattern: Pattern,
    events: Sequence[Event],
    *,
    streams: tuple[str, ...] = (),
    predicates: SetPredicates | None = None,
    positions: Sequence[int] = (),
    tick: int = 1,
) -> set[ComplexEvent]:
    """All complex events of `pattern` over `events`, which are in stream order; positions are indices.

    `streams` are those of FROM; `predicates` are registered set predicates by name, which get a tuple of
    events for ``X`` and a tuple of values for ``X.a``, in stream order, and say true, false or None.
    Distances are measured by times, in ticks of `tick` nanoseconds, and by `positions` in the whole stream,
    where `events` are some of it.

    >>> from estero.language.tree.pattern import EventType, Link, Sequence
    >>> events = [Event("A", {}), Event("B", {}), Event("B", {})]
    >>> pattern = Sequence((EventType("A"), EventType("B")), (Link(),))
    >>> sorted(map(str, evaluate_pattern(pattern, events)))
    ['[0, 1] {A: [0], B: [1]}', '[0, 2] {A: [0], B: [2]}']
    """
    candidates = find(pattern, Stream(tuple(events), streams, predicates or {}, positions, tick))
    unbound = unbound_variables(candidates)
    if unbound:
        raise QueryError(f"nothing binds the variable {unbound[0]}", span=pattern.span)
    return {_complex_event(candidate) for candidate in candidates}


def evaluate_query(
    tree: QueryTree,
    events: Sequence[Event],
    *,
    tick: int = 1,
    predicates: SetPredicates | None = None,
    until: float | None = None,
) -> dict[int, set[ComplexEvent]]:
    """The answers of a query by end position; positions without answers are not in it.

    All that happens before time `until` is known, or up to the last event where it is None; what an absence
    at the end leaves undecided is no answer. With infinity nothing comes any more.

    `events` are in stream order, their times in ticks of `tick` nanoseconds. All labels are in the answer,
    regardless of SELECT. With LIMIT these are the first n in the order of `str`; any other n are equally
    right: compare with `is_answer`.
    """
    pattern = with_ticks(with_whole(tree).pattern, tick)
    wait = wait_of(tree, tick)
    parts = partitions_of(tree.partition_by, events)
    part_of = {position: number for number, part in enumerate(parts) for position in part}
    rank = {position: place for part in parts for place, position in enumerate(part)}
    if tree.strategy.one_for_each_start and tree.consume is not Consume.NONE:
        raise QueryError(f"SELECT {tree.strategy.value} and CONSUME BY do not go together")
    by_end: defaultdict[int, set[ComplexEvent]] = defaultdict(set)
    for part in parts:
        substream = [_with_deadline(events[position], wait) for position in part]
        matches = evaluate_pattern(
            pattern,
            substream,
            streams=tree.streams,
            predicates=predicates,
            positions=part,
            tick=tick,
        )
        for local in matches:
            candidate = _at(local, part)
            if not _is_decided(tree, candidate.end, events, tick, until):
                continue
            if tree.window is None or is_within(tree.window, candidate, events, tick):
                by_end[candidate.end].add(candidate)

    if tree.strategy.one_for_each_start:
        by_end = _one_for_each_start(tree, by_end, part_of)
    answers: dict[int, set[ComplexEvent]] = {}
    forgotten = [-1] * len(parts)  # of each partition, the last position that is forgotten
    for end in sorted(by_end):
        remembered = {candidate for candidate in by_end[end] if candidate.start > forgotten[part_of[end]]}
        chosen = _choose(tree.strategy, remembered, rank)
        if tree.per is None:
            chosen = limited(chosen, tree.limit)
        if chosen:
            answers[end] = chosen
            if tree.consume is Consume.ANY:
                forgotten = [end] * len(parts)
            elif tree.consume is Consume.PARTITION:
                forgotten[part_of[end]] = end
    given = given_at(tree, events, answers, tick=tick)
    return {end: limited(answers[end], number) for end, (number, _) in given.items()}


def undecided(tree: QueryTree, events: Sequence[Event], *, tick: int = 1, until: float | None = None) -> int:
    """The number of undecided complex events that become answers if the stream ends here."""
    answers = evaluate_query(tree, events, tick=tick, until=math.inf)
    return sum(len(answers[end]) for end in answers if not _is_decided(tree, end, events, tick, until))


def _is_decided(tree: QueryTree, end: int, events: Sequence[Event], tick: int, until: float | None) -> bool:
    """Whether all deadlines after an end have passed by `until`, by default the time of the last event."""
    for absence in ending(tree.pattern):
        (length,) = absence.apart.lengths
        ended, known = events[end].time, events[-1].time if until is None else until
        if ended is None or known is None:
            raise DataError("NOT(…) FOR needs the time of each event", row=end + 1)
        passed = known - ended
        over = (
            passed * tick > length.nanoseconds
            if isinstance(length, DurationWindow)
            else isinstance(length, AttributeWindow) and passed > length.ticks
        )
        if not over:
            return False
    return True


def wait_of(tree: QueryTree, tick: int) -> int | None:
    """The ticks from an end until all deadlines after it have passed; None without deadlines."""
    lengths = [length for absence in ending(tree.pattern) for length in absence.apart.lengths]
    waits = (
        length.nanoseconds // tick if isinstance(length, DurationWindow) else length.ticks
        for length in lengths
        if not isinstance(length, EventWindow)
    )
    return max(waits, default=None)


def decided_at(time: int | None, wait: int | None) -> int | None:
    """The time at which a complex event with this end time is decided, at most the largest 64-bit integer."""
    return None if time is None or wait is None else min(time + wait, 2**63 - 1)


def _with_deadline(event: Event, wait: int | None) -> Event:
    """The event with the attribute `decided_time` that a complex event ending there has."""
    if wait is None:
        return event
    return replace(event, attributes={**event.attributes, DEADLINE: decided_at(event.time, wait)})


def given_at(
    tree: QueryTree, events: Sequence[Event], answers: Answer, *, tick: int = 1
) -> dict[int, tuple[int, int]]:
    """The end positions at which ``LIMIT n PER d`` lets complex events through, with two counts for each.

    They count the complex events given and those of the partition left out since the last one given.
    Without PER all are given.
    """
    if tree.per is None or tree.limit is None:
        return {end: (len(answers[end]), 0) for end in sorted(answers)}
    part_of = {
        position: number
        for number, part in enumerate(partitions_of(tree.partition_by, events))
        for position in part
    }
    opened: dict[int, tuple[int, int]] = {}  # of each partition, the time of its interval and how many it has
    left_out: defaultdict[int, int] = defaultdict(int)
    given: dict[int, tuple[int, int]] = {}
    for end in sorted(answers):
        part, time = part_of[end], events[end].time
        if time is None:
            raise DataError("LIMIT … PER needs the time of each event", row=end + 1)
        for _ in answers[end]:
            if part not in opened or not _is_before_end(tree.per, time - opened[part][0], tick):
                opened[part] = (time, 0)
            if opened[part][1] < tree.limit:
                number, before = given.get(end, (0, left_out[part]))
                given[end] = (number + 1, before)
                opened[part] = (opened[part][0], opened[part][1] + 1)
                left_out[part] = 0
            else:
                left_out[part] += 1
    return given


def _is_before_end(per: Window, passed: int, tick: int) -> bool:
    """Whether an interval is still running after `passed` ticks of `tick` nanoseconds."""
    if isinstance(per, DurationWindow):
        return passed * tick < per.nanoseconds
    if isinstance(per, EventWindow):
        raise QueryError("LIMIT … PER counts in intervals of time", span=per.span)
    return passed < per.ticks


def is_answer(
    tree: QueryTree, events: Sequence[Event], answer: Answer, *, tick: int = 1, until: float | None = None
) -> bool:
    """Whether `answer` is right: all complex events, or under LIMIT as many as it asks at each end."""
    unlimited = evaluate_query(replace(tree, limit=None, per=None), events, tick=tick, until=until)
    if tree.limit is None:
        return dict(answer) == unlimited
    if tree.per is not None:
        given = given_at(tree, events, unlimited, tick=tick)
        return set(answer) == set(given) and all(
            answer[end] <= unlimited[end] and len(answer[end]) == given[end][0] for end in given
        )
    return set(answer) == set(unlimited) and all(
        answer[end] <= all_there and len(answer[end]) == min(tree.limit, len(all_there))
        for end, all_there in unlimited.items()
    )


# ------------------------------------------------------------------------------ partitions, windows


def partitions_of(brackets: Sequence[KeyBracket], events: Sequence[Event]) -> list[list[int]]:
    """The positions of each partition, ascending; an event that lacks a key is in none."""
    if not brackets:
        return [list(range(len(events)))]
    parts: defaultdict[tuple[_Key, ...], list[int]] = defaultdict(list)
    for position, event in enumerate(events):
        keys = [_key(bracket, event) for bracket in brackets]
        present = tuple(key for key in keys if key is not None)
        if len(present) == len(brackets):
            parts[present].append(position)
    return list(parts.values())


_Key = tuple[str, Value]


def _key(bracket: KeyBracket, event: Event) -> _Key | None:
    """The first alternative that the event has, in a form that is the same exactly where ``=`` holds."""
    value = next((event.value(name) for name in bracket.alternatives if event.has(name)), None)
    match in_utc(value):
        case None:
            return None
        case bool() as truth:
            return "truth", truth
        case float() as number if math.isnan(number):
            return "number", "NaN"
        case int() | float() as number:
            return "number", number
        case other:
            return type(other).__name__, other


def is_within(window: Window, complex_event: ComplexEvent, events: Sequence[Event], tick: int) -> bool:
    """Whether a complex event is no longer than `window`; times are in ticks of `tick` nanoseconds."""
    if isinstance(window, EventWindow):
        return complex_event.end - complex_event.start <= window.events
    first, last = events[complex_event.start].time, events[complex_event.end].time
    if first is None or last is None:
        row = complex_event.start if first is None else complex_event.end
        raise DataError("the window needs the time of each event", row=row + 1)
    if isinstance(window, DurationWindow):
        return (last - first) * tick <= window.nanoseconds
    return last - first <= window.ticks


# ------------------------------------------------------------------------------- strategies, limits


def _choose(strategy: Strategy, candidates: set[ComplexEvent], rank: Mapping[int, int]) -> set[ComplexEvent]:
    """The complex events of one end and partition that a strategy keeps; `rank` gives substream places."""
    match strategy:
        case Strategy.ALL | Strategy.LONGEST | Strategy.SHORTEST:
            return candidates
        case Strategy.STRICT:
            return {
                candidate
                for candidate in candidates
                if is_interval({rank[position] for position in candidate.support})
            }
        case Strategy.MAX:
            supports = {candidate.support for candidate in candidates}
            return {
                candidate
                for candidate in candidates
                if not any(candidate.support < other for other in supports)
            }
        case Strategy.NEXT:
            best = max((candidate.support for candidate in candidates), key=earliest_difference, default=None)
        case Strategy.LAST:
            best = max((candidate.support for candidate in candidates), key=latest_difference, default=None)
    return {candidate for candidate in candidates if candidate.support == best}


def _one_for_each_start(
    tree: QueryTree, by_end: Mapping[int, set[ComplexEvent]], part_of: Mapping[int, int]
) -> defaultdict[int, set[ComplexEvent]]:
    """The choice of LONGEST and SHORTEST: for each start the last or first end, and NEXT among those.

    DISJOINT goes through the starts of each partition in ascending order and skips those at or
    before the end of the last complex event kept.
    """
    by_start: defaultdict[int, set[ComplexEvent]] = defaultdict(set)
    for candidates in by_end.values():
        for candidate in candidates:
            by_start[candidate.start].add(candidate)
    chosen: defaultdict[int, set[ComplexEvent]] = defaultdict(set)
    ended: dict[int, int] = {}
    for start, candidates in sorted(by_start.items()):
        ends = [candidate.end for candidate in candidates]
        end = max(ends) if tree.strategy is Strategy.LONGEST else min(ends)
        if tree.disjoint and start <= ended.get(part_of[start], -1):
            continue
        ended[part_of[start]] = end
        best = _choose(Strategy.NEXT, {candidate for candidate in candidates if candidate.end == end}, {})
        chosen[end] |= best
    return chosen


def earliest_difference(support: frozenset[int]) -> tuple[int, ...]:
    """A sort key: of two supports the larger one has the smallest position on which they differ."""
    return tuple(-position for position in sorted(support))


def latest_difference(support: frozenset[int]) -> tuple[int, ...]:
    """A sort key: of two supports the larger one has the largest position on which they differ."""
    return tuple(sorted(support, reverse=True))


def limited(candidates: set[ComplexEvent], limit: int | None) -> set[ComplexEvent]:
    """The first `limit` candidates in the order of `str`; all of them if it is None."""
    return candidates if limit is None else set(sorted(candidates, key=str)[:limit])


# ------------------------------------------------------------------------------------ complex events


def _complex_event(candidate: Candidate) -> ComplexEvent:
    labels = frozenset((label, candidate.positions(label)) for label, _ in candidate.marks)
    return ComplexEvent(candidate.start, candidate.end, labels)


def _at(local: ComplexEvent, positions: Sequence[int]) -> ComplexEvent:
    """The same complex event of a substream, at the positions of the whole stream."""
    labels = {(label, frozenset(positions[place] for place in places)) for label, places in local.labels}
    return ComplexEvent(positions[local.start], positions[local.end], frozenset(labels))
