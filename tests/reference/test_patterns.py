"""Each operator of docs/semantics.md's table on a stream small enough to answer by hand."""

from __future__ import annotations

import pytest

from estero.errors import QueryError
from estero.language.tree.expressions import EventFilter
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
    PartitionBy,
    PartitionKey,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
)
from estero.reference.queries import Event, evaluate_pattern
from reference.notation import A, B, C, each, found, holds, seq, shown, stream, then


def test_a_type_finds_each_of_its_events() -> None:
    assert found(A, stream("A B A")) == ["[0, 0] {A: [0]}", "[2, 2] {A: [2]}"]


@pytest.mark.parametrize(
    ("pattern", "streams", "positions"),
    [
        (EventType("R"), (), [1]),
        (EventType("R"), ("S",), [0, 1]),
        (EventType("R"), ("S", "T"), [0, 1, 2]),
        (EventType("R", "S"), ("S",), [0, 1]),
        (EventType("R", "S"), ("S", "T"), [0]),
        (EventType("R", "T"), (), [2]),
    ],
)
def test_a_type_may_name_its_stream(pattern: Pattern, streams: tuple[str, ...], positions: list[int]) -> None:
    answer = evaluate_pattern(pattern, stream("S>R R T>R"), streams=streams)
    assert shown(answer) == [f"[{position}, {position}] {{R: [{position}]}}" for position in positions]


def test_as_marks_everything_that_is_marked() -> None:
    assert found(As(seq(A, B), "x"), stream("A C B")) == ["[0, 2] {A: [0], B: [2], x: [0, 2]}"]


def test_renaming_replaces_one_label_by_another() -> None:
    assert found(Rename(seq(A, B), "A", "B"), stream("A B")) == ["[0, 1] {B: [0, 1]}"]
    assert found(Rename(seq(A, B), "C", "x"), stream("A B")) == ["[0, 1] {A: [0], B: [1]}"]


def test_or_is_the_union_and_merges_what_is_the_same() -> None:
    assert found(Disjunction((A, B, A)), stream("A B C")) == ["[0, 0] {A: [0]}", "[1, 1] {B: [1]}"]


# ------------------------------------------------------------------------------------ in succession


def test_a_sequence_skips_what_is_between() -> None:
    assert found(seq(A, B), stream("A B A B")) == [
        "[0, 1] {A: [0], B: [1]}",
        "[0, 3] {A: [0], B: [3]}",
        "[2, 3] {A: [2], B: [3]}",
    ]


def test_a_contiguous_sequence_skips_nothing_between_its_parts() -> None:
    assert found(then(A, B), stream("A B A C B")) == ["[0, 1] {A: [0], B: [1]}"]
    assert found(then(seq(A, B), C), stream("A C B C")) == ["[0, 3] {A: [0], B: [2], C: [3]}"]


def test_iteration_takes_every_non_empty_choice() -> None:
    assert found(Iteration(A), stream("A B A")) == [
        "[0, 0] {A: [0]}",
        "[0, 2] {A: [0, 2]}",
        "[2, 2] {A: [2]}",
    ]


def test_iteration_of_a_sequence_starts_each_round_after_the_last() -> None:
    answer = found(Iteration(seq(A, B)), stream("A B A B"))
    assert answer == [
        "[0, 1] {A: [0], B: [1]}",
        "[0, 3] {A: [0, 2], B: [1, 3]}",
        "[0, 3] {A: [0], B: [3]}",
        "[2, 3] {A: [2], B: [3]}",
    ]


def test_contiguous_iteration_is_contiguous_between_rounds_only() -> None:
    assert found(Iteration(A, contiguous=True), stream("A A B A")) == [
        "[0, 0] {A: [0]}",
        "[0, 1] {A: [0, 1]}",
        "[1, 1] {A: [1]}",
        "[3, 3] {A: [3]}",
    ]
    assert "[0, 4] {A: [0, 3], B: [2, 4]}" in found(
        Iteration(seq(A, B), contiguous=True), stream("A C B A B")
    )
    assert "[0, 5] {A: [0, 4], B: [2, 5]}" not in found(
        Iteration(seq(A, B), contiguous=True), stream("A C B C A B")
    )


