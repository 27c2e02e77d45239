"""Sequences and samples by hand: events are letters, which say the stages that they satisfy, with keys."""

from __future__ import annotations

import pytest

from estero.reference.event_sequences import (
    EventSequence,
    Key,
    Places,
    Stage,
    evaluate_sequence,
    keys_of,
    may_be_given,
    sample_keys,
    samples_of,
)


def found(pattern: str, events: str, *, span: int | None = None, until: str = "") -> list[Places]:
    """The results over events like ``Ax Bx By``, one a second, each of which is a letter and its key.

    The pattern is the letters of the stages; ``!`` is before those that must be missing.
    """
    read = [(word[0], (word[1:],)) for word in events.split()]

    def stage(letter: str, *, missing: bool = False) -> Stage:
        return Stage([[key] if name == letter else [] for name, key in read], missing)

    stages = [stage(word[-1], missing=word[0] == "!") for word in pattern.split()]
    asked = EventSequence(stages, span, stage(until) if until else None)
    return evaluate_sequence(asked, list(range(len(read))))


def test_an_event_takes_the_newest_candidate_and_older_ones_are_dropped() -> None:
    assert found("A B", "A A B B") == [(1, 2)]


def test_a_candidate_that_is_taken_moves_on() -> None:
    assert found("A B C", "A B A B C C") == [(2, 3, 4)]
    assert found("A B C", "A A B C B C") == [(1, 2, 3)]


def test_an_event_is_tried_at_later_stages_first() -> None:
    assert found("A A", "A A A") == [(0, 1), (1, 2)]
    assert found("A A A", "A A A A") == [(0, 1, 2), (1, 2, 3)]


def test_each_key_has_candidates_of_its_own() -> None:
    assert found("A B", "Ax Ay Bx By Bx") == [(0, 2), (1, 3)]


def test_the_span_counts_its_end_and_drops_a_candidate_that_is_too_old() -> None:
    assert found("A B", "A C B", span=2) == [(0, 2)]
    assert found("A B", "A C B", span=1) == []


def test_until_drops_candidates_from_their_last_event_on() -> None:
    assert found("A B", "Ax Cx Bx Ay By", until="C") == [(3, 4)]
    assert found("A B", "A B", until="A") == []
    assert found("A B", "A B A", until="B") == [(0, 1)]


def test_what_is_missing_between_stages_is_of_the_same_key() -> None:
    assert found("A !C B", "Ax Cx Bx Ay Cx By", span=9) == [(3, None, 5)]
    assert found("A !A B", "A A B", span=9) == [(1, None, 2)]


@pytest.mark.parametrize(("span", "result"), [(2, [(None, 2, 3)]), (3, [])])
def test_what_is_missing_in_front_counts_up_to_the_last_stage(span: int, result: list[Places]) -> None:
    assert found("!C A B", "C D A B", span=span) == result


@pytest.mark.parametrize(("span", "result"), [(2, [(0, 1, None)]), (3, [])])
def test_what_is_missing_behind_counts_from_the_first_stage(span: int, result: list[Places]) -> None:
    assert found("A B !C", "A B D C", span=span) == result


def test_missing_at_both_ends_takes_two_events_that_are_near_each_other() -> None:
    assert found("!C A !C", "C A C", span=1) == [(None, 1, None)]
    assert found("!C A !C", "C A C", span=2) == []
    assert found("!C A !C", "C A D", span=2) == [(None, 1, None)]


def test_what_is_missing_at_an_end_needs_a_span() -> None:
    with pytest.raises(ValueError, match="needs a span"):
        found("A !C", "A")


def test_results_come_in_the_order_of_their_last_events() -> None:
    assert found("A B", "Ax Ay By Bx") == [(1, 2), (0, 3)]


def test_lists_give_every_combination_and_nulls_count_only_alone() -> None:
    assert keys_of([["a", None, "b", "a"], ["c"]], [True, False]) == [("a", "c"), ("b", "c")]
    assert keys_of([[None], 1], [True, False]) == [(None, 1)]
    assert keys_of([[], 1], [False, False]) == []


def test_samples_come_as_events_complete_them_and_in_the_order_of_conditions() -> None:
    x: Key = ("x",)
    y: Key = ("y",)
    both, one = Stage([[x], [x, y], [y], [x]]), Stage([[x], [], [], [x]])
    assert sample_keys([both, one]) == [x, y]
    assert list(samples_of([both, one], x)) == [(1, 0), (0, 3), (1, 3), (3, 0)]
    assert list(samples_of([both, one], y)) == []
    assert list(samples_of([one, one, both], x)) == [(0, 3, 1), (3, 0, 1)]


def test_an_event_is_in_several_samples_of_its_key_and_the_first_one_is_free() -> None:
    x: Key = ("x",)
    one, other = Stage([[x], [x], [], [x]]), Stage([[], [], [x], []])
    assert may_be_given([one, other], x, 1) == [[(0, 2)], [(1, 2)]]
    assert may_be_given([one, other], x, 3) == [[(0, 2), (1, 2), (3, 2)], [(1, 2), (0, 2), (3, 2)]]
    assert may_be_given([one, one, one, one], x, 3) == [[]]
