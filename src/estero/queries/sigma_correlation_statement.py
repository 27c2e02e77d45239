"""Correlations of rules in Sigma: what several events within a time have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.sigma.fields import Fields, Mapped
from estero.language.sigma.lower import Lowering
from estero.language.sigma.tree import Condition, Correlation
from estero.language.sigma.windows import windows_tree
from estero.language.tree.pattern import EventType
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.sigma_statement import EVENT, fields_in, refuse_types, whole_of
from estero.queries.statement import Statement

_NEVER: Final = False


@dataclass(frozen=True)
class SigmaCorrelationStatement(Statement):
    """The statement of a correlation: its rules, what their log sources say, and where fields are."""

    made_by = "query"
    rule: Correlation
    mapped: Mapped
    sources: tuple[Condition | None, ...]

    @classmethod
    def of(
        cls, rule: Correlation, mapped: Mapped, sources: Sequence[Condition | None]
    ) -> SigmaCorrelationStatement:
        """The statement of a correlation whose rules have these log sources."""
        tree, _ = _lowered(rule, tuple(sources), Fields(None, mapped), EVENT)
        return cls(tree, rule, mapped, tuple(sources))

    def __str__(self) -> str:
        return str(self.tree)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        errors = refuse_types(type_column)
        if schema is not None and not errors:  # the timespan needs a time
            errors = check_query(QueryTree(EventType(EVENT), window=self.tree.window), _of_one_type(schema))
        return errors

    def notes_on(self, schema: Schema) -> list[str]:
        return _lowered(self.rule, self.sources, fields_in(schema, self.mapped), EVENT)[1]

    def _plan(self, layout: Layout) -> Plan:
        schema, tree = layout.schema, self.tree
        if schema.types or schema.shared:
            tree, _ = _lowered(self.rule, self.sources, fields_in(schema, self.mapped), layout.only_type)
        return plan_of(tree, layout)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        return ()


def _of_one_type(schema: Schema) -> Schema:
    """The schema without what its types are called."""
    return Schema(shared=schema.column_kinds, time=schema.time, time_unit=schema.time_unit)


def _lowered(
    rule: Correlation, sources: tuple[Condition | None, ...], fields: Fields, name: str
) -> tuple[QueryTree, list[str]]:
    """The query over the attributes of a schema, and notes on fields that it has not."""
    lowering = Lowering(fields)
    conditions = [
        lowering.of(whole_of(one.condition, source)) for one, source in zip(rule.rules, sources, strict=True)
    ]
    keys, counted = [], []
    for field in dict.fromkeys(names[0] for names in rule.keys):
        keys += [one.name for one in lowering.attributes(field)[:1]] or [""]
    for field in rule.counted:
        counted += [one.name for one in lowering.attributes(field)[:1]] or [""]
    if "" in keys or "" in counted:
        keys, counted = [key for key in keys if key], []
        conditions = [_NEVER] * len(conditions)
    return windows_tree(rule, name, conditions, keys, counted), lowering.notes()
