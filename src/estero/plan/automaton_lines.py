"""The states, transitions and labels of an automaton in words, as explanations show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from estero.automata.cea import CEA, LabelSet, Transition
from estero.automata.residual import Apartness, Hidden, HiddenSet, Residual


def automaton_lines(automaton: CEA, steps: Mapping[Hidden, str]) -> Iterator[str]:
    """The states and transitions of an automaton, one per line; `steps` are labels whose age is checked."""
    begins, accepts = _listed(sorted(automaton.initial)), _listed(sorted(automaton.final))
    yield f"{automaton.states} states; a run begins in {begins} and accepts in {accepts}"
    yield from (_transition(transition) for transition in automaton.transitions)
    for label, distance in steps.items():
        yield f"({label}): the required distance from the event marked before: [{distance}]"
    if any(transition.hidden - steps.keys() for transition in automaton.transitions):
        yield "(#…): hidden labels, which group events for filters and are not part of answers"


def steps_of(residuals: Iterable[Residual]) -> dict[Hidden, str]:
    """The labels whose age (the time since a run marked one) transitions check, with the required ages."""
    return {
        Hidden(residual.place): ", ".join(map(str, residual.condition.distances))
        for residual in residuals
        if isinstance(residual.condition, Apartness) and residual.place is not None
    }


def _transition(transition: Transition) -> str:
    guard = " and ".join(
        [
            *(f"b{bit}" for bit in sorted(transition.guard.present)),
            *(f"not b{bit}" for bit in sorted(transition.guard.absent)),
        ]
    )
    marks = f"mark {_listed(sorted(transition.labels))}" if transition.labels else "pass over"
    hidden = f" ({_listed(sorted(transition.hidden))})" if transition.hidden else ""
    return f"{transition.source} → {transition.target}  on {guard or 'any event'}: {marks}{hidden}"


def label_lines(automaton: CEA) -> Iterator[str]:
    """The sets of labels with which events are marked, by number."""
    marks: dict[tuple[LabelSet, HiddenSet], None] = {
        (transition.labels, transition.hidden): None
        for transition in automaton.transitions
        if transition.labels or transition.hidden
    }
    for number, (labels, hidden) in enumerate(marks):
        shown = _listed(sorted(labels)) or "none"
        yield f"{number}  {shown}{f' ({_listed(sorted(hidden))})' if hidden else ''}"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
