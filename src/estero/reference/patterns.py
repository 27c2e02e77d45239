"""The reference meaning of patterns: all complex events of φ over a finite stream, by structural recursion.

A `Candidate` is one way to match φ. Filters on variables bound further out (FO-CEL) are carried
along as debts and settled at the smallest enclosing pattern that binds those variables.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from estero.errors import DataError, QueryError
from estero.language.tree import pattern as p
from estero.language.tree.conditions import variables_of
from estero.language.tree.distances import Apart, ApartBetween, Distance, DurationWindow, EventWindow, Window
from estero.language.tree.expressions import Node
from estero.language.tree.literals import Value
from estero.language.tree.selection import label_types
from estero.language.tree.whole import END_OF, START_OF
from estero.reference.filters import SetPredicates, evaluate_filter
from estero.reference.values import Event, all_true, compare

Positions = frozenset[int]
Marks = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Stream:
    """A finite stream with its context: the streams of FROM, set predicates, positions and the tick."""

    events: tuple[Event, ...]
    names: tuple[str, ...] = ()
    predicates: SetPredicates = field(default_factory=dict)
    positions: Sequence[int] = ()
    """The positions of the events in the whole stream if this is a part of it, otherwise empty."""
    tick: int = 1
    """The nanoseconds in a tick of time."""


@dataclass(frozen=True, slots=True)
class OpenFilter:
    """A filter with unbound variables; `bound` holds the bound ones."""

    condition: Node
    bound: frozenset[tuple[str, Positions]] = frozenset()

    @property
    def unbound(self) -> frozenset[str]:
        """The variables that are still to be bound."""
        return frozenset(variables_of(self.condition)) - {variable for variable, _ in self.bound}

    def bind(self, bindings: Mapping[str, Positions]) -> OpenFilter:
        """The filter with the bindings of its unbound variables added."""
        new = {(variable, positions) for variable, positions in bindings.items() if variable in self.unbound}
        return replace(self, bound=self.bound | new)


@dataclass(frozen=True, slots=True)
class Debt:
    """Filters that must all be true or, if `forbidden`, must not all be true."""

    filters: frozenset[OpenFilter]
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate complex event: first and last position, (label, position) marks and owed filters."""

    start: int
    end: int
    marks: Marks
    debts: frozenset[Debt] = frozenset()

    @property
    def support(self) -> Positions:
        """The marked positions."""
        return frozenset(position for _, position in self.marks)

    def positions(self, label: str) -> Positions:
        """The positions marked with `label`."""
        return frozenset(position for name, position in self.marks if name == label)

    def union(self, other: Candidate) -> Candidate:
        """The union of two candidates."""
        return Candidate(
            min(self.start, other.start),
            max(self.end, other.end),
            self.marks | other.marks,
            self.debts | other.debts,
        )


def find(pattern: p.Pattern, stream: Stream) -> frozenset[Candidate]:
    """All complex events of `pattern` over `stream`, with any start and end."""
    labels = frozenset(label_types(pattern))
    return frozenset(
        settled for candidate in _find(pattern, stream) for settled in _settle(candidate, labels, stream)
    )


def _find(pattern: p.Pattern, stream: Stream) -> Iterable[Candidate]:  # noqa: C901, PLR0911, PLR0912  (one case per operator)
    match pattern:
        case p.EventType():
            return _events_of_type(pattern, stream)
        case p.As(inner, variable):
            return {_mark_all(candidate, variable) for candidate in find(inner, stream)}
        case p.Rename(inner, old, new):
            return {_relabel(candidate, {old: new}) for candidate in find(inner, stream)}
        case p.Keep(inner, labels):
            return {_keep(candidate, labels) for candidate in find(inner, stream)}
        case p.Filter(inner, condition):
            return _owing(condition, find(inner, stream))
        case p.PartitionBy(inner, keys):
            return {candidate for candidate in find(inner, stream) if _agree(candidate, keys, stream)}
        case p.Start(inner):
            return {candidate for candidate in find(inner, stream) if candidate.start == 0}
        case p.Strict(inner):
            return {candidate for candidate in find(inner, stream) if is_interval(candidate.support)}
        case p.Disjunction(parts):
            return {candidate for part in parts for candidate in find(part, stream)}
        case p.Conjunction(parts):
            return reduce(_in_both, [find(part, stream) for part in parts])
        case p.All(parts):
            return reduce(_unions, [find(part, stream) for part in parts])
        case p.Unless(inner, forbidden):
            return _unless(find(inner, stream), find(forbidden, stream))
        case p.Sequence():
            return _sequence(pattern, stream)
        case p.Iteration():
            return _iterate(pattern, find(pattern.pattern, stream), stream)
        case p.Optional():
            raise QueryError("only a part of a sequence can be optional", span=pattern.span)
        case _:
            raise QueryError(f"{type(pattern).__name__} is not a pattern", span=pattern.span)


