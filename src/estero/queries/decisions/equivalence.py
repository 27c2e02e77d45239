"""Whether two queries have the same complex events on every stream, or one all those of the other.

For patterns with conditions on one event the complex events of a query are a regular set of marked words, so
their automata decide it (SO-CEL, section 6; automata/inclusion.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from estero.arguments import checked
from estero.automata.cea import CEA, FIRST, EventPredicate
from estero.automata.inclusion import PAIR_CAP, Letter, MarkedLetter
from estero.automata.inclusion import difference as shortest_difference
from estero.automata.lacking import lacking
from estero.language.builder.queries import Built
from estero.language.tree.distances import EventWindow
from estero.language.tree.expressions import Attribute
from estero.language.tree.literals import Value, literal_text
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.words import named
from estero.queries.automaton_statement import AutomatonStatement
from estero.queries.decisions.event_kinds import Kind, candidates, kinds_of
from estero.queries.pattern_statement import PatternStatement
from estero.queries.query import Query
from estero.reference.queries import ComplexEvent, evaluate_query
from estero.reference.values import Event


@dataclass(frozen=True)
class Counterexample:
    """A stream on which one query finds a complex event that the other does not; one of the shortest.

    `events` are dicts of attributes, with the type as `type`, in stream order. The complex event reaches
    from position `start` to `end` and marks `positions` (by label, ascending). `found_by` and `missed_by`
    are the two queries.
    """

    events: tuple[Mapping[str, Value], ...]
    start: int
    end: int
    positions: Mapping[str, tuple[int, ...]]
    found_by: Query
    missed_by: Query

    @property
    def stream(self) -> str:
        """The events in one line."""
        return " ".join(map(_event_text, self.events))

    def __str__(self) -> str:
        labels_at = [
            [label for label, places in self.positions.items() if position in places]
            for position in range(len(self.events))
        ]
        rows = [
            (str(position), _event_text(event), ", ".join(labels))
            for position, (event, labels) in enumerate(zip(self.events, labels_at, strict=True))
        ]
        width = max(len(text) for _, text, _ in rows)
        lines = [f"  {number:>3}  {text:<{width}}  {labels}".rstrip() for number, text, labels in rows]
        return "\n".join(
            [
                f"this complex event, from {self.start} to {self.end},",
                *lines,
                f"is found by      {self.found_by}",
                f"and not found by {self.missed_by}",
            ]
        )


def _event_text(event: Mapping[str, Value]) -> str:
    attributes = [
        f"{named(name)}={'NULL' if value is None else literal_text(value)}"
        for name, value in event.items()
        if name != "type"
    ]
    return f"{event['type']}({', '.join(attributes)})" if attributes else str(event["type"])


@checked
def equivalent(one: Query | Built | str, other: Query | Built | str, *, limit: int = PAIR_CAP) -> bool:
    """Whether the two queries have the same complex events on every stream.

    The same means: start, end, and all labels with their positions. What SELECT shows of them does not
    matter. Numbers are taken to be of any size, with or without a fraction. The queries may have conditions
    on one event, and the same PARTITION BY, WITHIN, CONSUME BY and LIMIT. `difference` shows a stream that
    tells two queries apart.

    Raises ValueError where it cannot be decided, with the reason: a query compares events with each other,
    the clauses differ, or a condition computes with attributes and no stream was found that tells the
    queries apart. Raises `LimitExceeded` where the automata get too large: where more than `limit` pairs of
    sets of their states would be compared, which takes some ten seconds.

    >>> equivalent("SELECT * WHERE A ; (B OR C)", "SELECT * WHERE (A ; B) OR (A ; C)")
    True
    """
    return difference(one, other, limit=limit) is None


@checked
def difference(
    one: Query | Built | str, other: Query | Built | str, *, limit: int = PAIR_CAP
) -> Counterexample | None:
    """A shortest stream on which only one of the two queries has some complex event; None if there is none.

    Queries, `limit` and errors are those of `equivalent`.

    >>> print(difference("SELECT * WHERE A ; B", "SELECT * WHERE A : B"))
    this complex event, from 0 to 2,
        0  A      A
        1  other
        2  B      B
    is found by      SELECT * WHERE A ; B
    and not found by SELECT * WHERE A : B
    """
    comparison = _Comparison.of(one, other)
    return _shortest(limit, comparison, comparison.turned())


@checked
def includes(larger: Query | Built | str, smaller: Query | Built | str, *, limit: int = PAIR_CAP) -> bool:
    """Whether `larger` has all complex events of `smaller`, on every stream.

    `missing` shows one that it lacks. Queries, `limit` and errors are those of `equivalent`; the strategy has
    to be that of all complex events or STRICT, without CONSUME BY and LIMIT.

    >>> includes("SELECT * WHERE A ; B", "SELECT * WHERE A : B")
    True
    """
    return missing(larger, smaller, limit=limit) is None


@checked
def missing(
    larger: Query | Built | str, smaller: Query | Built | str, *, limit: int = PAIR_CAP
) -> Counterexample | None:
    """A shortest stream on which `larger` lacks a complex event of `smaller`; None if there is none.

    Queries, `limit` and errors are those of `includes`.

    >>> missing("SELECT * WHERE A : B", "SELECT * WHERE A ; B").stream
    'A other B'
    """
    comparison = _Comparison.of(smaller, larger)
    if comparison.chosen:
        raise ValueError(
            f"{comparison.chosen} chooses among complex events, so one query's need not be another's"
        )
    return _shortest(limit, comparison)


def _shortest(limit: int, *comparisons: _Comparison) -> Counterexample | None:
    doubts: list[str] = []
    found = [example for each in comparisons if (example := each.missing(doubts, limit)) is not None]
    if doubts and not found:
        raise ValueError(f"it is not decided whether the two queries find the same: {doubts[0]}")
    return min(found, key=lambda each: len(each.events), default=None)


_ONE_EVENT: Final = "only conditions on one event can be decided, and this"


@dataclass(frozen=True)
class _Side:
    """One of two queries."""

    query: Query
    cea: CEA

    @classmethod
    def of(cls, given: Query | Built | str) -> _Side:
        query = given if isinstance(given, Query) else Query(given)
        statement = query.statement
        if not isinstance(statement, PatternStatement):
            raise ValueError(f"only queries with a pattern can be compared, not {query}")  # noqa: TRY004
        if isinstance(statement, AutomatonStatement) and not isinstance(statement.automaton, CEA):
            raise ValueError(f"{_ONE_EVENT} automaton compares events:\n{query}")  # noqa: TRY004
        compiled = statement.compiled()
        if any(any(lacking(each)) for each in compiled.automaton.predicates):
            raise ValueError(f"{_ONE_EVENT} query asks what did not happen: {query}")
        if compiled.residuals:
            condition = compiled.residuals[0].condition
            raise ValueError(f"{_ONE_EVENT} query compares events with each other: {condition} in {query}")
        return cls(query, compiled.automaton)


@dataclass(frozen=True)
class _Comparison:
    """What `ours` finds and `theirs` does not is looked for."""

    ours: _Side
    theirs: _Side

    @classmethod
    def of(cls, one: Query | Built | str, other: Query | Built | str) -> _Comparison:
        ours, theirs = _Side.of(one), _Side.of(other)
        for clause, first, second in _clauses(ours.query.tree, theirs.query.tree):
            if first != second:
                raise ValueError(
                    f"the two queries differ in {clause}, so their patterns alone decide nothing"
                )
        return cls(ours, theirs)

    def turned(self) -> _Comparison:
        return _Comparison(self.theirs, self.ours)

    @property
    def chosen(self) -> str:
        """The clause by which not all complex events are answers; empty where all are."""
        tree = self.ours.query.tree
        if tree.strategy not in (Strategy.ALL, Strategy.STRICT):
            return f"SELECT {tree.strategy.value}"
        if tree.limit is not None:
            return "LIMIT"
        return "" if tree.consume.value == "NONE" else "CONSUME BY"

    @cached_property
    def predicates(self) -> tuple[EventPredicate, ...]:
        """Those of both, each once and without `FIRST`."""
        both = (*self.ours.cea.predicates, *self.theirs.cea.predicates)
        return tuple(dict.fromkeys(each for each in both if each != FIRST))

    def missing(self, doubts: list[str], limit: int) -> Counterexample | None:
        """A shortest stream with a complex event that only we find; `doubts` gets what is left open."""
        suspected: list[Counterexample] = []
        for fixed in self._keys():
            kinds = kinds_of(self.predicates, fixed=fixed)
            word = self._word(kinds, limit)
            assumed = [] if word is None else [each for one in word[1] for each in kinds[one.letter].assumed]
            if assumed:
                kinds = kinds_of(self.predicates, fixed=fixed, free=False)
                word = self._word(kinds, limit)
                if word is None:
                    doubts.append(
                        f"{assumed[0]} may tell them apart, and is more than a comparison with a constant"
                    )
            if word is not None:
                suspected.append(self._example(kinds, *word))
        shown = [each for each in suspected if self._tells_apart(each)]
        if suspected and not shown:
            doubts.append(
                f"the patterns differ on {suspected[0].stream}, and {self.chosen or 'a clause'} hides it"
            )
        return min(shown, key=lambda each: len(each.events), default=None)

    def _keys(self) -> Iterator[dict[str, Value]]:
        """The values of partition keys in a stream of one partition: all sorts that conditions tell apart."""
        names = [name for key in self.ours.query.tree.partition_by for name in key.alternatives]
        conditions = [each.condition for each in self.predicates if each.condition is not None]
        choices = []
        for name in names:
            asking = [each for each in conditions if Attribute(name) in each.walk()]
            choices.append([value for value in candidates(asking) if value is not None] if asking else [1])
        for values in product(*choices):
            yield dict(zip(names, values, strict=True))

    def _word(self, kinds: Sequence[Kind], limit: int) -> tuple[bool, tuple[MarkedLetter, ...]] | None:
        """A shortest word that tells the two apart, and whether it begins the stream."""
        letters = [
            Letter(_bits(self.ours.cea, self.predicates, each), _bits(self.theirs.cea, self.predicates, each))
            for each in kinds
        ]
        window = self.ours.query.tree.window
        longest = window.events + 1 if isinstance(window, EventWindow) else None
        asks_first = any(FIRST in side.cea.predicates for side in (self.ours, self.theirs))
        found = []
        for first in (True, False) if asks_first else (True,):
            word = shortest_difference(
                self.ours.cea, self.theirs.cea, letters, first=first, longest=longest, limit=limit
            )
            if word is not None:
                found.append((first, word))
        return min(found, key=lambda each: len(each[1]) + (not each[0]), default=None)

    def _example(self, kinds: Sequence[Kind], begins: bool, word: Sequence[MarkedLetter]) -> Counterexample:
        before = [] if begins else [kinds[0].event]
        events = [*before, *(kinds[each.letter].event for each in word)]
        positions: dict[str, tuple[int, ...]] = {}
        for place, each in enumerate(word, start=len(before)):
            for label in sorted(each.labels):
                positions[label] = (*positions.get(label, ()), place)
        return Counterexample(
            tuple({"type": each.type, **each.attributes} for each in events),
            len(before),
            len(events) - 1,
            positions,
            self.ours.query,
            self.theirs.query,
        )

    def _tells_apart(self, example: Counterexample) -> bool:
        """Whether the reference says of the whole queries that only ours finds it."""
        events = [
            Event(str(each["type"]), {k: v for k, v in each.items() if k != "type"}, time=0)
            for each in example.events
        ]
        labels = frozenset((label, frozenset(places)) for label, places in example.positions.items())
        wanted = ComplexEvent(example.start, example.end, labels)
        ours, theirs = (
            {each for found in evaluate_query(side.query.tree, events).values() for each in found}
            for side in (self.ours, self.theirs)
        )
        return wanted in ours and wanted not in theirs


def _clauses(one: QueryTree, other: QueryTree) -> Iterator[tuple[str, object, object]]:
    all_found = (Strategy.ALL, Strategy.STRICT)
    first, second = (Strategy.ALL if each.strategy in all_found else each.strategy for each in (one, other))
    yield "their strategies", first, second
    yield "PARTITION BY", one.partition_by, other.partition_by
    yield "WITHIN", one.window, other.window
    yield "CONSUME BY", one.consume, other.consume
    yield "DISJOINT", one.disjoint, other.disjoint
    yield "LIMIT", (one.limit, one.per), (other.limit, other.per)


def _bits(cea: CEA, predicates: Sequence[EventPredicate], kind: Kind) -> int:
    """The bits of a kind of event as an automaton numbers them."""
    return sum(
        1 << bit
        for bit, each in enumerate(cea.predicates)
        if each != FIRST and kind.bits >> predicates.index(each) & 1
    )
