"""The automaton of a query as a value: printed, drawn, and given back to `estero.automaton`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from estero.automata.cea import CEA
from estero.automata.chain import Chain
from estero.automata.lacking import lacking
from estero.automata.parted import parted
from estero.automata.pcea import PCEA
from estero.automata.residual import Hidden, Residual
from estero.automata.skeleton import skeleton
from estero.errors import legible
from estero.language.syntax.parser import parse_condition
from estero.language.tree.conditions import conjoined
from estero.language.tree.expressions import Node
from estero.language.tree.query import Consume, KeyBracket, limit_text, select_text
from estero.language.tree.whole import END_OF, START_OF, condition_as_written
from estero.plan.automaton_lines import automaton_lines, steps_of
from estero.plan.plan import Plan
from estero.system.cached_property import cached_property

if TYPE_CHECKING:
    from estero.theory.as_given import Given

Clauses = tuple[tuple[str, object], ...]

_MOST_LETTERS: Final = 100_000
"""The most characters of its text that a notebook shows."""


@dataclass(frozen=True)
class Automaton:
    """The automaton of a query: a CEA, a chain-CEA or a PCEA.

    `machine` is the automaton itself, and `filters` are the texts of the conditions that complex events are
    checked against afterwards. `transitions` and `clauses` together describe all of it:
    ``estero.automaton(value.transitions, **value.clauses)`` has the same answers. Two automata are equal if
    they have the same states, transitions, filters and clauses, whatever they show.
    """

    machine: CEA | Chain | PCEA
    filters: tuple[str, ...] = ()
    steps: tuple[tuple[Hidden, str], ...] = ()
    """The distances that transitions with these hidden labels require."""
    strategy: str = "ALL"
    beside: Clauses = ()
    """The clauses after the pattern, and the filters in terms of labels."""
    select: str = field(default="*", compare=False)
    unsaid: tuple[str, ...] = ()
    """The facts that neither transitions nor clauses state."""

    @classmethod
    def of(cls, plan: Plan) -> Automaton:
        """The automaton of a plan."""
        machine = plan.machine
        # Registers and ages are beside a CEA; a chain has its comparisons on its transitions.
        residuals = (*(plan.pushed if isinstance(machine, CEA) else ()), *plan.residuals)
        steps = steps_of(plan.pushed) if plan.forgets_by_age else {}
        left = [
            residual
            for residual in residuals
            if residual.place is None or Hidden(residual.place) not in steps
        ]
        conjunction = conjoined(
            condition for residual in left if (condition := _of_labels(residual)) is not None
        )
        condition = None if conjunction is None else _as_written(conjunction, plan)
        unsaid = [
            f"{plan.said(residual)}: no labels identify the events that it concerns"
            for residual in left
            if _of_labels(residual) is None
        ]
        if condition is not None and parse_condition(str(condition)) != condition:
            unsaid.append(f"{condition}: its text does not contain all of its values")
        marked = {label for transition in machine.transitions for label in transition.labels}
        unsaid += [
            f"{plan.said(residual)}: no transition marks an event as {variable}"
            for residual in left
            if _of_labels(residual) is not None
            for variable, _ in residual.bindings
            if variable not in marked and variable not in (START_OF, END_OF)
        ]
        unsaid += [
            f"{absence}: transitions cannot express the absence of events"
            for predicate in machine.predicates
            for absence in lacking(predicate)
        ]
        unsaid += [
            f"the attributes of {atom} are known only with events: query.automaton(events)"
            for atom in plan.by_place
        ]
        return cls(
            machine,
            tuple(map(plan.said, residuals)),
            tuple(steps.items()),
            plan.strategy.value + " DISJOINT" * plan.tree.disjoint,
            tuple(_clauses(plan, condition)),
            select_text(plan.tree),
            tuple(dict.fromkeys(unsaid)),
        )

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
        """The states in which runs begin; None if transitions from no state begin them."""
        machine = self.machine
        return tuple(map(str, sorted(machine.initial))) if isinstance(machine, CEA) else None

    @property
    def final(self) -> tuple[str, ...]:
        """The states in which runs accept, under the names that `transitions` use."""
        machine = parted(self.machine) if isinstance(self.machine, PCEA) else self.machine
        names = self.states if isinstance(machine, CEA) else machine.states
        return tuple(names[state] for state in sorted(machine.final))

    @property
    def transitions(self) -> tuple[Given, ...]:
        """The transitions as `estero.automaton` takes them, to be given with `clauses`.

        Raises ValueError, with the reason, if the two cannot describe the automaton in full.
        """
        self._refuse_unsaid()
        return self._given

    @property
    def clauses(self) -> dict[str, Any]:
        """The other arguments of `estero.automaton`: initial and final states, the clauses, filters.

        Raises ValueError as `transitions` does.
        """
        self._refuse_unsaid()
        select = {"select": self.select} if self.select != "*" else {}
        return {"initial": self.initial, "final": self.final, **select, **dict(self.beside)}

    @cached_property
    def _given(self) -> tuple[Given, ...]:
        from estero.theory.as_given import as_given

        return as_given(self.machine, dict(self.steps))

    def _refuse_unsaid(self) -> None:
        if self.unsaid:
            raise ValueError(f"transitions cannot say all that this automaton does: {self.unsaid[0]}")

    def __str__(self) -> str:
        machine = self.machine
        if isinstance(machine, CEA):
            bits = (f"b{bit}: {predicate}" for bit, predicate in enumerate(machine.predicates))
            lines = [*automaton_lines(machine, dict(self.steps)), *bits]
        else:
            lines = list(machine.lines())
        clauses = [_in_words(name, value) for name, value in self.beside if name != "filter"]
        if self.strategy != "ALL":
            clauses.insert(0, f"strategy: {self.strategy}")
        unsaid = [f"not in its transitions: {text}" for text in self.unsaid]
        lines = [*lines, *(f"filter: {text}" for text in self.filters), *clauses, *unsaid]
        return legible("\n".join(lines), lines=True)

    def svg(self) -> str:
        """The automaton as a picture."""
        from estero.plots.automaton import drawn_alone

        return drawn_alone(self._drawn)

    @property
    def _drawn(self) -> CEA:
        return self.machine if isinstance(self.machine, CEA) else skeleton(self.machine, comparing=True)

    def _repr_html_(self) -> str:
        from estero.markup.html import element, text
        from estero.markup.style import shown
        from estero.plots.automaton import drawn_inline

        states = len(self.states)
        head = element("p", element("b", self.kind), f" with {states:,} state{'' if states == 1 else 's'}")
        lines = element("pre", text(str(self), most=_MOST_LETTERS, lines=True))
        return shown(
            head,
            drawn_inline(self._drawn),
            element("details", element("summary", "Transitions"), lines, open=""),
        )


def _of_labels(residual: Residual) -> Node | None:
    """The condition of a filter on events with labels; None for one on other events, or on parts."""
    asks = isinstance(residual.condition, Node) and residual.place is None and residual.nearby is None
    by_label = all(variable == key for variable, key in residual.bindings)
    return residual.condition if asks and by_label and isinstance(residual.condition, Node) else None


def _as_written(condition: Node, plan: Plan) -> Node:
    """The filter with the names of values of the whole complex event."""
    keys = [bracket.alternatives for bracket in plan.tree.partition_by]
    return condition_as_written(condition, plan.classification.schema.time, keys)


def _in_words(name: str, value: object) -> str:
    if name == "partition_by":
        value = ", ".join(map(str, map(KeyBracket, cast(tuple[tuple[str, ...], ...], value))))
    elif isinstance(value, tuple):
        value = ", ".join(value)
    return f"{name.replace('_', ' ')}: {value}"


def _clauses(plan: Plan, condition: Node | None) -> Iterator[tuple[str, object]]:
    """The clauses beside the transitions, as `estero.automaton` takes them."""
    tree = plan.tree
    if isinstance(plan.machine, Chain) and plan.machine.anchored:
        yield "anchored", True
    if tree.streams:
        yield "streams", tree.streams
    if plan.classification.keys:
        yield "partition_by", plan.classification.keys
    if tree.window is not None:
        yield "within", str(tree.window)
    if tree.consume is not Consume.NONE:
        yield "consume_by", tree.consume.value
    if tree.limit is not None:
        yield "limit", limit_text(tree.limit, tree.per)
    if condition is not None:
        yield "filter", str(condition)
    if plan.distinct:
        yield "distinct", "marks"