@pytest.mark.parametrize(
    ("contiguous", "minimum", "maximum", "sizes"),
    [
        (False, 2, 2, [2, 2, 2, 2, 2, 2]),
        (False, 3, 4, [3, 3, 3, 3, 4]),
        (False, 3, None, [3, 3, 3, 3, 4]),
        (False, 5, None, []),
        (True, 2, 3, [2, 2, 2, 3, 3]),
        (True, 2, None, [2, 2, 2, 3, 3, 4]),
    ],
)
def test_bounded_iteration_counts_its_rounds(
    contiguous: bool, minimum: int, maximum: int | None, sizes: list[int]
) -> None:
    answer = evaluate_pattern(Iteration(A, contiguous, minimum, maximum), stream("A A A A"))
    assert sorted(len(one.support) for one in answer) == sizes


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        (seq(A, Optional(B), C), ["[0, 3] {A: [0], B: [1], C: [3]}", "[0, 3] {A: [0], C: [3]}"]),
        (seq(A, Optional(B)), ["[0, 0] {A: [0]}", "[0, 1] {A: [0], B: [1]}"]),
        (seq(Optional(B), C), ["[1, 3] {B: [1], C: [3]}", "[3, 3] {C: [3]}"]),
        (seq(Optional(A), Optional(B), C), ["[0, 3] {A: [0], B: [1], C: [3]}", "[0, 3] {A: [0], C: [3]}"]),
    ],
)
def test_an_optional_part_may_be_left_out(pattern: Pattern, answer: list[str]) -> None:
    assert set(answer) <= set(found(pattern, stream("A B B C")))
    assert all("[2" not in one for one in answer)


def test_a_part_left_out_takes_the_link_before_it_along() -> None:
    loose_after = Sequence((A, Optional(B), C), (Link(contiguous=True), Link()))
    assert found(loose_after, stream("A D C")) == ["[0, 2] {A: [0], C: [2]}"]
    tight_after = Sequence((A, Optional(B), C), (Link(), Link(contiguous=True)))
    assert found(tight_after, stream("A D C")) == []
    assert found(tight_after, stream("A C")) == ["[0, 1] {A: [0], C: [1]}"]


@pytest.mark.parametrize("pattern", [Optional(A), seq(Optional(A), Optional(B)), As(Optional(A), "x")])
def test_a_pattern_cannot_be_optional_as_a_whole(pattern: Pattern) -> None:
    with pytest.raises(QueryError, match="optional"):
        evaluate_pattern(pattern, stream("A B"))


def test_not_forbids_events_strictly_between() -> None:
    without_b = Sequence((A, C), (Link(absent=(B,)),))
    assert found(without_b, stream("A B C A D C")) == ["[3, 5] {A: [3], C: [5]}"]
    small = Filter(B, each("B", "n", "<", 3))
    without_small_b = Sequence((A, C), (Link(absent=(small,)),))
    assert found(without_small_b, stream("A B C", n=[0, 5, 0])) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(without_small_b, stream("A B C", n=[0, None, 0])) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(without_small_b, stream("A B C", n=[0, 1, 0])) == []


def test_contiguous_not_asks_for_one_other_event_between() -> None:
    pattern = Sequence((A, C), (Link(contiguous=True, absent=(B,)),))
    assert found(pattern, stream("A D C")) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(pattern, stream("A B C")) == []
    assert found(pattern, stream("A C")) == []
    assert found(pattern, stream("A D D C")) == []


# ------------------------------------------------------------------------------ more than sequences


