"""Writes the transitions of an automaton in the form that `estero.automaton` takes.

The automaton that is read back from them has the same complex events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from estero.automata.cea import CEA, FIRST, EventPredicate, Guard
from estero.automata.chain import Chain
from estero.automata.parted import parted
from estero.automata.pcea import PCEA
from estero.automata.reads import event_type
from estero.automata.residual import Hidden
from estero.automata.skeleton import compared_before
from estero.errors import EsteroError
from estero.language.syntax.parser import parse_condition
from estero.language.tree import expressions as e
from estero.language.tree.conditions import conjoined

Given = tuple[object, ...]
"""A transition as `estero.automaton` takes it: (state or states, event, labels, state[, comparison])."""


def as_given(machine: CEA | Chain | PCEA, steps: Mapping[Hidden, str]) -> tuple[Given, ...]:
    """The transitions of `machine`; `steps` are the distances of its hidden labels, as texts.

    The states of a CEA are named by their numbers. Raises `ValueError` if a condition has values that its
    text does not say.
    """
    if isinstance(machine, CEA):
        return tuple(_of_cea(machine, steps))
    return tuple(_of_runs(parted(machine) if isinstance(machine, PCEA) else machine))


# --------------------------------------------------------------------------------------------- events


def _of_cea(cea: CEA, steps: Mapping[Hidden, str]) -> Iterator[Given]:
    for transition in cea.transitions:
        event = _event_text(transition.guard, cea)
        if event is not None:
            given = str(transition.source), event, tuple(sorted(transition.labels)), str(transition.target)
            asked = ", ".join(steps[label] for label in sorted(transition.hidden) if label in steps)
            yield (*given, f"[{asked}]") if asked else given


def _event_text(guard: Guard, cea: CEA) -> str | None:
    """The text of the events that pass a guard; None if there are none."""
    present, absent = (
        [cea.predicates[bit] for bit in sorted(bits)] for bits in (guard.present, guard.absent)
    )
    place = ["START()"] * (FIRST in present) + ["NOT START()"] * (FIRST in absent)
    names = cea.types_of(guard)
    refused = [predicate for predicate in absent if predicate != FIRST]
    if names is None:
        return " AND ".join([*(f"NOT {predicate_text(predicate)}" for predicate in refused), *place]) or "*"
    condition = conjoined(predicate.condition for predicate in present if predicate.condition is not None)
    alternatives: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        own = [
            EventPredicate((name,), predicate.condition) for predicate in refused if name in predicate.types
        ]
        if not any(predicate.condition is None for predicate in own):
            asked = tuple(f"NOT {predicate_text(predicate)}" for predicate in own)
            alternatives.setdefault(asked, []).append(name)
    texts = [
        " AND ".join([predicate_text(EventPredicate(tuple(of), condition)), *asked])
        for asked, of in alternatives.items()
    ]
    if not texts:
        return None
    whole = texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"
    return " AND ".join([whole, *place])


def predicate_text(predicate: EventPredicate) -> str:
    """``A``, ``A[n > 3]`` or, of several types, ``(A[n > 3] OR B[n > 3])``.

    Raises `ValueError` if the condition has values that its text does not say.
    """
    condition = ""
    if predicate.condition is not None:
        condition = f"[{predicate.condition}]"
        if not _reads_back(predicate.condition):
            raise ValueError(f"the condition {predicate.condition} has values that its text does not say")
    texts = [f"{event_type(name)}{condition}" for name in predicate.types]
    return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"


def _reads_back(condition: e.Node) -> bool:
    try:
        return parse_condition(f"x[{condition}]") == e.EventFilter("x", condition)
    except EsteroError:
        return False


# ------------------------------------------------------------------------------------ what compares


def _of_runs(machine: Chain | PCEA) -> Iterator[Given]:
    for transition in machine.transitions:
        sources = compared_before(machine, transition)
        given: Given = (
            [machine.states[state] for state, _ in sources],
            predicate_text(machine.predicates[transition.predicate]),
            tuple(sorted(transition.labels)),
            machine.states[transition.target],
        )
        compared = conjoined(one for _, comparisons in sources for one in comparisons)
        yield given if compared is None else (*given, str(compared))
