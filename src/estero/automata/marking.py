"""Which events the runs of an automaton begin with, mark, skip and end with."""

from __future__ import annotations

from estero.automata.cea import CEA, NO_LABELS
from estero.automata.exploration import leaving, reached


def has_contiguity(automaton: CEA) -> bool:
    """Whether an event that satisfies no predicate can matter: some state does not simply skip it."""
    waiting = {
        transition.source
        for transition in automaton.transitions
        if transition.source == transition.target
        and not transition.guard.present
        and transition.labels == NO_LABELS
    }
    return any(
        state not in waiting
        for state in range(automaton.states)
        if state not in automaton.initial and state not in automaton.final
    )


def ends_on_anything(automaton: CEA) -> bool:
    """Whether a run may begin with, end with or mark an event that satisfies no predicate."""
    return any(
        not transition.guard.present
        and (
            transition.labels
            or transition.source in automaton.initial
            or transition.target in automaton.final
        )
        for transition in automaton.transitions
    )


def marks_several(automaton: CEA) -> bool:
    """Whether some run marks more than one event."""
    leaves = leaving(automaton.transitions)
    marked = {transition.target for transition in automaton.transitions if transition.labels}
    after = reached(marked, lambda state: [transition.target for transition in leaves[state]])
    return any(transition.labels for state in after for transition in leaves[state])


def marks_its_start(automaton: CEA) -> bool:
    """Whether every run marks, with a visible label, the event with which it begins."""
    return all(
        transition.labels for transition in automaton.transitions if transition.source in automaton.initial
    )
