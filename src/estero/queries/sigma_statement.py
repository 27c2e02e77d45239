"""Rules in Sigma with conditions on one event at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from estero.errors import QueryError
from estero.language.sigma.fields import Fields, Mapped
from estero.language.sigma.lower import Lowered, Lowering, joined
from estero.language.sigma.tree import Condition, Detection
from estero.language.tree import expressions as e
from estero.language.tree.expressions import EventFilter, Literal
from estero.language.tree.names import some
from estero.language.tree.pattern import EventType, Filter
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.statement import Statement

EVENT = "Event"
"""The type of the events of rules, and their label."""


@dataclass(frozen=True)
class SigmaStatement(Statement):
    """The statement of a detection rule: its condition and that of its log source, and where fields are.

    `tree` and the text have the fields under the names of the rule or, if a mapping gives others, under
    these; the plan has the attributes of the schema.
    """

    made_by = "query"
    tree: QueryTree = field(init=False, compare=False, repr=False)
    rule: Detection
    mapped: Mapped
    source: Condition | None = None
    """The condition of the log source; None if it is ignored."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> QueryTree:
            """The tree, made when it is first needed: planning a rule for some events needs none."""
            if name != "tree":
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            tree = tree_of(lowered_rule(self.rule, self.source, None, self.mapped)[0], EVENT)
            return self.__dict__.setdefault("tree", tree)

    @property
    def ranking(self) -> None:
        return None

    @property
    def streams(self) -> tuple[str, ...]:
        return ()

    def __str__(self) -> str:
        return str(self.tree)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        del schema
        return refuse_types(type_column)

    def notes_on(self, schema: Schema) -> list[str]:
        return self.lowered(schema)[1]

    def lowered(self, schema: Schema) -> tuple[Lowered, list[str]]:
        """The condition on the attributes of a schema, and notes on fields that it lacks or cannot read."""
        last = _LAST.lowered
        if last is None or last[0] is not self or last[1] is not schema:
            last = _LAST.lowered = (self, schema, lowered_rule(self.rule, self.source, schema, self.mapped))
        return last[2]

    def _plan(self, layout: Layout) -> Plan:
        condition = self.lowered(layout.schema)[0] if layout.schema.types or layout.schema.shared else None
        tree = self.tree if condition is None else tree_of(condition, layout.only_type)
        return plan_of(tree, layout, text=self)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        return ()


def tree_of(condition: Lowered, name: str) -> QueryTree:
    """The query for events of a type that satisfy a condition."""
    event = EventType(name)
    if condition is True:
        return QueryTree(event)
    return QueryTree(Filter(event, EventFilter(name, Literal(False) if condition is False else condition)))


def refuse_types(type_column: str | None) -> list[QueryError]:
    """The error for a given column of event types; none without one."""
    if type_column is None:
        return []
    message = f"rules in Sigma apply to events of all types, and {type_column} would distinguish them"
    return [QueryError(message, hint="leave type out: the log source says which events a rule is for")]


def lowered_rule(
    rule: Detection, source: Condition | None, schema: Schema | None, mapped: Mapped
) -> tuple[Lowered, list[str]]:
    """The condition of a rule with that of its log source, and notes on fields that events lack."""
    told, lacking = (True, ()) if source is None else _told(source, schema, mapped)
    if told is False:
        missing = some(lacking, most=4, word="nor")
        return False, [f"no event tells that it is of the log source {rule.source}: there is no {missing}"]
    lowering = Lowering(fields_in(schema, mapped))
    condition = lowering.of(rule.condition)
    return joined((told, condition), e.And, absorbing=False), lowering.notes()


def _told(source: Condition, schema: Schema | None, mapped: Mapped) -> tuple[Lowered, tuple[str, ...]]:
    """The condition of a log source on events of a schema, and the fields for it that they lack."""
    known = _of_schema(schema).told
    key = id(source), id(mapped)
    if key not in known:
        shapes = Lowering(fields_in(schema, mapped.without_further()))  # these distinguish events
        known[key] = source, mapped, shapes.of(source), tuple(shapes.missing)
    return known[key][2:]


@dataclass(frozen=True, slots=True)
class _OfSchema:
    """The fields of a schema, and the conditions of log sources on its events, for the mappings used."""

    schema: Schema | None = None
    fields: dict[int, tuple[Mapped, Fields]] = field(default_factory=dict)
    told: dict[tuple[int, int], tuple[Condition, Mapped, Lowered, tuple[str, ...]]] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class _Last:
    """The latest results: rules of a set are planned one after another, and notes are needed then."""

    of_schema: _OfSchema = field(default_factory=_OfSchema)
    lowered: tuple[SigmaStatement, Schema, tuple[Lowered, list[str]]] | None = None


_LAST: Final = _Last()


def _of_schema(schema: Schema | None) -> _OfSchema:
    """The cached results for a schema, which other threads do not change; empty without a schema."""
    last = _LAST.of_schema
    if schema is None or last.schema is not schema:
        last = _OfSchema(schema)
        if schema is not None:
            _LAST.of_schema = last
    return last


def fields_in(schema: Schema | None, mapped: Mapped) -> Fields:
    """The fields of a schema; without one, those that `Fields` assumes."""
    if schema is None:
        return Fields(None, mapped)
    known = _of_schema(schema).fields
    if id(mapped) not in known:
        before = list(known.values())
        equal = next((fields for other, fields in before if other == mapped), None)
        made = equal or (before[0][1].under(mapped) if before else Fields(schema, mapped))
        known[id(mapped)] = mapped, made
    return known[id(mapped)][1]