def test_and_requires_the_same_complex_event_twice() -> None:
    starts_small = Filter(seq(A, B), each("A", "n", "<", 2))
    ends_small = Filter(seq(A, B), each("B", "n", "<", 2))
    assert found(Conjunction((starts_small, ends_small)), stream("A A B B", n=[1, 2, 1, 2])) == [
        "[0, 2] {A: [0], B: [2]}"
    ]
    assert found(Conjunction((A, B)), stream("A B")) == []


def test_all_unites_in_any_order_and_its_parts_may_overlap() -> None:
    assert found(All((A, B)), stream("B A")) == ["[0, 1] {A: [1], B: [0]}"]
    assert found(All((seq(A, B), seq(A, C))), stream("A B C")) == ["[0, 2] {A: [0], B: [1], C: [2]}"]
    assert found(All((A, A)), stream("A A")) == ["[0, 0] {A: [0]}", "[0, 1] {A: [0, 1]}", "[1, 1] {A: [1]}"]


def test_unless_forbids_a_complex_event_inside() -> None:
    pattern = Unless(seq(A, C), seq(B, B))
    assert found(pattern, stream("A B C")) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(pattern, stream("A B B C")) == []
    assert found(pattern, stream("B A B C B")) == ["[1, 3] {A: [1], C: [3]}"]


def test_start_requires_the_first_position_of_the_stream() -> None:
    assert found(Start(seq(A, B)), stream("A A B")) == ["[0, 2] {A: [0], B: [2]}"]
    assert found(Start(A), stream("B A")) == []


def test_strict_requires_marked_positions_without_gaps() -> None:
    assert found(Strict(seq(A, B)), stream("A A B")) == ["[1, 2] {A: [1], B: [2]}"]


def test_keep_forgets_labels_but_not_what_was_read() -> None:
    assert found(Keep(seq(A, B, C), ("B",)), stream("A B C")) == ["[0, 2] {B: [1]}"]
    assert found(Keep(seq(A, B), ("B",)), stream("A A B")) == ["[0, 2] {B: [2]}", "[1, 2] {B: [2]}"]
    assert found(Keep(seq(A, Iteration(B), C), ("A",)), stream("A B B C")) == ["[0, 3] {A: [0]}"]
    assert found(Keep(A, ()), stream("A")) == ["[0, 0] {}"]


def test_what_follows_a_projection_follows_what_it_read() -> None:
    pattern = then(Keep(seq(A, B), ("A",)), C)
    assert found(pattern, stream("A B C C")) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(As(Keep(seq(A, B), ("A",)), "x"), stream("A B")) == ["[0, 1] {A: [0], x: [0]}"]
    assert found(Strict(Keep(seq(A, B, C), ("A", "C"))), stream("A B C")) == []


def test_nested_partition_by_requires_that_all_marked_events_agree() -> None:
    events = stream("A B B", n=[1, 1, 2])
    assert found(PartitionBy(seq(A, B), (PartitionKey("n"),)), events) == ["[0, 1] {A: [0], B: [1]}"]
    events = [Event("A", {"n": 1}), Event("B", {"m": 1}), Event("B", {"m": None}), Event("B", {"m": 1.0})]
    keys = (PartitionKey("n", "A"), PartitionKey("m", "B"))
    assert found(PartitionBy(seq(A, B), keys), events) == [
        "[0, 1] {A: [0], B: [1]}",
        "[0, 3] {A: [0], B: [3]}",
    ]


def test_nested_partition_by_does_not_close_gaps() -> None:
    pattern = PartitionBy(then(A, A), (PartitionKey("n"),))
    assert found(pattern, stream("A A A", n=[1, 2, 1])) == []


def test_precedence_of_a_filter_is_that_of_the_tree() -> None:
    events = stream("A B A B", n=[1, 0, 0, 1])
    inside = seq(A, Filter(B, EventFilter("B", holds("n", "=", 1))))
    outside = Filter(seq(A, B), each("B", "n", "=", 1))
    assert found(inside, events) == found(outside, events)
