"""Inclusion by classes of sets of states: the differences that antichains find, in fewer steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.automata.cea import CEA
from estero.automata.compile.compile_pattern import compile_pattern
from estero.language.tree.pattern import Pattern, Start
from estero.theory.inclusion import difference
from estero.theory.merging import difference_by_classes
from estero.theory.words import Letter
from strategies.patterns import patterns


def letters_of(ours: CEA, theirs: CEA) -> list[Letter]:
    """Events with each combination of the first bits of either, the rest of which are not set."""
    bits = 1 << min(4, max(len(ours.predicates), len(theirs.predicates)))
    return [Letter(each % (1 << len(ours.predicates)), each) for each in range(bits)]


@given(patterns(), patterns(), st.booleans(), st.booleans(), st.one_of(st.none(), st.integers(1, 4)))
def test_classes_find_differences_as_short_as_antichains_do(
    one: Pattern, other: Pattern, first: bool, same: bool, longest: int | None
) -> None:
    ours = compile_pattern(Start(one) if first else one).automaton
    theirs = compile_pattern(one if same else other).automaton
    letters = letters_of(ours, theirs)
    expected = difference(ours, theirs, letters, first=first, longest=longest)
    found = difference_by_classes(ours, theirs, letters, first=first, longest=longest, limit=10_000)
    assert (found is None) == (expected is None)
    assert found is None or expected is None or len(found) == len(expected)


def grown(rounds: int, letters: str = "A OR B") -> str:
    return f"SELECT * WHERE ({letters}):+ : A : ({letters}):{{{rounds}}}"


def test_many_sets_of_states_are_compared() -> None:
    assert estero.equivalent(grown(13), grown(13, "B OR A"))
    found = estero.missing(grown(13), f"{grown(13)} : A")
    assert found is not None
    assert len(found.events) == 16


def test_a_limit_ends_what_would_take_long() -> None:
    with pytest.raises(estero.LimitExceeded) as caught:
        estero.equivalent(grown(14), grown(14, "B OR A"), limit=2_000)
    assert str(caught.value) == (
        "comparing the two patterns takes more than 2,000 steps: bound the iterations of the patterns, "
        "compare parts of them, or give a larger limit="
    )
