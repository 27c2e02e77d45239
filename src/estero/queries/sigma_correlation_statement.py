"""Correlations of rules in Sigma: what several events within a time have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.sigma.fields import Attributed, Mapped
from estero.language.sigma.lower import Lowering
from estero.language.sigma.tree import Condition, Correlation
from estero.language.sigma.windows import windows_tree
from estero.language.tree import expressions as e
from estero.language.tree.pattern import EventType
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Kind, Schema
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.sigma_statement import EVENT, fields_in, lowered_rule, refuse_types
from estero.queries.statement import Statement

_NEVER: Final = False
Located = tuple[Condition | None, Mapped]
"""What the log source of a rule says, None where it is not asked for, and where its fields are."""


@dataclass(frozen=True)
class SigmaCorrelationStatement(Statement):
    """The statement of a correlation: its rules, what their log sources say, and where fields are."""

    made_by = "query"
    rule: Correlation
    sources: tuple[Located, ...]

    @classmethod
    def of(cls, rule: Correlation, sources: Sequence[Located]) -> SigmaCorrelationStatement:
        """The statement of a correlation whose rules have these log sources."""
        tree, _ = _lowered(rule, sources, None, EVENT)
        return cls(tree, rule, tuple(sources))

    def __str__(self) -> str:
        return str(self.tree)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        errors = refuse_types(type_column)
        if schema is not None and not errors:  # the timespan needs a time
            errors = check_query(QueryTree(EventType(EVENT), window=self.tree.window), _of_one_type(schema))
        return errors

    def notes_on(self, schema: Schema) -> list[str]:
        return _lowered(self.rule, self.sources, schema, EVENT)[1]

    def _plan(self, layout: Layout) -> Plan:
        schema, tree = layout.schema, self.tree
        if schema.types or schema.shared:
            tree, _ = _lowered(self.rule, self.sources, schema, layout.only_type)
        return plan_of(tree, layout)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        return ()


def _of_one_type(schema: Schema) -> Schema:
    """The schema without what its types are called."""
    return Schema(shared=schema.column_kinds, time=schema.time, time_unit=schema.time_unit)


def _lowered(
    rule: Correlation, sources: Sequence[Located], schema: Schema | None, name: str
) -> tuple[QueryTree, list[str]]:
    """The query over the attributes of a schema, and notes on what it has not."""
    lowered = [
        lowered_rule(one, source, schema, mapped)
        for one, (source, mapped) in zip(rule.rules, sources, strict=True)
    ]
    conditions = [condition for condition, _ in lowered]
    lowering = Lowering(fields_in(schema, sources[0][1]))
    keys = [_only(lowering, field) for field in dict.fromkeys(names[0] for names in rule.keys)]
    counted = [_only(lowering, field) for field in rule.counted]
    values = [None if one is None else _value(rule, one) for one in counted]
    if None in keys or None in values:
        conditions = [_NEVER] * len(conditions)
    tree = windows_tree(
        rule,
        name,
        conditions,
        [key.name for key in keys if key is not None],
        [e.Literal(None) if value is None else value for value in values],
        (schema and schema.time) or "time",
    )
    return tree, list(dict.fromkeys([note for _, notes in lowered for note in notes] + lowering.notes()))


def _only(lowering: Lowering, field: str) -> Attributed | None:
    """The attribute of a field of which an event has one value; None, with a note, if there is none."""
    one = next(iter(lowering.attributes(field)), None)
    if one is None or not one.listed:
        return one
    lowering.unread[field] = None
    return None


def _value(rule: Correlation, one: Attributed) -> e.Node | None:
    """The value of an attribute that is counted, or its number, for computing; None for another kind."""
    attribute = e.Attribute(one.name)
    if rule.type == "value_count" or one.kind in (Kind.INT, Kind.FLOAT, None):
        return attribute
    return e.Cast(attribute, "FLOAT") if one.kind in (Kind.STRING, Kind.DECIMAL) else None
