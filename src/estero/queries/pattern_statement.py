"""Statements in CEQL: a pattern, or an automaton in its place, and the clauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from estero.automata.cea import CEA
from estero.errors import QueryError
from estero.language.builder.queries import Built, tree_of
from estero.language.check.queries import check_query
from estero.language.syntax.languages import not_ceql
from estero.language.syntax.parser import parse_query
from estero.language.syntax.recover import read
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Schema, type_names
from estero.plan.automaton import automaton_lines
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.statement import Statement, raise_first


@dataclass(frozen=True)
class PatternStatement(Statement):
    """What a query in CEQL says, which finds what its pattern finds.

    It is not whole where the pattern could not be read, and something else is in its place.
    """

    made_by = "query"
    is_whole: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return str(self.tree)

    def errors(self, schema: Schema | None = None, type_column: str | None = None) -> list[QueryError]:
        del type_column
        return check_query(self.tree, schema)

    def plan(self, layout: Layout) -> Plan:
        return plan_of(self.tree, layout)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        """For each kind of event that the pattern reads, the names of its types; none if it is not whole."""
        atoms = dict.fromkeys(node for node in self.tree.pattern.walk() if isinstance(node, EventType))
        return [type_names(atom, self.tree.streams) for atom in atoms] if self.is_whole else ()


@dataclass(frozen=True)
class AutomatonStatement(PatternStatement):
    """What an automaton says that was given directly; it prints as a query that finds the same.

    Where that would be too long, it prints as a list of the automaton's transitions, and `reason` says so.
    """

    automaton: CEA = field(kw_only=True)
    reason: str | None = field(default=None, compare=False, kw_only=True)

    def __str__(self) -> str:
        if self.reason is None:
            return str(self.tree)
        return "\n".join(f"-- {line}" for line in (self.reason, *automaton_lines(self.automaton)))

    def plan(self, layout: Layout) -> Plan:
        return plan_of(self.tree, layout, automaton=self.automaton, text=str(self))


def pattern_statement(text: str | Built) -> PatternStatement:
    """The statement of a CEQL text, or of what the builder has made; raises `QueryError` as `query` does."""
    if not isinstance(text, str):
        text = str(tree_of(text))
    other = not_ceql(text)
    if other is not None:
        raise other
    reading = read(text)
    if reading.tree is None:
        raise_first(reading.errors)
    else:
        raise_first(reading.with_checks(check_query(reading.tree, None)))
    return PatternStatement(reading.tree or parse_query(text))
