"""Conjunctive queries: events that share values, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from estero.errors import QueryError
from estero.language.check.conjunctive import check_conjunctive
from estero.language.syntax.languages import not_conjunctive
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.renaming import with_columns
from estero.language.tree.schema import Schema, type_names
from estero.plan.joins import as_pattern_query, plan_conjunctive
from estero.plan.plan import Layout, Plan
from estero.queries.parameters import bound, names_of, refuse_open
from estero.queries.statement import Statement, raise_first


@dataclass(frozen=True)
class ConjunctiveStatement(Statement):
    """The statement of a conjunctive query.

    `conjunctive` is its tree. `tree` is that of a pattern with the same types, labels and clauses, which does
    not represent the values that atoms share.
    """

    made_by = "conjunctive"
    conjunctive: ConjunctiveTree

    @classmethod
    def of(cls, text: str) -> ConjunctiveStatement:
        """The statement of a text; only its form is checked."""
        tree = parse_conjunctive(text)
        return cls(as_pattern_query(tree), tree)

    def __str__(self) -> str:
        return str(self.conjunctive)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        missing = [] if schema is None else refuse_open(self.conjunctive, self.conjunctive.text)
        return missing or check_conjunctive(self.conjunctive, schema, type_column)

    @property
    def parameters(self) -> tuple[str, ...]:
        return names_of(self.conjunctive)

    def bound(self, values: Mapping[str, object]) -> ConjunctiveStatement:
        tree = bound(self.conjunctive, values, self.conjunctive.text)
        statement = ConjunctiveStatement(as_pattern_query(tree), tree, distinct=self.distinct)
        raise_first(statement.errors())
        return statement

    def _with_exact_names(self, exact: Mapping[str, str]) -> ConjunctiveStatement:
        return replace(self, conjunctive=with_columns(self.conjunctive, exact))

    def _plan(self, layout: Layout) -> Plan:
        raise_first(refuse_open(self.conjunctive, self.conjunctive.text))
        return plan_conjunctive(self.conjunctive, layout)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        tree = self.conjunctive
        return [
            type_names(name, tree.streams) for name in dict.fromkeys(atom.relation for atom in tree.atoms)
        ]


def conjunctive_statement(text: str) -> ConjunctiveStatement:
    """The statement of a text; raises `QueryError` as `conjunctive` does."""
    other = not_conjunctive(text)
    if other is not None:
        raise other
    statement = ConjunctiveStatement.of(text)
    raise_first(statement.errors())
    return statement
