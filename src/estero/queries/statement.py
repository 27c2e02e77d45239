"""What a query says, in whichever language it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from estero.errors import QueryError
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan
from estero.queries.parameters import bound


@dataclass(frozen=True)
class Statement(ABC):
    """What a query says: equal statements say the same. `str` is the canonical text.

    `tree` has the clauses and the labels, and a pattern of the same types of events. With `distinct` complex
    events with the same end that differ in their starts alone are one.
    """

    made_by: ClassVar[str]
    """The function of `estero` that makes such a query of its text."""

    tree: QueryTree
    distinct: bool = field(default=False, kw_only=True)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that have no value, each once."""
        return ()

    def bound(self, values: Mapping[str, object]) -> Statement:
        """The statement with values for parameters; raises `QueryError` for those that do not fit."""
        bound(self.tree, values, self.tree.text)  # there are none
        return self

    @abstractmethod
    def errors(self, schema: Schema | None = None, type_column: str | None = None) -> list[QueryError]:
        """Everything in which the query does not fit a schema; without one, whatever the events are."""

    def plan(self, layout: Layout) -> Plan:
        """The plan of a query that fits."""
        plan = self._plan(layout)
        return plan.with_distinct_marks() if self.distinct else plan

    @abstractmethod
    def _plan(self, layout: Layout) -> Plan:
        """The plan, whatever is distinct."""

    def warn_if_never(self) -> None:
        """Warns where the query matches nothing, whatever the stream, and that can be told."""
        return

    @abstractmethod
    def type_names(self) -> Sequence[tuple[str, ...]]:
        """For each kind of event that the query reads, the names of its types."""


def raise_first(errors: Sequence[QueryError]) -> None:
    """Raises the first of `errors`, with the rest as its `others`; nothing where there is none."""
    if errors:
        first, *others = errors
        first.others = tuple(others)
        raise first
