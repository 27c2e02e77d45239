"""The automaton of a query as a value: printed, drawn, and given back to `estero.automaton`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from estero.automata.cea import CEA, EventPredicate, Guard
from estero.automata.chain import Chain
from estero.automata.formulas.chain_pattern import compared_before, skeleton
from estero.automata.pcea import PCEA
from estero.language.tree.words import quoted
from estero.plan.automaton import automaton_lines

Given = tuple[object, ...]
"""A transition as `estero.automaton` takes it: (state or states, event, labels, state[, comparison])."""


@dataclass(frozen=True)
class Automaton:
    """What finds the complex events of a query: a CEA, a chain-CEA or a PCEA.

    `machine` is the automaton itself. `filters` are the conditions that it leaves to a filter of whole
    complex events, as texts. Two of them are equal if they have the same states, transitions and filters.
    """

    machine: CEA | Chain | PCEA
    filters: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``"CEA"``, ``"chain-CEA"`` or ``"PCEA"``."""
        return {CEA: "CEA", Chain: "chain-CEA", PCEA: "PCEA"}[type(self.machine)]

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states, in their order; those of a chain-CEA or PCEA without the beginning."""
        machine = self.machine
        return tuple(map(str, range(machine.states))) if isinstance(machine, CEA) else machine.states

    @property
    def initial(self) -> tuple[str, ...] | None:
        """The states in which runs begin; None where transitions from no state begin them."""
        machine = self.machine
        return tuple(map(str, sorted(machine.initial))) if isinstance(machine, CEA) else None

    @property
    def final(self) -> tuple[str, ...]:
        """The states in which runs accept."""
        return tuple(self.states[state] for state in sorted(self.machine.final))

    @property
    def transitions(self) -> tuple[Given, ...]:
        """The transitions as `estero.automaton` takes them."""
        return tuple(self._given())

    def _given(self) -> Iterator[Given]:
        machine = self.machine
        if isinstance(machine, CEA):
            for each in machine.transitions:
                event = _event_text(each.guard, machine)
                yield str(each.source), event, tuple(sorted(each.labels)), str(each.target)
            return
        for step in machine.transitions:
            sources = compared_before(machine, step)
            states = [machine.states[state] for state, _ in sources]
            given: Given = (
                states,
                _predicate_text(machine.predicates[step.predicate]),
                tuple(sorted(step.labels)),
                machine.states[step.target],
            )
            comparisons = " AND ".join(str(one) for _, compared in sources for one in compared)
            yield (*given, comparisons) if comparisons else given

    def __str__(self) -> str:
        machine = self.machine
        lines = automaton_lines(machine) if isinstance(machine, CEA) else machine.lines()
        return "\n".join([*lines, *(f"filter: {each}" for each in self.filters)])

    def svg(self) -> str:
        """The automaton as a picture."""
        from estero.plots import plot_automaton

        machine = self.machine
        return plot_automaton(
            machine if isinstance(machine, CEA) else skeleton(machine, comparing=True)
        ).svg()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.svg()}"


def _event_text(guard: Guard, cea: CEA) -> str:
    texts = [_predicate_text(cea.predicates[bit]) for bit in sorted(guard.present)]
    texts += [f"NOT {_predicate_text(cea.predicates[bit])}" for bit in sorted(guard.absent)]
    return " AND ".join(texts) or "*"


def _predicate_text(predicate: EventPredicate) -> str:
    """``A``, ``A[n > 3]`` or, of several types, ``(A[n > 3] OR B[n > 3])``."""
    condition = "" if predicate.condition is None else f"[{predicate.condition}]"
    texts = [f"{'>'.join(map(quoted, name.split('>', 1)))}{condition}" for name in predicate.types]
    return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"
