"""Which part of a pattern makes its deterministic automaton grow, told from the states it has come to."""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.cea import CEA
from estero.language.pattern import Pattern
from estero.language.render import shortened

SAMPLE = 5_000


def too_many_states(cea: CEA, subsets: Sequence[frozenset[int]], cap: int) -> str:
    """The text for users: the cap, and what to change."""
    return (
        f"the pattern needs more than {cap:,} automaton states{what_grows(cea, subsets)}: "
        "bound its iterations or make its predicates exclude one another"
    )


def what_grows(cea: CEA, subsets: Sequence[frozenset[int]]) -> str:
    """The clause that names the growing part, to stand in a sentence; empty where none is known."""
    part = growing_part(cea, subsets)
    return "" if part is None else f"; what grows is {shortened(part)}"


def growing_part(cea: CEA, subsets: Sequence[frozenset[int]]) -> Pattern | None:
    """The smallest part of the pattern that by itself is in most of those states; None where none is known.

    A deterministic state is a set of states of `cea`. A part grows if the sets differ in the states that
    were made for it: at least half as many differ there as differ at all. Looks at a sample.
    """
    if not cea.origins:
        return None
    sample = subsets[:: max(1, len(subsets) // SAMPLE)]
    states_of: dict[Pattern, set[int]] = {}
    for state, origin in enumerate(cea.origins):
        for part in origin:
            states_of.setdefault(part, set()).add(state)
    enough = len(set(sample)) / 2
    growing = [
        (len(states), part)
        for part, states in states_of.items()
        if len({subset & states for subset in sample}) >= enough
    ]
    return min(growing, key=lambda each: (each[0], len(list(each[1].walk()))))[1] if growing else None
