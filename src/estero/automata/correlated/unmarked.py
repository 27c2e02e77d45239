"""Whether what a run finds depends on the events that it marks alone, or on others in between as well."""

from __future__ import annotations

from estero.automata.cea import CEA, FIRST, Transition


def why_others_matter(automaton: CEA) -> str:
    """Why a run is more than the sequence of the events it marks, as a phrase; empty where it is not.

    Where it is empty, every state between the first and the last marked event passes over any event, and
    nothing else is read without being marked.
    """
    if FIRST in automaton.predicates:
        return "it asks which event is the first of the stream"
    waiting = {each.source for each in automaton.transitions if _waits(each)}
    entered = {each.target for each in automaton.transitions}
    if automaton.initial & (waiting | entered):
        return "a run can begin in a state that others pass through"
    for each in automaton.transitions:
        if not each.labels and not _waits(each):
            if each.source == each.target and each.guard.absent:
                return "an event that must be absent is looked for"
            return "an event is read that is not shown"
    if any(state not in waiting for state in entered - automaton.final):
        return "some events have to follow one another at once"
    return ""


def _waits(transition: Transition) -> bool:
    """Whether it passes over any event and remembers nothing."""
    return (
        transition.source == transition.target
        and not (transition.guard.present or transition.guard.absent)
        and not (transition.labels or transition.hidden)
    )
