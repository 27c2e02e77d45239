"""Conjunctive queries as users hold them: checked, explained and run, as other queries are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from estero.errors import QueryError
from estero.language.check.conjunctive import check_conjunctive
from estero.language.syntax.languages import not_conjunctive
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.schema import Schema, type_names
from estero.plan.joins import as_pattern_query, plan_conjunctive
from estero.plan.plan import Layout, Plan
from estero.queries.query import Query, raise_first


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
    text = query if isinstance(query, str) else str(query)
    other = not_conjunctive(text)
    if other is not None:
        raise other
    asked = ConjunctiveQuery(parse_conjunctive(text))
    raise_first(asked.errors())
    return asked


class ConjunctiveQuery(Query):
    """A conjunctive query. `run`, `explain` and `check` take what those of `Query` take.

    `conjunctive` is its tree. `tree` is that of a pattern with the same types, labels and clauses, which says
    nothing of what the atoms share.
    """

    _made_by = "conjunctive"

    def __init__(self, tree: ConjunctiveTree) -> None:
        self.conjunctive = tree
        self.tree = as_pattern_query(tree)

    def __str__(self) -> str:
        return str(self.conjunctive)

    def _said(self) -> Hashable:
        return self.conjunctive

    def errors(self, schema: Schema | None = None, type_column: str | None = None) -> list[QueryError]:
        """Everything in which the query does not fit a schema; without one, whatever the events are."""
        return check_conjunctive(self.conjunctive, schema, type_column)

    def _planned(self, layout: Layout) -> Plan:
        return plan_conjunctive(self.conjunctive, layout)

    def _type_names(self) -> Sequence[tuple[str, ...]]:
        tree = self.conjunctive
        return [
            type_names(each, tree.streams) for each in dict.fromkeys(atom.relation for atom in tree.atoms)
        ]
