"""Inclusion and equivalence of queries, with a shortest stream on which they differ.

For patterns with conditions on one event the complex events of a query are a regular language of marked
words, so inclusion of automata decides it ("A Second-Order Approach to Complex Event Recognition", section 6,
docs/papers.md; inclusion.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from estero.automata.cea import CEA, FIRST, EventPredicate
from estero.language.tree.distances import EventWindow
from estero.language.tree.expressions import Attribute
from estero.language.tree.literals import Value, literal_text
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.words import named
from estero.reference.queries import ComplexEvent, evaluate_query
from estero.reference.values import Event
from estero.system.cached_property import cached_property
from estero.theory.event_kinds import Kind, candidates, kinds_of
from estero.theory.inclusion import difference
from estero.theory.words import Letter, MarkedLetter


@dataclass(frozen=True)
class Witness:
    """A counterexample: a stream with a complex event that one query has and another lacks.

    `events` are dicts of attributes, with the type as `type`, in stream order. The complex event reaches
    from position `start` to `end` and marks `positions` (by label, ascending).
    """

    events: tuple[Mapping[str, Value], ...]
    start: int
    end: int
    positions: Mapping[str, tuple[int, ...]]

    @property
    def stream(self) -> str:
        """The text of the events, on one line."""
        return " ".join(map(event_text, self.events))


def event_text(event: Mapping[str, Value]) -> str:
    """The text of an event with its attributes: ``A(n=3, s='x')``."""
    attributes = [
        f"{named(name)}={'NULL' if value is None else literal_text(value)}"
        for name, value in event.items()
        if name != "type"
    ]
    return f"{event['type']}({', '.join(attributes)})" if attributes else str(event["type"])


@dataclass(frozen=True)
class Side:
    """One of two compared queries; `cea` checks all conditions of its pattern."""

    tree: QueryTree
    cea: CEA


@dataclass(frozen=True)
class Comparison:
    """A search for complex events that `ours` has and `theirs` lacks."""

    ours: Side
    theirs: Side

    @classmethod
    def of(cls, ours: Side, theirs: Side) -> Comparison:
        """The comparison of two queries; raises ValueError if their clauses differ."""
        for clause, first, second in _clauses(ours.tree, theirs.tree):
            if first != second:
                raise ValueError(
                    f"the two queries differ in {clause}, so their patterns alone decide nothing"
                )
        return cls(ours, theirs)

    def turned(self) -> Comparison:
        """The search for complex events that `theirs` has and `ours` lacks."""
        return Comparison(self.theirs, self.ours)

    @property
    def chosen(self) -> str:
        """The clause that selects among complex events; empty if all of them are answers."""
        tree = self.ours.tree
        if tree.strategy not in (Strategy.ALL, Strategy.STRICT):
            return f"SELECT {tree.strategy.value}"
        if tree.limit is not None:
            return "LIMIT"
        return "" if tree.consume.value == "NONE" else "CONSUME BY"

    @cached_property
    def _predicates(self) -> tuple[EventPredicate, ...]:
        """The predicates of both automata, without duplicates and without `FIRST`."""
        both = (*self.ours.cea.predicates, *self.theirs.cea.predicates)
        return tuple(dict.fromkeys(predicate for predicate in both if predicate != FIRST))

    def missing(self, doubts: list[str], limit: int) -> Witness | None:
        """A shortest stream with a complex event that only ours has; adds undecided cases to `doubts`."""
        suspected: list[Witness] = []
        for fixed in self._keys():
            kinds = kinds_of(self._predicates, fixed=fixed)
            word = self._word(kinds, limit)
            assumed = [] if word is None else [part for one in word[1] for part in kinds[one.letter].assumed]
            if assumed:
                kinds = kinds_of(self._predicates, fixed=fixed, free=False)
                word = self._word(kinds, limit)
                if word is None:
                    doubts.append(
                        f"{assumed[0]} may distinguish them, and is more than a comparison with a constant"
                    )
            if word is not None:
                suspected.append(_witness(kinds, *word))
        shown = [witness for witness in suspected if self._tells_apart(witness)]
        if suspected and not shown:
            doubts.append(
                f"the patterns differ on {suspected[0].stream}, and {self.chosen or 'a clause'} hides it"
            )
        return min(shown, key=_length, default=None)

    def _keys(self) -> Iterator[dict[str, Value]]:
        """The values of partition keys that the conditions distinguish, for a stream of one partition."""
        names = [name for key in self.ours.tree.partition_by for name in key.alternatives]
        conditions = [one.condition for one in self._predicates if one.condition is not None]
        choices = []
        for name in names:
            asking = [condition for condition in conditions if Attribute(name) in condition.walk()]
            choices.append([value for value in candidates(asking) if value is not None] if asking else [1])
        for values in product(*choices):
            yield dict(zip(names, values, strict=True))

    def _word(self, kinds: Sequence[Kind], limit: int) -> tuple[bool, tuple[MarkedLetter, ...]] | None:
        """A shortest word that only ours accepts, and whether it begins the stream."""
        letters = [
            Letter(
                _bits(self.ours.cea, self._predicates, kind), _bits(self.theirs.cea, self._predicates, kind)
            )
            for kind in kinds
        ]
        window = self.ours.tree.window
        longest = window.events + 1 if isinstance(window, EventWindow) else None
        asks_first = any(FIRST in side.cea.predicates for side in (self.ours, self.theirs))
        words = []
        for first in (True, False) if asks_first else (True,):
            word = difference(
                self.ours.cea, self.theirs.cea, letters, first=first, longest=longest, limit=limit
            )
            if word is not None:
                words.append((first, word))
        return min(words, key=lambda pair: len(pair[1]) + (not pair[0]), default=None)

    def _tells_apart(self, witness: Witness) -> bool:
        """Whether, by the reference semantics of the whole queries, only ours has the complex event."""
        events = [
            Event(
                str(event["type"]), {name: value for name, value in event.items() if name != "type"}, time=0
            )
            for event in witness.events
        ]
        labels = frozenset((label, frozenset(places)) for label, places in witness.positions.items())
        wanted = ComplexEvent(witness.start, witness.end, labels)
        ours, theirs = (
            {one for at_end in evaluate_query(side.tree, events).values() for one in at_end}
            for side in (self.ours, self.theirs)
        )
        return wanted in ours and wanted not in theirs


def shortest_witness(limit: int, *comparisons: Comparison) -> tuple[Witness, int] | None:
    """A shortest witness of any of the comparisons, and the number of its comparison; None if there is none.

    Raises ValueError if that is undecided, and `LimitExceeded` if more than `limit` pairs of sets of states
    would be compared.
    """
    doubts: list[str] = []
    shown = [
        (witness, number)
        for number, comparison in enumerate(comparisons)
        if (witness := comparison.missing(doubts, limit)) is not None
    ]
    if doubts and not shown:
        raise ValueError(f"it is undecided whether the two queries find the same: {doubts[0]}")
    return min(shown, key=lambda pair: _length(pair[0]), default=None)


def _length(witness: Witness) -> int:
    return len(witness.events)


def _witness(kinds: Sequence[Kind], begins: bool, word: Sequence[MarkedLetter]) -> Witness:
    """The stream of a word, preceded by one more event unless the word `begins` the stream."""
    before = [] if begins else [kinds[0].event]
    events = [*before, *(kinds[letter.letter].event for letter in word)]
    positions: dict[str, tuple[int, ...]] = {}
    for place, letter in enumerate(word, start=len(before)):
        for label in sorted(letter.labels):
            positions[label] = (*positions.get(label, ()), place)
    dicts = tuple({"type": event.type, **event.attributes} for event in events)
    return Witness(dicts, len(before), len(events) - 1, positions)


def _clauses(one: QueryTree, other: QueryTree) -> Iterator[tuple[str, object, object]]:
    """The clauses that must agree, with their values in both queries."""
    every = (Strategy.ALL, Strategy.STRICT)
    first, second = (Strategy.ALL if tree.strategy in every else tree.strategy for tree in (one, other))
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
        for bit, predicate in enumerate(cea.predicates)
        if predicate != FIRST and kind.bits >> predicates.index(predicate) & 1
    )
