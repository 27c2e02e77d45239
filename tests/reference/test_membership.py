"""The reference against a second reading of the same table, on all complex events that could be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from hypothesis import assume, given

from estero.language.tree.pattern import Pattern
from estero.language.tree.selection import label_types
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern
from reference.membership import Marks, belongs
from strategies.patterns import patterns, streams


def all_marks(labels: list[str], size: int) -> Iterator[Marks]:
    """Every way to mark some of the first `size` positions with some of the labels."""
    subsets = [each for count in range(len(labels) + 1) for each in combinations(labels, count)]
    for chosen in product(subsets, repeat=size):
        yield frozenset((label, position) for position, some in enumerate(chosen) for label in some)


def marks_of(found: ComplexEvent) -> Marks:
    return frozenset((label, position) for label, positions in found.labels for position in positions)


@given(patterns(), streams(max_size=5))
def test_the_reference_finds_what_belongs_and_nothing_else(pattern: Pattern, events: list[Event]) -> None:
    labels = list(label_types(pattern))
    assume(len(labels) * len(events) <= 10)
    belonging = {
        marks for marks in all_marks(labels, len(events)) if marks and belongs(marks, pattern, events)
    }
    found = evaluate_pattern(pattern, events)
    assert {marks_of(one) for one in found} == belonging
    assert all((one.start, one.end) == (min(one.support), max(one.support)) for one in found)
