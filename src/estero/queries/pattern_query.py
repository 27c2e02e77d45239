"""Queries in CEQL: a pattern, or an automaton in its place, and the clauses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from estero.automata.cea import CEA
from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.tree.pattern import EventType
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema, type_names
from estero.plan.automaton import automaton_lines
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.query import Query


class PatternQuery(Query):
    """A query that finds what its pattern finds.

    It is not whole where the pattern could not be read, and something else is in its place.
    """

    _made_by = "query"

    def __init__(self, tree: QueryTree, *, is_whole: bool = True) -> None:
        self.tree = tree
        self._is_whole = is_whole

    def __str__(self) -> str:
        return str(self.tree)

    def _said(self) -> Hashable:
        return self.tree

    def errors(self, schema: Schema | None = None, type_column: str | None = None) -> list[QueryError]:
        """Everything in which the query does not fit a schema; without one, whatever the events are."""
        del type_column
        return check_query(self.tree, schema)

    def _planned(self, layout: Layout) -> Plan:
        return plan_of(self.tree, layout)

    def _type_names(self) -> Sequence[tuple[str, ...]]:
        atoms = dict.fromkeys(node for node in self.tree.pattern.walk() if isinstance(node, EventType))
        return [type_names(atom, self.tree.streams) for atom in atoms] if self._is_whole else ()


class AutomatonQuery(PatternQuery):
    """A query that runs an automaton which was given directly; it prints as a query that finds the same.

    Where that would be too long, it prints as a list of the automaton's transitions, and `reason` says so.
    """

    def __init__(self, tree: QueryTree, automaton: CEA, reason: str | None = None) -> None:
        super().__init__(tree)
        self.automaton = automaton
        self.reason = reason

    def __str__(self) -> str:
        if self.reason is None:
            return str(self.tree)
        return "\n".join(f"-- {line}" for line in (self.reason, *automaton_lines(self.automaton)))

    def _said(self) -> Hashable:
        return self.tree, self.automaton

    def _planned(self, layout: Layout) -> Plan:
        return plan_of(self.tree, layout, automaton=self.automaton, text=str(self))
