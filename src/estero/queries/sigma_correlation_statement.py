"""Correlations of rules in Sigma: several events within a time that have something in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from estero.automata.cea import EventPredicate
from estero.classify.column_names import free_name
from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.sigma.fields import Attributed, Mapped
from estero.language.sigma.lower import Lowered, Lowering
from estero.language.sigma.tree import Condition, Correlation
from estero.language.sigma.windows import windows_tree
from estero.language.tree import expressions as e
from estero.language.tree.paths import is_path
from estero.language.tree.pattern import EventType
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import paths_in
from estero.plan.plan import Layout, Plan
from estero.plan.roles import in_roles
from estero.plan.rules import plan_of
from estero.queries.sigma_statement import EVENT, fields_in, lowered_rule, refuse_types
from estero.queries.statement import Statement

_NEVER: Final = False
Located = tuple[Condition | None, Mapped]
"""The condition of a rule's log source, None if it is ignored, and the location of its fields."""


@dataclass(frozen=True)
class SigmaCorrelationStatement(Statement):
    """The statement of a correlation: its rules, the conditions of their log sources, and their fields."""

    made_by = "query"
    rule: Correlation
    sources: tuple[Located, ...]

    @classmethod
    def of(cls, rule: Correlation, sources: Sequence[Located]) -> SigmaCorrelationStatement:
        """The statement of a correlation whose rules have these log sources."""
        return cls(_Lowered.of(rule, sources, None).tree(EVENT, "time"), rule, tuple(sources))

    def __str__(self) -> str:
        return str(self.tree)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        errors = refuse_types(type_column)
        if schema is not None and not errors:  # the timespan needs a time
            errors = check_query(QueryTree(EventType(EVENT), window=self.tree.window), _of_one_type(schema))
        return errors

    def notes_on(self, schema: Schema) -> list[str]:
        return list(_Lowered.of(self.rule, self.sources, schema).notes)

    def _plan(self, layout: Layout) -> Plan:
        schema = layout.schema
        if not (schema.types or schema.shared):
            return plan_of(self.tree, layout)
        return _Lowered.of(self.rule, self.sources, schema).plan(layout, str(self))

    def type_names(self) -> Sequence[tuple[str, ...]]:
        return ()