def names_of_type(event_type: p.EventType, streams: tuple[str, ...]) -> set[str]:
    """The names of type R: ``S>R`` in stream S, also R if S is the only one; without S in any stream."""
    if event_type.stream is None:
        return {event_type.name, *(f"{stream}>{event_type.name}" for stream in streams)}
    full_name = f"{event_type.stream}>{event_type.name}"
    return {full_name, event_type.name} if streams == (event_type.stream,) else {full_name}


def _events_of_type(pattern: p.EventType, stream: Stream) -> Iterator[Candidate]:
    names = names_of_type(pattern, stream.names)
    for position, event in enumerate(stream.events):
        if event.type in names:
            yield Candidate(position, position, frozenset({(pattern.name, position)}))


# ------------------------------------------------------------------------------------------- labels


def _mark_all(candidate: Candidate, variable: str) -> Candidate:
    return replace(
        candidate, marks=candidate.marks | {(variable, position) for position in candidate.support}
    )


def _relabel(candidate: Candidate, names: Mapping[str, str]) -> Candidate:
    marks = frozenset((names.get(label, label), position) for label, position in candidate.marks)
    return replace(candidate, marks=marks)


def _keep(candidate: Candidate, labels: tuple[str, ...]) -> Candidate:
    return replace(candidate, marks=frozenset(mark for mark in candidate.marks if mark[0] in labels))


def is_interval(positions: AbstractSet[int]) -> bool:
    """Whether the positions have no gap; true for an empty set."""
    return not positions or max(positions) - min(positions) + 1 == len(positions)


# ------------------------------------------------------------------------------------ in succession


def _sequence(sequence: p.Sequence, stream: Stream) -> Iterable[Candidate]:
    """Joins parts from the left: ``a ; b?`` is ``(a ; b) OR a``, a leading ``b? ; c`` is ``(b ; c) OR c``."""
    so_far: Iterable[Candidate] = ()
    may_be_empty = True
    for part, link in zip(sequence.parts, (p.Link(), *sequence.links), strict=True):
        optional = isinstance(part, p.Optional)
        new = find(part.pattern if isinstance(part, p.Optional) else part, stream)
        joined = set(_join(so_far, link, new, stream))
        if may_be_empty:
            joined |= new
        if optional:
            joined |= set(so_far)
        so_far, may_be_empty = joined, may_be_empty and optional
    if may_be_empty:
        raise QueryError("a sequence needs a part that is not optional", span=sequence.span)
    before = [(absence, _at_positions(find(absence.event, stream))) for absence in sequence.before]
    after = [(absence, _at_positions(find(absence.event, stream))) for absence in sequence.after]
    return {
        kept
        for candidate in so_far
        for kept in _without(
            candidate,
            [
                *_too_close(before, range(candidate.start), partial(_ends, candidate.start), stream),
                *_too_close(after, _behind(candidate, stream), partial(_ends, candidate.end), stream),
            ],
        )
    }


