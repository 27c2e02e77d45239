"""Conjunctive queries as users hold them: checked, explained and run, as other queries are."""

from __future__ import annotations

from typing import Self

from estero.errors import QueryError
from estero.language.check.conjunctive import check_conjunctive
from estero.language.syntax.languages import not_conjunctive
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout
from estero.plan.plan_joins import AnyPlan, as_pattern_query, plan_conjunctive
from estero.queries.join_explanation import JoinExplanation
from estero.queries.query import Query, raise_all

__all__ = ["ConjunctiveQuery", "JoinExplanation", "conjunctive"]


def conjunctive(query: str | ConjunctiveTree) -> ConjunctiveQuery:
    """The full hierarchical conjunctive query of a text, or of its tree.

    ``Q(x, y) <- T(x), S(x, y), R(k: x, l: y) AS r WITHIN 10 MINUTES``: events of the types T, S and R, in
    any order, that agree on the values of the variables. An argument of an atom is a variable, a constant,
    or ``_`` for what does not matter; the arguments stand for the attributes of the type in the order of its
    table, without the columns of type and time, or for those that are named. Where all types share one
    table, the last attributes may be left out; ``T()`` is any event of type T. The head lists all variables.
    The clauses are those of CEQL: FROM, WITHIN and LIMIT, in this order.

    Each atom is a label of the answer: its AS name, else its type, or its number, from 0, where another atom
    has that type. One event may serve several atoms. An answer ends at its last event, and WITHIN is from the
    first to the last. NULL equals nothing.

    Raises `QueryError`, with the place in the text, for everything that is wrong whatever the events are;
    that a query is not hierarchical is shown by two variables and the atoms that have them.

    >>> print(conjunctive("q(x,y) <- T(x), S(x,y), R(x,y) within 5 events"))
    q(x, y) <- T(x), S(x, y), R(x, y) WITHIN 5 EVENTS
    """
    return ConjunctiveQuery(query)


class ConjunctiveQuery(Query):
    """A conjunctive query. `run`, `explain` and `check` take what those of `Query` take.

    `conjunctive` is its tree. `tree` is that of a pattern with the same types, labels and clauses, which says
    nothing of what the atoms share.
    """

    def __init__(self, query: str | ConjunctiveTree) -> None:
        text = query if isinstance(query, str) else str(query)
        other = not_conjunctive(text)
        if other is not None:
            raise other
        self.conjunctive = parse_conjunctive(text)
        self.tree = as_pattern_query(self.conjunctive)
        self.automaton = None
        self.is_whole = True
        raise_all(check_conjunctive(self.conjunctive))

    @classmethod
    def of_conjunctive(cls, tree: ConjunctiveTree) -> Self:
        """The query of a parsed text, not checked yet: `check` will."""
        made = cls.of_tree(as_pattern_query(tree))
        made.conjunctive = tree
        return made

    def __str__(self) -> str:
        return str(self.conjunctive)

    def __repr__(self) -> str:
        return f"estero.conjunctive({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConjunctiveQuery):
            return NotImplemented
        return self.conjunctive == other.conjunctive

    def __hash__(self) -> int:
        return hash(self.conjunctive)

    def _errors(self, schema: Schema, type_column: str | None) -> list[QueryError]:
        return check_conjunctive(self.conjunctive, schema, type_column)

    def _planned(self, layout: Layout) -> AnyPlan:
        return plan_conjunctive(self.conjunctive, layout)
