"""Queries that are built in Python and can be run directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from estero.arguments import checked
from estero.language.builder import queries as builder
from estero.queries.query import Query

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.queries.explanation import Explanation


@dataclass(frozen=True, slots=True)
class SelectedQuery(builder.QueryBuilder):
    """A query that can be run, and to which clauses can be added: a clause gives a new query."""

    def query(self) -> Query:
        """The `Query`; raises `QueryError` for mistakes in it."""
        return Query(self)

    def bind(self, values: Mapping[str, object] | None = None, /, **named: object) -> Query:
        """The query with values for its parameters, as from `Query.bind`."""
        return self.query().bind(values, **named)

    def run(self, events: object, **layout: Any) -> Answer:
        """The complex events, as `Query.run` gives them; the arguments are its own.

        >>> from estero import event
        >>> from estero.testing import events
        >>> pairs = select(event("A").then(event("B"))).partition_by("k")
        >>> pairs.run(events("A(k=1) A(k=2) B(k=1)"), type="type").count()
        1
        """
        return self.query().run(events, **layout)

    def explain(self, events: object = None, **layout: Any) -> Explanation:
        """The explanation of the query, as from `Query.explain`, with the same arguments."""
        return self.query().explain(events, **layout)


@checked
def select(pattern: builder.PatternLike) -> SelectedQuery:
    """The query for all complex events of a pattern."""
    return SelectedQuery(builder.select(pattern).tree)