def _ends(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _behind(candidate: Candidate, stream: Stream) -> range:
    return range(candidate.end + 1, len(stream.events))


def _too_close(
    absences: Iterable[tuple[p.Absence, Mapping[int, list[Candidate]]]],
    places: range,
    ends: Callable[[int], tuple[int, int]],
    stream: Stream,
) -> list[Candidate]:
    """The forbidden matches at one of `places` that are closer to an end than their deadline.

    `ends` gives the two events whose distance is compared.
    """
    return [
        bad
        for absence, atoms in absences
        for place in places
        for bad in atoms.get(place, ())
        if not _is_apart(absence.apart, *ends(place), stream)
    ]


def _join(
    before: Iterable[Candidate], link: p.Link, after: Iterable[Candidate], stream: Stream
) -> Iterator[Candidate]:
    """Every candidate of `before` followed by every candidate of `after`, as the link allows."""
    absent = [_at_positions(find(pattern, stream)) for pattern in link.absent]
    lacking = [(absence, _at_positions(find(absence.event, stream))) for absence in link.lacking]
    distances = (*link.distances, *(absence.apart for absence in link.lacking))
    for first, second in _successions(before, after, len(absent) if link.contiguous else None):
        if not _are_apart(first, second, distances, stream):
            continue
        gap = range(first.end + 1, second.start)
        if link.contiguous:
            unwanted = [
                candidate for place, atoms in zip(gap, absent, strict=True) for candidate in atoms[place]
            ]
        else:
            unwanted = [candidate for place in gap for atoms in absent for candidate in atoms[place]]
            unwanted += _too_close(lacking, gap, partial(_ends, first.end), stream)
        yield from _without(first.union(second), unwanted)


def _are_apart(first: Candidate, second: Candidate, distances: Sequence[Distance], stream: Stream) -> bool:
    """Whether the end of the first and the start of the second satisfy all `distances`."""
    return all(_is_apart(distance, first.end, second.start, stream) for distance in distances)


def _is_apart(distance: Distance, end: int, start: int, stream: Stream) -> bool:
    match distance:
        case Apart(operator, length):
            return bool(_COMPARED[operator](*_measured(length, end, start, stream)))
        case ApartBetween(low, high):
            at_least, at_most = (_measured(length, end, start, stream) for length in (low, high))
            return at_least[0] >= at_least[1] and at_most[0] <= at_most[1]
        case _:
            raise QueryError(f"{type(distance).__name__} is not a distance", span=distance.span)


_COMPARED = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


def _measured(length: Window, end: int, start: int, stream: Stream) -> tuple[int, int]:
    """The distance of two events and the length it is compared with, in the unit of the length."""
    if isinstance(length, EventWindow):
        positions = stream.positions or range(len(stream.events))
        return positions[start] - positions[end], length.events
    before, after = stream.events[end].time, stream.events[start].time
    if before is None or after is None:
        raise DataError(
            "the distance needs the time of each event", row=(end if before is None else start) + 1
        )
    if isinstance(length, DurationWindow):
        return (after - before) * stream.tick, length.nanoseconds
    return after - before, length.ticks


def _successions(
    before: Iterable[Candidate], after: Iterable[Candidate], between: int | None
) -> Iterator[tuple[Candidate, Candidate]]:
    """The pairs in succession, with exactly `between` events between them unless that is None."""
    starting = _at_positions(after)
    for first in before:
        for start, seconds in starting.items():
            if start > first.end and (between is None or start - first.end - 1 == between):
                for second in seconds:
                    yield first, second


def _at_positions(candidates: Iterable[Candidate]) -> Mapping[int, list[Candidate]]:
    by_start: defaultdict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_start[candidate.start].append(candidate)
    return by_start


def _iterate(iteration: p.Iteration, once: frozenset[Candidate], stream: Stream) -> Iterable[Candidate]:
    """Repeats φ `minimum` times, then up to `maximum` times or until nothing new is added."""
    step = iteration.step
    link = p.Link(iteration.contiguous, () if iteration.contiguous else step.absent, step.distances)

    def one_more(times: Iterable[Candidate]) -> set[Candidate]:
        return set(_join(times, link, once, stream))

    exactly = set(once)
    for _ in range(iteration.minimum - 1):
        exactly = one_more(exactly)
    collected = set(exactly)
    count = iteration.minimum
    while exactly and (iteration.maximum is None or count < iteration.maximum):
        exactly = one_more(exactly)
        if iteration.maximum is None:
            exactly -= collected
        collected |= exactly
        count += 1
    return collected


# ------------------------------------------------------------------------------------- in one place


def _in_both(left: Iterable[Candidate], right: Iterable[Candidate]) -> Iterable[Candidate]:
    same: defaultdict[tuple[int, int, Marks], list[Candidate]] = defaultdict(list)
    for candidate in right:
        same[candidate.start, candidate.end, candidate.marks].append(candidate)
    return {a.union(b) for a in left for b in same[a.start, a.end, a.marks]}


def _unions(left: Iterable[Candidate], right: Iterable[Candidate]) -> Iterable[Candidate]:
    return {a.union(b) for a in left for b in right}


def _unless(wanted: Iterable[Candidate], forbidden: Iterable[Candidate]) -> Iterator[Candidate]:
    for candidate in wanted:
        inside = [bad for bad in forbidden if candidate.start <= bad.start and bad.end <= candidate.end]
        yield from _without(candidate, inside)


def _agree(candidate: Candidate, keys: tuple[p.PartitionKey, ...], stream: Stream) -> bool:
    """Whether the keys ``X.a`` of all events marked X have one common value that is not NULL.

    Keys without a variable are alternatives: each marked event contributes the first one it has.
    """
    values = [
        stream.events[position].value(key.attribute)
        for key in keys
        if key.variable is not None
        for position in candidate.positions(key.variable)
    ]
    alternatives = [key.attribute for key in keys if key.variable is None]
    if alternatives:
        values += [_first_value(stream.events[position], alternatives) for position in candidate.support]
    return all_true([compare("=", left, right) for left in values for right in values]) is True


def _first_value(event: Event, names: Iterable[str]) -> Value:
    return next((event.value(name) for name in names if event.has(name)), None)


# ------------------------------------------------------------------------------- filters, and debts


def _owing(condition: Node, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates with the filter as a debt, which `find` settles at once if this pattern binds it."""
    debt = Debt(frozenset({OpenFilter(condition)}))
    for candidate in candidates:
        yield replace(candidate, debts=candidate.debts | {debt})


def _without(candidate: Candidate, unwanted: list[Candidate]) -> Iterator[Candidate]:
    """The candidate unless one of `unwanted` is there; if open filters decide that, it owes their failure."""
    if all(bad.debts for bad in unwanted):
        owed = {Debt(_open_filters(bad), forbidden=True) for bad in unwanted}
        yield replace(candidate, debts=candidate.debts | owed)


def _open_filters(candidate: Candidate) -> frozenset[OpenFilter]:
    if any(debt.forbidden for debt in candidate.debts):
        raise QueryError(
            "a pattern after UNLESS cannot forbid an event that depends on a variable bound outside"
        )
    return frozenset(filter_owed for debt in candidate.debts for filter_owed in debt.filters)


def _settle(candidate: Candidate, labels: frozenset[str], stream: Stream) -> Iterator[Candidate]:
    """The candidate with its debts bound to `labels` of this pattern, unless a debt that is now due fails."""
    bindings = {label: candidate.positions(label) for label in labels} if candidate.debts else {}
    bindings |= {START_OF: frozenset({candidate.start}), END_OF: frozenset({candidate.end})}
    open_debts: set[Debt] = set()
    for debt in candidate.debts:
        bound = replace(debt, filters=frozenset(filter_owed.bind(bindings) for filter_owed in debt.filters))
        if any(filter_owed.unbound for filter_owed in bound.filters):
            open_debts.add(bound)
        elif all(_is_true(filter_owed, stream) for filter_owed in bound.filters) == debt.forbidden:
            return
    yield replace(candidate, debts=frozenset(open_debts))


def _is_true(filter_owed: OpenFilter, stream: Stream) -> bool:
    marked = {
        variable: tuple(stream.events[position] for position in sorted(positions))
        for variable, positions in filter_owed.bound
    }
    return evaluate_filter(filter_owed.condition, marked, stream.predicates) is True


def unbound_variables(candidates: Iterable[Candidate]) -> list[str]:
    """The variables of filters that nothing binds, in alphabetical order."""
    debts = {debt for candidate in candidates for debt in candidate.debts}
    return sorted({name for debt in debts for filter_owed in debt.filters for name in filter_owed.unbound})
