"""The content of a query, in whichever language it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from estero.errors import NOWHERE, QueryError
from estero.language.tree.query import QueryTree, Ranking
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan

if TYPE_CHECKING:
    from estero.answers.answer import Answer


@dataclass(frozen=True)
class Statement(ABC):
    """The content of a query: queries with equal statements are equal. `str` is the canonical text.

    `tree` has the clauses and the labels, and a pattern of the same types of events. With `distinct` complex
    events with the same end that differ in their starts alone are one.
    """

    made_by: ClassVar[str]
    """The function of `estero` that makes such a query from its text."""
    further_arguments: ClassVar[str] = ""
    """The further arguments of that function, as Python code."""

    tree: QueryTree
    distinct: bool = field(default=False, kw_only=True)

    @property
    def ranking(self) -> Ranking | None:
        """The ranking of ORDER BY."""
        return self.tree.ranking

    @property
    def streams(self) -> tuple[str, ...]:
        """The names after FROM."""
        return self.tree.streams

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters without a value."""
        return ()

    def bound(self, values: Mapping[str, object]) -> Statement:
        """The statement with values for parameters; raises `QueryError` for those that do not fit."""
        from estero.queries.parameters import bound

        bound(self.tree, values, self.tree.text)  # none to bind
        return self

    def errors(self, schema: Schema | None = None, type_column: str | None = None) -> list[QueryError]:
        """All errors of the query for events of a schema; without one, those for any events."""
        exact = {} if schema is None else schema.exact
        named = self._with_exact_names(exact) if exact else self
        return named._errors(schema, type_column)  # noqa: SLF001 (of this class)

    @abstractmethod
    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        """All errors of a query whose column names are those of the schema."""

    def _with_exact_names(self, exact: Mapping[str, str]) -> Statement:
        """The statement with the internal names of columns; statements that read the schema have them."""
        del exact
        return self

    def plan(self, layout: Layout) -> Plan:
        """The plan of a query that fits; `QueryError` for one with ORDER BY, which ranks all events."""
        if self.ranking is not None:
            raise QueryError(
                "ORDER BY ranks the answer to all events, which run() gives",
                text=self.tree.text,
                span=self.tree.places.get("ORDER BY", NOWHERE),
                found="ORDER BY",
                expected="a query without ORDER BY",
                hint="leave ORDER BY and its LIMIT out: complex events come as they end",
            )
        exact = layout.schema.exact
        named = self._with_exact_names(exact) if exact else self
        plan = named._plan(layout)  # noqa: SLF001 (of this class)
        return plan.with_distinct_marks() if self.distinct else plan

    @abstractmethod
    def _plan(self, layout: Layout) -> Plan:
        """The plan of the query without `distinct`."""

    def taken(self, answer: Answer) -> Answer:
        """The part of the complex events of its plan that the query takes: all of them, without pipes."""
        return answer

    def refuse_pipes(self) -> None:
        """Raises `QueryError` if the query takes a part of its answer, which is not possible here."""
        return

    def warn_if_never(self) -> None:
        """Warns if the query is known to match nothing, whatever the stream."""
        return

    def notes_on(self, schema: Schema) -> Sequence[str]:
        """Sentences on missing fields, which make conditions false but are no errors; none by default."""
        del schema
        return ()

    @abstractmethod
    def type_names(self) -> Sequence[tuple[str, ...]]:
        """The names of the types of events that the query reads, kind by kind."""


def raise_first(errors: Sequence[QueryError]) -> None:
    """Raises the first of `errors`, with the rest as its `others`, if there are any."""
    if errors:
        first, *others = errors
        first.others = tuple(others)
        raise first
