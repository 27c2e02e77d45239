"""The part of a pattern that makes its deterministic automaton grow, found by looking at its states."""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.cea import CEA
from estero.errors import LimitExceeded
from estero.language.tree.pattern import (
    All,
    Conjunction,
    Filter,
    Iteration,
    Optional,
    Pattern,
    Unless,
    shortened,
)
from estero.language.tree.pattern import Sequence as Succession

SAMPLE = 5_000
COMPARED = 2_000_000
"""The largest number of pairs of a state and a part that are compared."""


def too_large(cap: int, of: str, inside: Sequence[Pattern]) -> LimitExceeded:
    """An error: the automaton needs more than `cap` states or transitions (`of`).

    `inside` are the parts of the pattern that are under construction, the smallest one last.
    """
    part = f"; what grows is {shortened(inside[-1])}" if inside else ""
    remedy = _remedy(inside[-1]) if inside else "give its iterations smaller bounds"
    return LimitExceeded(f"the pattern needs more than {cap:,} automaton {of}{part}: {remedy}")


def _remedy(part: Pattern) -> str:
    match part:
        case All():
            return "join fewer parts by ALL, or write those whose order is known as a sequence, with ;"
        case Conjunction():
            return "join fewer parts by AND"
        case Unless():
            return "forbid less at once: one event rather than a sequence"
        case Filter():
            return "use fewer ORs between different variables, or one query for each case"
        case Iteration():
            return "give its iterations smaller bounds"
        case Succession(parts) if any(isinstance(step, Optional) for step in parts):
            return "make fewer of its parts optional"
        case _:
            return "write fewer parts, or several queries"


def too_many_states(cea: CEA, subsets: Sequence[frozenset[int]], cap: int) -> str:
    """The message that the automaton has too many states, with what to change in the pattern."""
    return (
        f"the pattern needs more than {cap:,} automaton states{what_grows(cea, subsets)}: "
        "bound its iterations or make its predicates exclude one another"
    )


def what_grows(cea: CEA, subsets: Sequence[frozenset[int]]) -> str:
    """A clause of a sentence that names the growing part; empty if it is not known."""
    part = growing_part(cea, subsets)
    return "" if part is None else f"; what grows is {shortened(part)}"


def growing_part(cea: CEA, subsets: Sequence[frozenset[int]]) -> Pattern | None:
    """The smallest part of the pattern that alone accounts for most of the subsets; None if it is not known.

    A deterministic state is a set of states of `cea`. A part grows if the sets, restricted to the states that
    were made for it, are at least half as many as the sets themselves. A sample of the sets is examined.
    """
    if not cea.origins:
        return None
    # By id, as hashing a part walks all of its nodes.
    parts = {id(part): part for origin in cea.origins for part in origin}
    states_of: dict[int, set[int]] = {number: set() for number in parts}
    for state, origin in enumerate(cea.origins):
        for part in origin:
            states_of[id(part)].add(state)
    most = min(SAMPLE, max(1, COMPARED // len(parts)))
    sample = subsets[:: max(1, len(subsets) // most)]
    enough = len(set(sample)) / 2
    growing = [
        (len(states), parts[number])
        for number, states in states_of.items()
        if len({subset & states for subset in sample}) >= enough
    ]
    smallest = min(growing, key=lambda sized: (sized[0], len(list(sized[1].walk()))), default=None)
    return None if smallest is None else smallest[1]