def _of_one_type(schema: Schema) -> Schema:
    """The schema without the names of its types."""
    return Schema(shared=schema.column_kinds, time=schema.time, time_unit=schema.time_unit)


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A correlation over the attributes of a schema, with notes on those that it lacks.

    `conditions` are those of the rules, and `keys` the attributes of groups in the events of each.
    """

    rule: Correlation
    conditions: tuple[Lowered, ...]
    keys: tuple[tuple[Attributed, ...], ...]
    counted: tuple[e.Node, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, rule: Correlation, sources: Sequence[Located], schema: Schema | None) -> _Lowered:
        """The correlation; without a schema, with the fields under their names."""
        conditions: list[Lowered] = []
        notes: dict[str, None] = {}
        keys: list[tuple[Attributed, ...]] = []
        for place, (one, (source, mapped)) in enumerate(zip(rule.rules, sources, strict=True)):
            condition, of_rule = lowered_rule(one, source, schema, mapped)
            lowering = Lowering(fields_in(schema, mapped))
            known = tuple(key for names in rule.keys if (key := _only(lowering, names[place])) is not None)
            conditions.append(condition if len(known) == len(rule.keys) else _NEVER)
            keys.append(known)
            notes |= dict.fromkeys([*of_rule, *lowering.notes()])
        lowering = Lowering(fields_in(schema, sources[0][1]))
        counted = [_only(lowering, field) for field in rule.counted]
        values = [None if one is None else _value(rule, one) for one in counted]
        for field, attribute, value in zip(rule.counted, counted, values, strict=True):
            if attribute is not None and value is None:
                lowering.leave_out(field, attribute)
        notes |= dict.fromkeys(lowering.notes())
        if rule.type != "value_count" and None in values:
            conditions = [_NEVER] * len(conditions)
        return cls(
            rule,
            tuple(conditions),
            tuple(keys),
            tuple(e.Literal(None) if value is None else value for value in values),
            tuple(notes),
        )

    @property
    def _complete(self) -> list[tuple[Attributed, ...]]:
        """The attributes of groups in the events of those rules that have all of them, without duplicates."""
        return list(dict.fromkeys(keys for keys in self.keys if len(keys) == len(self.rule.groups)))

    def tree(self, event: str, time: str) -> QueryTree:
        """The query; a key with different attributes in the rules has these as alternatives."""
        names = [[one.name for one in keys] for keys in self._complete]
        brackets = dict.fromkeys(
            tuple(dict.fromkeys(alternatives)) for alternatives in zip(*names, strict=True)
        )
        return windows_tree(self.rule, event, self.conditions, list(brackets), self.counted, time)

    def plan(self, layout: Layout, text: str) -> Plan:
        """The plan for events with a layout; `text` is what the query prints as."""
        if len(self._complete) > 1:
            return self._plan_in_roles(layout, text)
        return plan_of(self.tree(layout.only_type, layout.schema.time or "time"), layout, text=text)

    def _plan_in_roles(self, layout: Layout, text: str) -> Plan:
        """The plan of a correlation whose groups have different attributes in the events of each rule."""
        rule, event, time = self.rule, layout.only_type, layout.schema.time or "time"
        roles = self._complete
        asked = [condition for condition in self.conditions if not isinstance(condition, bool)]
        read = [*paths_in((*asked, *self.counted)), *(one.name for keys in roles for one in keys)]
        schema = layout.schema.reading(filter(is_path, read))
        taken = set(schema.column_kinds)
        names = [one.about.name or f"rule{place}" for place, one in enumerate(rule.rules, 1)]
        flags = [_new_name(name, taken) for name in names]
        groups = [_new_name(name, taken) for name in rule.groups]
        kinds = [[keys[place].kind or Kind.NULL for keys in roles] for place in range(len(groups))]
        texts = [Kind.STRING in of_group and len(set(of_group)) > 1 for of_group in kinds]
        tree = windows_tree(
            rule,
            event,
            [e.Comparison("=", e.Attribute(flag), e.Literal(True)) for flag in flags],
            [(name,) for name in groups],
            self.counted,
            time,
        )
        made = dict.fromkeys(flags, Kind.BOOL)
        made |= {
            name: Kind.STRING if as_text else of_group[0]
            for name, of_group, as_text in zip(groups, kinds, texts, strict=True)
        }
        plan = plan_of(tree, replace(layout, schema=_with(schema, made)), text=text)
        return in_roles(
            plan,
            [EventPredicate((event,), _condition(condition)) for condition in self.conditions],
            schema,
            attributes=[[one.name for one in keys] for keys in roles],
            of=[roles.index(keys) if keys in roles else 0 for keys in self.keys],
            flags=flags,
            keys=groups,
            texts=texts,
        )


def _new_name(name: str, taken: set[str]) -> str:
    """A name that no column has, which is taken from then on."""
    new = free_name(name, taken)
    taken.add(new)
    return new


def _with(schema: Schema, attributes: Mapping[str, Kind]) -> Schema:
    """The schema with further attributes."""
    types = {name: {**known, **attributes} for name, known in schema.types.items()}
    return replace(
        schema, types=types, shared=None if schema.shared is None else {**schema.shared, **attributes}
    )


def _condition(condition: Lowered) -> e.Node | None:
    """The condition of a predicate; None if it has none."""
    return None if condition is True else e.Literal(False) if condition is False else condition


def _only(lowering: Lowering, field: str) -> Attributed | None:
    """The attribute of a field with a single value per event; None, with a note, if there is none."""
    one = next(iter(lowering.fields.of(field)), None)
    if one is None:
        lowering.missing[field] = None
    elif one.listed or one.kind is Kind.OPAQUE:
        lowering.leave_out(field, one)
        return None
    return one


def _value(rule: Correlation, one: Attributed) -> e.Node | None:
    """The value of an attribute that is counted, or its number for arithmetic; None for other kinds."""
    attribute = e.Attribute(one.name)
    if rule.type == "value_count" or one.kind in (Kind.INT, Kind.FLOAT, None):
        return attribute
    return e.Cast(attribute, "FLOAT") if one.kind in (Kind.STRING, Kind.DECIMAL) else None
