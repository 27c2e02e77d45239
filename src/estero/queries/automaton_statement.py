"""Statements whose automaton was given directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from estero.automata.cea import CEA, with_hidden
from estero.automata.chain import Chain
from estero.automata.compile.compile_pattern import Compiled
from estero.automata.compile.products import intervals_only
from estero.automata.compile.residual_filters import beside_automaton
from estero.automata.pcea import PCEA
from estero.automata.residual import Residual
from estero.automata.skeleton import pairs_compared, skeleton
from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.tree.pattern import Filter
from estero.language.tree.query import QueryTree, Strategy, clauses_behind
from estero.language.tree.renaming import with_columns
from estero.language.tree.schema import Schema
from estero.plan.automaton_lines import automaton_lines, steps_of
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.parameters import bound, refuse_open
from estero.queries.pattern_statement import PatternStatement
from estero.queries.statement import raise_first


@dataclass(frozen=True)
class AutomatonStatement(PatternStatement):
    """The statement of an automaton that was given directly; it prints as an equivalent query in CEQL.

    If there is none, or it would be too long, it prints as a list of the automaton's transitions, and
    `reason` gives the reason. `residuals` are distances that its transitions require. If it is `filtered`,
    the filter around the pattern stands beside the automaton.
    """

    automaton: CEA | Chain | PCEA = field(kw_only=True)
    residuals: tuple[Residual, ...] = field(default=(), kw_only=True)
    filtered: bool = field(default=False, kw_only=True)
    reason: str | None = field(default=None, compare=False, kw_only=True)

    def __str__(self) -> str:
        if self.reason is None:
            return str(self.tree)
        machine = self.automaton
        if isinstance(machine, CEA):
            steps = steps_of(self.residuals)
            lines = automaton_lines(with_hidden(machine, frozenset(steps)), steps)
        else:
            lines = machine.lines()
        filtered = self.tree.pattern if self.filtered else None
        beside = [f"FILTER {filtered.condition}"] if isinstance(filtered, Filter) else []
        clauses = " ".join([*beside, *filter(None, [clauses_behind(self.tree)])])
        return "\n".join(f"-- {line}" for line in filter(None, (self.reason, *lines, clauses)))

    @property
    def _whole(self) -> object:
        return (self.tree, self.automaton, self.residuals)

    def bound(self, values: Mapping[str, object]) -> AutomatonStatement:
        whole = (self.tree, self.automaton, self.residuals)
        tree, machine, residuals = bound(whole, values, self.tree.text)
        raise_first(check_query(tree))
        statement = replace(self, tree=tree, automaton=machine, residuals=residuals)
        if isinstance(machine, PCEA) and not statement.parameters:
            from estero.theory.ambiguity import refuse_ambiguous

            refuse_ambiguous(machine)
        return statement

    def _with_exact_names(self, exact: Mapping[str, str]) -> AutomatonStatement:
        whole = (self.tree, self.automaton, self.residuals)
        tree, machine, residuals = with_columns(whole, exact)
        return replace(self, tree=tree, automaton=machine, residuals=residuals)

    def compiled(self) -> Compiled:
        """The automaton that was given, without comparisons and the gathering of runs."""
        raise_first(refuse_open(self._whole, self.tree.text))
        machine = self.automaton if isinstance(self.automaton, CEA) else skeleton(self.automaton)
        interval = self.tree.strategy is Strategy.STRICT
        left = (*self.residuals, *(beside_automaton(self.tree.pattern) if self.filtered else ()))
        return Compiled(intervals_only(machine) if interval else machine, left)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        """All errors of the query for a schema; without one, those for any events."""
        errors = super()._errors(schema, type_column)
        if schema is None or isinstance(self.automaton, CEA) or self.reason is None:
            return errors  # a text contains the comparisons
        unfit: dict[str, QueryError] = {}
        for pair in pairs_compared(self.automaton):
            for error in check_query(QueryTree(pair), schema):
                message = f"transitions compare {pair.condition}: {error.message}"
                unfit.setdefault(message, QueryError(message, expected=error.expected, hint=error.hint))
        return [*errors, *unfit.values()]

    def _plan(self, layout: Layout) -> Plan:
        raise_first(refuse_open(self._whole, self.tree.text))
        return plan_of(
            self.tree,
            layout,
            automaton=self.automaton,
            residuals=self.residuals,
            filtered=self.filtered,
            text=str(self),
        )
