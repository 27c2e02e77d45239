"""Hidden labels that nobody needs any more, once it is decided what registers do.

A hidden label that is on the same transitions as a label of the answer says nothing new, and registers can
go by the other. Without hidden labels every complex event is found once, and nothing has to be sifted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from estero.automata.cea import CEA
from estero.automata.registers import RegisterProgram, carries
from estero.automata.residual import ALL_MARKED, Hidden, Key, Residual


def drop_hidden(
    automaton: CEA, program: RegisterProgram | None, residuals: Iterable[Residual] = ()
) -> tuple[CEA, RegisterProgram | None]:
    """The automaton with those hidden labels only that `program` or `residuals` need, and the program for it.

    `residuals` are those that are left, and keep their labels.
    """
    needed = needed_hidden(residuals)
    if program is not None:
        hidden = {step.key for step in program.steps if isinstance(step.key, Hidden)} - needed
        shown: dict[Key, Key] = {key: _shown(automaton, key) for key in hidden}
        steps = [replace(step, key=shown.get(step.key, step.key)) for step in program.steps]
        program = replace(program, steps=tuple(dict.fromkeys(steps)))
        needed |= {step.key for step in program.steps if isinstance(step.key, Hidden)}
    transitions = (replace(each, hidden=each.hidden & needed) for each in automaton.transitions)
    return replace(automaton, transitions=tuple(dict.fromkeys(transitions))), program


def needed_hidden(residuals: Iterable[Residual]) -> set[Hidden]:
    """The hidden labels of the residuals' variables, and those that say where their places begin."""
    needed: set[Hidden] = set()
    for residual in residuals:
        if residual.place is not None:
            needed.add(Hidden(residual.place))
        for _, key in residual.bindings:
            if isinstance(key, Hidden):
                needed |= {key, Hidden(key.place)}
    return needed


def _shown(automaton: CEA, hidden: Hidden) -> Key:
    """A label of the answer that is on the same transitions, or else `hidden` itself."""
    labels = sorted({label for each in automaton.transitions for label in each.labels})
    for label in (*labels, ALL_MARKED):
        if all(
            carries(each.labels, each.hidden, label) == (hidden in each.hidden)
            for each in automaton.transitions
        ):
            return label
    return hidden
