"""Automata given directly find what all their runs find, whatever the clauses and wherever a stream is cut.

The oracle tries all runs of the transitions as they are written (chain-CEA paper, section 4; SO-CEL,
section 5), and knows nothing of the automata that the engine makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import estero
from automata.run_trees import accepting_runs
from estero.answers.answer import Answer
from estero.automata.given.user_runs import runs_of
from estero.automata.pcea import PCEA
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.reference.queries import ComplexEvent, Event, evaluate_query
from estero.reference.values import compare
from laws.evaluators import by_end, planned
from strategies.full import full_queries
from strategies.patterns import AT_ENDS, TYPES, queries, streams, to_table
from strategies.steps import stepped_queries

LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "types": TYPES}
MOST = settings.default.max_examples if settings.default else 10

TEXTS: dict[str, Callable[[Event], bool]] = {
    "*": lambda _: True,
    "A": lambda event: event.type == "A",
    "B[n > 0]": lambda event: event.type == "B" and (event.attributes["n"] or 0) > 0,
    "NOT B": lambda event: event.type != "B",
    "NOT A[n > 0]": lambda event: not (event.type == "A" and (event.attributes["n"] or 0) > 0),
    "A OR C": lambda event: event.type in "AC",
    "*[n IS NULL] AND NOT C": lambda event: event.attributes["n"] is None and event.type != "C",
}
LABELS = st.sampled_from([frozenset(), frozenset({"x"}), frozenset({"A"}), frozenset({"x", "y"})])
Step = tuple[int, str, frozenset[str], int]
Marks = frozenset[tuple[str, int]]


class Clauses(NamedTuple):
    """What is asked of an automaton beside its transitions; a window is of so many events."""

    anchored: bool
    window: int | None
    partitioned: bool
    distinct: bool

    def arguments(self) -> dict[str, Any]:
        """What `estero.automaton` takes."""
        within = None if self.window is None else f"{self.window} EVENTS"
        return {
            "anchored": self.anchored,
            "within": within,
            "partition_by": "k" if self.partitioned else (),
            "types": TYPES,
            "distinct": "marks" if self.distinct else None,
        }

    def substreams(self, events: Sequence[Event]) -> list[list[int]]:
        """The positions of the events of each partition."""
        if not self.partitioned:
            return [list(range(len(events)))]
        found: dict[object, list[int]] = {}
        for place, event in enumerate(events):
            if event.attributes["k"] is not None:
                found.setdefault(event.attributes["k"], []).append(place)
        return list(found.values())

    def allows(self, start: int, end: int, places: Sequence[int]) -> bool:
        """Whether a run from `start` to `end` counts in the partition of `places`."""
        begins = not self.anchored or start == places[0]
        return begins and (self.window is None or end - start <= self.window)

    def told_apart(self, found: Iterable[ComplexEvent]) -> set[ComplexEvent]:
        """The complex events, of which those with the same end and marks are one if marks are to differ."""
        return {from_first_mark(each) for each in found} if self.distinct else set(found)


def from_first_mark(each: ComplexEvent) -> ComplexEvent:
    return ComplexEvent(min(each.support, default=each.end), each.end, each.labels)


clauses = st.builds(
    Clauses,
    st.sampled_from([False, False, True]),
    st.one_of(st.none(), st.integers(1, 4)),
    st.booleans(),
    st.booleans(),
)
steps = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(sorted(TEXTS)), LABELS, st.integers(0, 3)),
    min_size=2,
    max_size=7,
)
some_states = st.sets(st.integers(0, 3), min_size=1, max_size=2)


def complex_event(start: int, end: int, marked: Marks) -> ComplexEvent:
    names = {label for label, _ in marked}
    labels = ((name, frozenset(at for label, at in marked if label == name)) for name in names)
    return ComplexEvent(start, end, frozenset(labels))


def by_hand(
    transitions: Sequence[Step], initial: set[int], final: set[int], asked: Clauses, events: Sequence[Event]
) -> set[ComplexEvent]:
    """All runs: each reads the events of its partition one after the other."""
    found = set()
    for places in asked.substreams(events):
        for number, start in enumerate(places):
            runs: set[tuple[int, Marks]] = {(state, frozenset()) for state in initial}
            for place in places[number:]:
                runs = {
                    (target, marked | {(label, place) for label in labels})
                    for state, marked in runs
                    for source, text, labels, target in transitions
                    if source == state and TEXTS[text](events[place])
                }
                found |= {
                    complex_event(start, place, marked)
                    for state, marked in runs
                    if state in final and asked.allows(start, place, places)
                }
    return found


def built(transitions: Sequence[Any], asked: Clauses, **states: Any) -> estero.Query:
    """The query; draws that are no automaton (nothing marked, ends not reached) are dropped."""
    try:
        return estero.automaton(transitions, **states, **asked.arguments())
    except ValueError:
        assume(False)
        raise


def found_at_once(query: estero.Query, events: Sequence[Event]) -> set[ComplexEvent]:
    answer = query.run(to_table(events), **LAYOUT)
    found = {each for at_end in by_end(answer.batches()).values() for each in at_end}
    assert answer.count() == len(found)
    return found


def found_in_pieces(query: estero.Query, events: Sequence[Event], sizes: Sequence[int]) -> set[ComplexEvent]:
    """What a recognizer finds that is restored from its snapshot after every other piece."""
    recognizer = query.recognizer(to_table(events).schema, **LAYOUT)
    batches, first, turn = [], 0, 0
    while first < len(events):
        size = sizes[turn % len(sizes)]
        batches += list(recognizer.push(to_table(events[first : first + size])).batches())
        if turn % 2:
            recognizer = estero.restore(query, recognizer.snapshot())
        first, turn = first + size, turn + 1
    batches += list(recognizer.close().batches())
    return {each for at_end in by_end(batches).values() for each in at_end}


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@settings(max_examples=MOST)
@given(steps, some_states, some_states, clauses, streams(max_size=8), SIZES)
def test_an_automaton_finds_what_all_its_runs_find(
    transitions: list[Step],
    initial: set[Hashable],
    final: set[Hashable],
    asked: Clauses,
    events: list[Event],
    sizes: list[int],
) -> None:
    query = built(transitions, asked, initial=initial, final=final)
    expected = asked.told_apart(by_hand(transitions, initial, final, asked, events))  # type: ignore[arg-type]
    meant = evaluate_query(query.tree, events)
    assert asked.told_apart(each for at_end in meant.values() for each in at_end) == expected
    assert found_at_once(query, events) == expected
    assert found_in_pieces(query, events, sizes) == expected


@settings(max_examples=MOST)
@given(st.one_of(queries(), full_queries(max_operators=3), stepped_queries()), streams(max_size=8), st.data())
def test_marks_tell_the_complex_events_of_any_query_apart(
    tree: QueryTree, events: list[Event], data: st.DataObject
) -> None:
    tree = replace(tree, select=None, limit=None, consume=Consume.NONE)
    run = planned(tree, to_table(events))
    found = {each for at_end in by_end(Answer(run).batches()).values() for each in at_end}
    merged = replace(run, plan=run.plan.with_distinct_marks())
    expected = {from_first_mark(each) for each in found}
    answer = Answer(merged)
    assert {each for at_end in by_end(answer.batches()).values() for each in at_end} == expected
    assert answer.count() == len(expected)
    of = data.draw(st.integers(2, 3))
    shares = [by_end(answer.share(number, of).batches()) for number in range(of)]
    assert sum(len(at_end) for share in shares for at_end in share.values()) == len(expected)


# ----------------------------------------------------------------------------- transitions that compare

OPERATORS = st.sampled_from(["=", "=", "!=", "!=", "<", "<=", ">", ">="])
SIDES = [("n", "n"), ("k", "k"), ("n", "k"), ("s", "s"), ("x", "x"), ("n", "x"), ("x", "k")]
"""Attributes of the event before and of the one at hand: also an integer beside a float."""
one_comparison = st.tuples(OPERATORS, st.sampled_from(SIDES))
comparisons = st.one_of(*(st.lists(one_comparison, min_size=n, max_size=n) for n in (1, 1, 2, 3, 0)))
Compared = tuple[str, tuple[str, str]]
Link = tuple[int, str, frozenset[str], int, list[Compared]]

READ = st.sampled_from(["A", "B[n > 0]", "A OR C"])
MARKED = st.sampled_from([frozenset({"x"}), frozenset({"x"}), frozenset({"y"})])


def link(source: int | None, target: int | None) -> st.SearchStrategy[Link]:
    """A transition from and to a state, drawn where it is None."""
    sources = st.integers(0, 2) if source is None else st.just(source)
    targets = st.integers(1, 2) if target is None else st.just(target)
    return st.tuples(sources, READ, MARKED, targets, comparisons)


further = st.lists(link(None, None), max_size=3)
links = st.builds(lambda one, two, more: [one, two, *more], link(0, 1), link(1, 2), further)


def given_links(drawn: Sequence[Link]) -> list[tuple[object, ...]]:
    """As `estero.automaton` takes them: runs begin in 0, where nothing is compared."""
    found: list[tuple[object, ...]] = []
    for source, text, labels, target, asked in drawn:
        compared = " AND ".join(f"before.{left} {operator} {right}" for operator, (left, right) in asked)
        found.append((source, text, labels, target, *([compared] if source and compared else [])))
    return found


def chain_by_hand(
    drawn: Sequence[Link], final: set[int], asked: Clauses, events: Sequence[Event]
) -> set[ComplexEvent]:
    """All runs: each marks some events of its partition and passes over the others."""
    found = set()
    for places in asked.substreams(events):
        runs: list[tuple[int, int, int, Marks]] = []
        for place in places:
            event = events[place]
            begun: list[tuple[int, int, int, Marks]] = [(0, place, -1, frozenset()), *runs]
            runs += [
                (target, start, place, marked | {(label, place) for label in labels})
                for state, start, before, marked in begun
                for source, text, labels, target, compared in drawn
                if source == state
                and TEXTS[text](event)
                and (source == 0 or all(_holds(each, events[before], event) for each in compared))
            ]
        found |= {
            complex_event(start, end, marked)
            for state, start, end, marked in runs
            if state in final and asked.allows(start, end, places)
        }
    return found


def _holds(asked: Compared, before: Event, event: Event) -> bool:
    operator, (left, right) = asked
    return compare(operator, before.attributes[left], event.attributes[right]) is True  # type: ignore[arg-type]


@settings(max_examples=MOST)
@given(links, st.sampled_from([{2}, {1, 2}]), clauses, streams(min_size=3, max_size=7), SIZES)
def test_a_chain_finds_what_all_its_runs_find(
    drawn: list[Link], final: set[int], asked: Clauses, events: list[Event], sizes: list[int]
) -> None:
    assume(any(compared for source, *_, compared in drawn if source))
    query = built(given_links(drawn), asked, initial=0, final=final)
    expected = chain_by_hand(drawn, final, asked, events)
    assert found_at_once(query, events) == expected
    assert found_in_pieces(query, events, sizes) == expected


flat = st.builds(
    lambda one, two, more: [one, two, *more],
    link(0, 1),
    link(1, 2),
    st.lists(st.one_of(link(0, 1), link(1, 2), link(0, 2)), max_size=2),
)
"""Without a loop, so that they print as queries."""


@settings(max_examples=max(10, MOST // 2))
@given(flat, clauses, st.sampled_from(AT_ENDS), streams(min_size=3, max_size=7))
def test_strategies_choose_among_what_a_chain_finds(
    drawn: list[Link], asked: Clauses, strategy: Strategy, events: list[Event]
) -> None:
    assume(any(compared for source, *_, compared in drawn if source))
    word = "*" if strategy is Strategy.ALL else f"{strategy.value} *"
    query = built(given_links(drawn), asked, initial=0, final=2, select=word)
    meant = evaluate_query(query.tree, events)
    assert found_at_once(query, events) == {each for at_end in meant.values() for each in at_end}


# ------------------------------------------------------------------------------ transitions that gather

JOINS = st.sampled_from(["{0}.{1} = {2}", "{0}.{1} = {2} AND {0}.n = n"])
EQUAL = st.sampled_from([("n", "n"), ("k", "k"), ("n", "k"), ("s", "s"), ("n", "x")])


@st.composite
def gathering(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """Two runs that are gathered by an event, with whatever comes behind it; some are ambiguous."""

    def joined(state: str) -> str:
        return draw(JOINS).format(state, *draw(EQUAL))

    one, other, last = (
        draw(st.sampled_from(["A", "B", "C", "A OR C", "B[n > 0]", "A[n = k]"])) for _ in range(3)
    )
    found: list[tuple[object, ...]] = [([], one, "x", "p"), ([], other, "y", "q")]
    if draw(st.booleans()):
        found.append((["p"], draw(READ), "x", "p", joined("before")))
    found.append((["p", "q"], last, "z", "r", f"{joined('p')} AND {joined('q')}"))
    if draw(st.booleans()):
        found.append((["r"], draw(READ), "z", "r", joined("before")))
    return found


@settings(max_examples=max(10, MOST // 3))
@given(gathering(), clauses.filter(lambda asked: not asked.anchored), streams(min_size=3, max_size=8), SIZES)
def test_an_automaton_that_gathers_finds_what_its_run_trees_find(
    transitions: list[tuple[object, ...]], asked: Clauses, events: list[Event], sizes: list[int]
) -> None:
    query = built(transitions, asked, final="r")
    machine = runs_of(transitions, None, "r", TYPES)
    assert isinstance(machine, PCEA)
    expected = set()
    for places in asked.substreams(events):
        for run in accepting_runs(machine, [events[place] for place in places]):
            marks = frozenset((label, places[at]) for at, label in run.marks)
            found = complex_event(places[min(run.marks)[0]], places[run.position], marks)
            if asked.allows(found.start, found.end, places):
                expected.add(found)
    assert found_at_once(query, events) == expected
    assert found_in_pieces(query, events, sizes) == expected
