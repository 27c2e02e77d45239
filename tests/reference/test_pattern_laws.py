"""Laws of the pattern operators that follow from docs/semantics.md, on random patterns and streams."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from estero.language.tree.expressions import And, Node, Not, Or
from estero.language.tree.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    Pattern,
    Rename,
    Sequence,
    Strict,
    Unless,
)
from estero.language.tree.selection import label_types
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern
from reference.notation import seq
from strategies.patterns import filters, patterns, streams

SMALL = patterns(max_operators=2)
SHORT = streams(max_size=6)


def equal(left: Pattern, right: Pattern, events: list[Event]) -> bool:
    return evaluate_pattern(left, events) == evaluate_pattern(right, events)


@given(SMALL, SMALL, SMALL, SHORT)
def test_or_commutes_associates_and_is_idempotent(
    a: Pattern, b: Pattern, c: Pattern, events: list[Event]
) -> None:
    assert equal(Disjunction((a, b)), Disjunction((b, a)), events)
    assert equal(Disjunction((a, b, c)), Disjunction((a, Disjunction((b, c)))), events)
    assert equal(Disjunction((a, a)), a, events)


@given(SMALL, SMALL, SMALL, SHORT)
def test_and_commutes_associates_and_is_idempotent(
    a: Pattern, b: Pattern, c: Pattern, events: list[Event]
) -> None:
    wide = Disjunction((a, b))
    assert equal(Conjunction((wide, b)), Conjunction((b, wide)), events)
    assert equal(Conjunction((wide, b)), b, events)
    assert equal(Conjunction((wide, b, c)), Conjunction((wide, Conjunction((b, c)))), events)


@given(SMALL, SMALL, SMALL, streams(max_size=4))
def test_all_commutes_and_associates(a: Pattern, b: Pattern, c: Pattern, events: list[Event]) -> None:
    assert equal(All((a, b)), All((b, a)), events)
    assert equal(All((a, b, c)), All((All((a, b)), c)), events)
    assert evaluate_pattern(seq(a, b), events) <= evaluate_pattern(All((a, b)), events)


@given(SMALL, SMALL, SMALL, st.booleans(), st.booleans(), SHORT)
def test_sequences_associate(
    a: Pattern, b: Pattern, c: Pattern, first: bool, second: bool, events: list[Event]
) -> None:
    one, two = Link(contiguous=first), Link(contiguous=second)
    flat = Sequence((a, b, c), (one, two))
    assert equal(flat, Sequence((Sequence((a, b), (one,)), c), (two,)), events)
    assert equal(flat, Sequence((a, Sequence((b, c), (two,))), (one,)), events)


@given(SMALL, SMALL, SMALL, SHORT)
def test_sequences_distribute_over_or(a: Pattern, b: Pattern, c: Pattern, events: list[Event]) -> None:
    assert equal(seq(a, Disjunction((b, c))), Disjunction((seq(a, b), seq(a, c))), events)
    assert equal(seq(Disjunction((a, b)), c), Disjunction((seq(a, c), seq(b, c))), events)


@given(SMALL, st.booleans(), st.integers(1, 3), st.integers(0, 2), SHORT)
def test_bounded_iteration_is_a_union_of_sequences(
    a: Pattern, contiguous: bool, minimum: int, more: int, events: list[Event]
) -> None:
    def times(count: int) -> Pattern:
        return Sequence((a,) * count, (Link(contiguous=contiguous),) * (count - 1)) if count > 1 else a

    union = Disjunction(tuple(times(count) for count in range(minimum, minimum + more + 1)))
    assert equal(Iteration(a, contiguous, minimum, minimum + more), union, events)


@given(SMALL, st.booleans(), st.integers(1, 3), SHORT)
def test_unbounded_iteration_is_that_of_the_length_of_the_stream(
    a: Pattern, contiguous: bool, minimum: int, events: list[Event]
) -> None:
    bounded = Iteration(a, contiguous, minimum, max(minimum, len(events)))
    assert equal(Iteration(a, contiguous, minimum, None), bounded, events)


@given(SMALL, st.booleans(), SHORT)
def test_iteration_is_once_or_once_and_again(a: Pattern, contiguous: bool, events: list[Event]) -> None:
    plus = Iteration(a, contiguous)
    again = Sequence((a, plus), (Link(contiguous=contiguous),))
    assert equal(plus, Disjunction((a, again)), events)
    assert equal(Iteration(Iteration(a)), Iteration(a), events)


@given(SMALL, SMALL, SMALL, st.booleans(), SHORT)
def test_optional_is_sugar(a: Pattern, b: Pattern, c: Pattern, contiguous: bool, events: list[Event]) -> None:
    link = Link(contiguous=contiguous)
    with_b = Sequence((a, Optional(b), c), (link, link))
    assert equal(with_b, Disjunction((Sequence((a, b, c), (link, link)), Sequence((a, c), (link,)))), events)
    assert equal(Sequence((a, Optional(b)), (link,)), Disjunction((Sequence((a, b), (link,)), a)), events)
    assert equal(Sequence((Optional(a), b), (link,)), Disjunction((Sequence((a, b), (link,)), b)), events)


@st.composite
def filtered(draw: st.DrawFn) -> tuple[Pattern, Node, Node]:
    pattern = draw(SMALL)
    labels = tuple(label_types(pattern))
    return pattern, draw(filters(labels)), draw(filters(labels))


@given(filtered(), SHORT)
def test_filters_with_and_and_or_are_filters_in_turn_and_unions(
    case: tuple[Pattern, Node, Node], events: list[Event]
) -> None:
    a, f, g = case
    assert equal(Filter(a, And((f, g))), Filter(Filter(a, f), g), events)
    assert equal(Filter(a, Or((f, g))), Disjunction((Filter(a, f), Filter(a, g))), events)
    assert equal(Filter(a, Not(Not(f))), Filter(a, f), events)
    assert not evaluate_pattern(Filter(Filter(a, f), Not(f)), events)


@given(filtered(), SMALL, SHORT)
def test_filters_go_through_or(case: tuple[Pattern, Node, Node], b: Pattern, events: list[Event]) -> None:
    a, f, _ = case
    both = Disjunction((a, Filter(a, f)))
    assert equal(Filter(both, f), Filter(a, f), events)
    assert evaluate_pattern(Filter(Disjunction((a, b)), f), events) >= evaluate_pattern(Filter(a, f), events)


@given(SMALL, SHORT)
def test_labels_can_be_added_renamed_and_dropped(a: Pattern, events: list[Event]) -> None:
    labels = tuple(label_types(a))
    assert equal(Keep(a, labels), a, events)
    assert equal(Keep(As(a, "new"), labels), a, events)
    assert equal(Rename(As(a, "new"), "new", "newer"), As(a, "newer"), events)
    assert equal(As(As(a, "new"), "new"), As(a, "new"), events)


@given(SMALL, SMALL, SHORT)
def test_strict_and_unless_only_take_away(a: Pattern, b: Pattern, events: list[Event]) -> None:
    everything = evaluate_pattern(a, events)
    assert evaluate_pattern(Strict(a), events) <= everything
    assert evaluate_pattern(Unless(a, b), events) <= everything
    assert not evaluate_pattern(Unless(a, a), events)
    assert equal(Unless(a, EventType("Z")), a, events)


def loosened(pattern: Pattern) -> Pattern:
    """The same without contiguity, which alone sees events that nobody wants."""
    match pattern:
        case Sequence(parts, links):
            return Sequence(tuple(loosened(part) for part in parts), (Link(),) * len(links))
        case Iteration(inner, _, minimum, maximum):
            return Iteration(loosened(inner), False, minimum, maximum)
        case Disjunction(parts):
            return Disjunction(tuple(loosened(part) for part in parts))
        case Optional(inner):
            return Optional(loosened(inner))
        case As(inner, variable):
            return As(loosened(inner), variable)
        case Filter(inner, condition):
            return Filter(loosened(inner), condition)
        case _:
            return pattern


@given(patterns(), streams(max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_events_that_nobody_wants_change_nothing(
    pattern: Pattern, events: list[Event], at: list[int]
) -> None:
    longer = reduce(lambda sofar, place: [*sofar[:place], Event("Z", {}), *sofar[place:]], at, events)
    moved = [place for place, event in enumerate(longer) if event.type != "Z"]

    def move(one: ComplexEvent) -> ComplexEvent:
        labels = frozenset(
            (label, frozenset(moved[place] for place in places)) for label, places in one.labels
        )
        return ComplexEvent(moved[one.start], moved[one.end], labels)

    loose = loosened(pattern)
    assert evaluate_pattern(loose, longer) == {move(one) for one in evaluate_pattern(loose, events)}
