"""Laws of the operators, on patterns of the whole language: by the reference, and by the engine.

Each law compares two ways to say the same, or what an operator leaves with what the others found. Streams
have NULLs and ties; patterns are up to eight operators deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from estero.language.tree.expressions import And, Node, Not, Or
from estero.language.tree.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    PartitionBy,
    PartitionKey,
    Pattern,
    Rename,
    Start,
    Strict,
    Unless,
)
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.selection import label_types
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern, evaluate_query
from laws.evaluators import ByEnd, in_process
from strategies.full import conditions, full_patterns, full_queries, is_valid
from strategies.patterns import AT_ENDS, TICK, patterns, streams

Answers = Callable[[Pattern, Sequence[Event]], set[ComplexEvent]]
QueryAnswers = Callable[[QueryTree, Sequence[Event]], ByEnd]


def by_reference(pattern: Pattern, events: Sequence[Event]) -> set[ComplexEvent]:
    return evaluate_pattern(pattern, events)


def by_engine(pattern: Pattern, events: Sequence[Event]) -> set[ComplexEvent]:
    by_end = in_process(QueryTree(pattern), events)
    return {each for together in by_end.values() for each in together}


def query_by_reference(tree: QueryTree, events: Sequence[Event]) -> ByEnd:
    return evaluate_query(tree, events, tick=TICK)


BY_BOTH = pytest.mark.parametrize("answers", [by_reference, by_engine], ids=["reference", "engine"])
QUERIES_BY_BOTH = pytest.mark.parametrize(
    "answers", [query_by_reference, in_process], ids=["reference", "engine"]
)
FEW = settings(max_examples=min(15, settings.default.max_examples if settings.default else 15))

PATTERNS = full_patterns(max_operators=3).filter(is_valid)
DEEP = full_patterns(max_operators=8).filter(is_valid)
SHORT = streams(min_size=2, max_size=6)


@BY_BOTH
@FEW
@given(a=PATTERNS, b=PATTERNS, c=PATTERNS, events=SHORT)
def test_or_commutes_and_associates(
    answers: Answers, a: Pattern, b: Pattern, c: Pattern, events: list[Event]
) -> None:
    flat = answers(Disjunction((a, b, c)), events)
    assert flat == answers(Disjunction((c, a, b)), events)
    assert flat == answers(Disjunction((a, Disjunction((b, c)))), events)
    assert flat == answers(a, events) | answers(b, events) | answers(c, events)


@BY_BOTH
@FEW
@given(a=PATTERNS, b=PATTERNS, c=PATTERNS, events=SHORT)
def test_and_commutes_and_associates(
    answers: Answers, a: Pattern, b: Pattern, c: Pattern, events: list[Event]
) -> None:
    ab, bc = Disjunction((a, b)), Disjunction((b, c))
    both = answers(Conjunction((ab, bc)), events)
    assert both == answers(Conjunction((bc, ab)), events)
    assert both == answers(ab, events) & answers(bc, events)
    assert both == answers(Conjunction((ab, Conjunction((bc, ab)))), events)


@BY_BOTH
@FEW
@given(a=PATTERNS, b=PATTERNS, c=PATTERNS, events=streams(min_size=2, max_size=4))
def test_all_commutes_and_associates(
    answers: Answers, a: Pattern, b: Pattern, c: Pattern, events: list[Event]
) -> None:
    together = answers(All((a, b)), events)
    assert together == answers(All((b, a)), events)
    assert together == {union(one, other) for one in answers(a, events) for other in answers(b, events)}
    assert answers(All((a, b, c)), events) == answers(All((a, All((b, c)))), events)


def union(one: ComplexEvent, other: ComplexEvent) -> ComplexEvent:
    marks = dict(one.labels)
    for label, positions in other.labels:
        marks[label] = marks.get(label, frozenset()) | positions
    return ComplexEvent(min(one.start, other.start), max(one.end, other.end), frozenset(marks.items()))


@BY_BOTH
@FEW
@given(a=PATTERNS, contiguous=st.booleans(), least=st.integers(1, 3), more=st.integers(0, 2), events=SHORT)
def test_bounded_iteration_is_a_union_of_sequences(
    answers: Answers, a: Pattern, contiguous: bool, least: int, more: int, events: list[Event]
) -> None:
    def times(count: int) -> Pattern:
        links = (Link(contiguous=contiguous),) * (count - 1)
        return SequencePattern((a,) * count, links) if count > 1 else a

    counts = range(least, least + more + 1)
    expected = {each for count in counts for each in answers(times(count), events)}
    assert answers(Iteration(a, contiguous, least, least + more), events) == expected


# --------------------------------------------------------------------------------------------- STRICT


def without_gaps(pattern: Pattern) -> Pattern | None:
    """The same with ``:`` for ``;``; None for what marks less than it reads, or in no order."""
    match pattern:
        case SequencePattern(parts, links):
            if any(link.contiguous and link.absent for link in links):
                return None
            inner = [without_gaps(part) for part in parts]
            found = tuple(part for part in inner if part is not None)
            contiguous = (Link(contiguous=True),) * len(links)
            return SequencePattern(found, contiguous) if len(found) == len(parts) else None
        case Disjunction(parts) | Conjunction(parts):
            inner = [without_gaps(part) for part in parts]
            found = tuple(part for part in inner if part is not None)
            return type(pattern)(found) if len(found) == len(parts) else None
        case All() | Keep():
            return None
        case Iteration():
            once = without_gaps(pattern.pattern)
            return once and replace(pattern, pattern=once, contiguous=True)
        case As() | Rename() | Filter() | PartitionBy() | Start() | Strict() | Unless() | Optional():
            once = without_gaps(pattern.pattern)
            return once and replace(pattern, pattern=once)
        case _:
            return pattern


@BY_BOTH
@FEW
@given(a=DEEP, events=SHORT)
def test_strict_is_its_rewriting_without_gaps(answers: Answers, a: Pattern, events: list[Event]) -> None:
    rewritten = without_gaps(a)
    assume(rewritten is not None)
    assert rewritten is not None
    assert answers(Strict(a), events) == answers(rewritten, events)


@BY_BOTH
@FEW
@given(a=DEEP, events=SHORT)
def test_start_and_strict_look_at_what_was_found(answers: Answers, a: Pattern, events: list[Event]) -> None:
    found = answers(a, events)
    assert answers(Start(a), events) == {each for each in found if each.start == 0}
    assert answers(Strict(a), events) == {each for each in found if is_interval(each.support)}


def is_interval(support: frozenset[int]) -> bool:
    return not support or max(support) - min(support) + 1 == len(support)


# --------------------------------------------------------------------------------------------- labels


@BY_BOTH
@FEW
@given(a=DEEP, chosen=st.data(), events=SHORT)
def test_renaming_composes(answers: Answers, a: Pattern, chosen: st.DataObject, events: list[Event]) -> None:
    label = chosen.draw(st.sampled_from(tuple(label_types(a))))
    twice = Rename(Rename(a, label, "new"), "new", "newer")
    assert answers(twice, events) == answers(Rename(a, label, "newer"), events)
    there_and_back = Rename(Rename(a, label, "new"), "new", label)
    assert answers(there_and_back, events) == answers(a, events)


@BY_BOTH
@FEW
@given(a=DEEP, chosen=st.data(), events=SHORT)
def test_projection_composes(
    answers: Answers, a: Pattern, chosen: st.DataObject, events: list[Event]
) -> None:
    labels = tuple(label_types(a))
    more = chosen.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    fewer = chosen.draw(st.lists(st.sampled_from(more), min_size=1, unique=True))
    expected = {projected(each, frozenset(fewer)) for each in answers(a, events)}
    assert answers(Keep(a, tuple(fewer)), events) == expected
    assert answers(Keep(Keep(a, tuple(more)), tuple(fewer)), events) == expected


def projected(each: ComplexEvent, labels: frozenset[str]) -> ComplexEvent:
    return replace(each, labels=frozenset(mark for mark in each.labels if mark[0] in labels))


@BY_BOTH
@FEW
@given(a=PATTERNS, chosen=st.data(), events=SHORT)
def test_projection_and_renaming_change_places(
    answers: Answers, a: Pattern, chosen: st.DataObject, events: list[Event]
) -> None:
    label = chosen.draw(st.sampled_from(tuple(label_types(a))))
    kept_first = Rename(Keep(a, (label,)), label, "new")
    assert answers(kept_first, events) == answers(Keep(Rename(a, label, "new"), ("new",)), events)


# ------------------------------------------------------------------------------- what takes away


@BY_BOTH
@FEW
@given(a=PATTERNS, forbidden=patterns(max_operators=2), events=SHORT)
def test_unless_takes_away_what_has_it_inside(
    answers: Answers, a: Pattern, forbidden: Pattern, events: list[Event]
) -> None:
    bad = evaluate_pattern(forbidden, events)
    expected = {
        each
        for each in answers(a, events)
        if not any(each.start <= other.start and other.end <= each.end for other in bad)
    }
    assert answers(Unless(a, forbidden), events) == expected


@BY_BOTH
@FEW
@given(a=PATTERNS, attribute=st.sampled_from(["k", "n", "s"]), events=SHORT)
def test_a_nested_partition_takes_away_what_does_not_agree(
    answers: Answers, a: Pattern, attribute: str, events: list[Event]
) -> None:
    def agrees(each: ComplexEvent) -> bool:
        values = {events[position].attributes[attribute] for position in each.support}
        return len(values) <= 1 and None not in values

    expected = {each for each in answers(a, events) if agrees(each)}
    assert answers(PartitionBy(a, (PartitionKey(attribute),)), events) == expected


@st.composite
def filtered(draw: st.DrawFn) -> tuple[Pattern, Node, Node]:
    pattern = draw(full_patterns(max_operators=3).filter(is_valid))
    labels = tuple(label_types(pattern))
    return pattern, draw(conditions(labels)), draw(conditions(labels))


@BY_BOTH
@FEW
@given(case=filtered(), events=SHORT)
def test_filters_join_as_sets_do(
    answers: Answers, case: tuple[Pattern, Node, Node], events: list[Event]
) -> None:
    a, f, g = case
    with_f, with_g = answers(Filter(a, f), events), answers(Filter(a, g), events)
    assert answers(Filter(a, And((f, g))), events) == with_f & with_g
    assert answers(Filter(Filter(a, f), g), events) == with_f & with_g
    assert answers(Filter(a, Or((f, g))), events) == with_f | with_g
    assert answers(Filter(a, Not(Not(f))), events) == with_f
    assert not with_f & answers(Filter(a, Not(f)), events)


# ----------------------------------------------------------------------------------------- strategies


@QUERIES_BY_BOTH
@FEW
@given(tree=full_queries(max_operators=4), events=streams(min_size=3, max_size=7))
def test_strategies_choose_among_all(answers: QueryAnswers, tree: QueryTree, events: list[Event]) -> None:
    everything = replace(tree, strategy=Strategy.ALL, consume=Consume.NONE, limit=None)
    found = answers(everything, events)
    for strategy in AT_ENDS:
        chosen = answers(replace(everything, strategy=strategy), events)
        assert all(chosen[end] <= found[end] for end in chosen)
        if strategy is not Strategy.STRICT:
            assert set(chosen) == set(found)
        for end, left in chosen.items():
            supports = {each.support for each in left}
            assert left == {each for each in found[end] if each.support in supports}
            if strategy is Strategy.MAX:
                assert not any(one < other.support for one in supports for other in found[end])
            if strategy in (Strategy.NEXT, Strategy.LAST):
                assert len(supports) == 1
