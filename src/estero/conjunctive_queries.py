"""Conjunctive queries as users hold them: checked, explained and run, as other queries are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estero.errors import QueryError
from estero.join_explanation import JoinExplanation
from estero.language.check_conjunctive import check_conjunctive
from estero.language.conjunctive import ConjunctiveTree
from estero.language.parse_conjunctive import parse_conjunctive
from estero.language.schema import Schema
from estero.plan import Layout
from estero.plan_joins import JoinPlan, as_pattern_query, plan_conjunctive
from estero.queries import Query, raise_all

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
        self.conjunctive = parse_conjunctive(query if isinstance(query, str) else str(query))
        self.tree = as_pattern_query(self.conjunctive)
        self.automaton = None
        raise_all(check_conjunctive(self.conjunctive))

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

    def check(
        self,
        events: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> list[QueryError]:
        """Everything in which this query does not fit the events, in order of place; empty if it does."""
        source = self._open(events, type, time, order, time_unit, csv_options)
        return check_conjunctive(self.conjunctive, self._schema(source, types), source.type_column)

    def explain(
        self,
        events: object = None,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> JoinExplanation:
        """The plan, its guarantee, the q-tree, the automaton and, with events, the SQL."""
        if events is None:
            layout = Layout(Schema(shared={}), type_column="type", tick_ns=1)
            return JoinExplanation(plan_conjunctive(self.conjunctive, layout))
        source = self._open(events, type, time, order, time_unit, csv_options)
        layout = Layout(
            self._schema(source, types),
            source.type_column,
            source.only_type,
            source.order,
            source.time_tick_ns,
        )
        plan = self.plan(layout)
        return JoinExplanation(plan, source.sql(plan.classification))

    def plan(self, layout: Layout) -> JoinPlan:
        """The plan for events that are laid out so; raises `QueryError` where the query does not fit them."""
        raise_all(check_conjunctive(self.conjunctive, layout.schema, layout.type_column))
        return plan_conjunctive(self.conjunctive, layout)
