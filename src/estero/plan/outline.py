"""Queries that differ only in their conditions on single events: all queries of one outline are planned once.

Planning only distinguishes such conditions from each other and puts them into predicates of events. So a
query is planned with names in place of its conditions, which are filled in afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Final

from estero.automata.cea import EventPredicate, Origin
from estero.errors import EsteroError
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.plan.automaton import AutomatonPlan
from estero.plan.plan import Layout, Plan
from estero.system.copies import copied

_MOST: Final = 4096
"""The largest number of outlines remembered for a schema."""


@dataclass(slots=True)
class Outlined:
    """A pattern with names in place of conditions on one event, and the conditions by name.

    Equal conditions have one name, and so does each condition of a filter joined by AND, because automata
    distinguish predicates by them. In a query with a single filter, one name stands for the whole filter.
    """

    pattern: p.Pattern
    conditions: Mapping[str, e.Node]


@dataclass(frozen=True, slots=True)
class PlannedOutline:
    """The plan of an outline, and the positions of its parts in the pattern, by state of the automaton."""

    plan: AutomatonPlan
    origins: tuple[tuple[int, ...], ...]

    def plan_of(
        self, tree: QueryTree, written: object, schema: Schema, conditions: Mapping[str, e.Node]
    ) -> Plan:
        """The plan of a query with this outline."""
        plan = self.plan
        filled = tuple([_filled(predicate, conditions) for predicate in plan.classification.predicates])
        parts = list(tree.pattern.walk())
        origins = tuple([tuple([parts[place] for place in origin]) for origin in self.origins])
        return copied(
            plan,
            tree=tree,
            written=written,
            classification=copied(plan.classification, predicates=filled, schema=schema),
            automaton=copied(plan.automaton, predicates=filled, origins=origins),
            _fingerprints={},
        )


@dataclass(slots=True)
class _Last:
    """The outlines planned for the most recent schema: the rules of a set come one after another."""

    schema: Schema | None = None
    known: dict[object, PlannedOutline | None] = field(default_factory=dict)


_LAST: Final = [_Last()]
_clauses: Final = attrgetter(
    *(one.name for one in fields(QueryTree) if one.compare and one.name != "pattern")
)


def planned_once(
    tree: QueryTree,
    written: object,
    layout: Layout,
    schema: Schema,
    plan: Callable[[QueryTree, Layout], Plan],
) -> Plan | None:
    """The plan of a query for events of a layout, whose schema with the paths of the query is `schema`.

    `plan` makes the plan of an outline. None for a query of another kind, which has to be planned on its own.
    """
    outlined = _of_one_event(tree.pattern) or _outlined(tree.pattern)
    if outlined is None:
        return None
    last = _LAST[0]
    if last.schema is not layout.schema or len(last.known) >= _MOST:
        last = _LAST[0] = _Last(layout.schema)
    key = (
        outlined.pattern,
        _clauses(tree),
        layout.type_column,
        layout.only_type,
        layout.order,
        layout.tick_ns,
    )
    if key not in last.known:
        outline = replace(tree, pattern=outlined.pattern, text="", places={})
        try:
            last.known[key] = _planned(outline, plan(outline, layout))
        except EsteroError:
            return None  # the query itself is planned, so that the error is about what it says
    known = last.known[key]
    return None if known is None else known.plan_of(tree, written, schema, outlined.conditions)


def _planned(outline: QueryTree, plan: Plan) -> PlannedOutline | None:
    """The plan of an outline; None if it uses conditions elsewhere than in predicates of events."""
    if not isinstance(plan, AutomatonPlan) or plan.residuals or plan.pushed or plan.registers or plan.ages:
        return None
    if plan.automaton.predicates != plan.classification.predicates:
        return None
    origins = _places(outline.pattern, plan.automaton.origins)
    return None if origins is None else PlannedOutline(plan, origins)


def _places(pattern: p.Pattern, origins: Sequence[Origin]) -> tuple[tuple[int, ...], ...] | None:
    """The places of parts in the pattern; None where one has no place of its own.

    An origin leads from the pattern to a part of it, so a part is looked for below the one before it: a type
    that occurs twice is told apart by the variables.
    """
    parts = list(pattern.walk())
    ends = [place + sum(1 for _ in part.walk()) for place, part in enumerate(parts)]
    equal: dict[p.Pattern, list[int]] = {}
    for place, part in enumerate(parts):
        equal.setdefault(part, []).append(place)
    known: dict[tuple[int, int], int] = {}

    def below(part: p.Pattern, first: int) -> int | None:
        here = known.get((id(part), first))
        if here is None:
            places = [place for place in equal.get(part, ()) if first <= place < ends[first]]
            if len(places) != 1:
                return None
            here = known[id(part), first] = places[0]
        return here

    paths = []
    for origin in origins:
        path = [0]
        for part in origin:
            here = below(part, path[-1])
            if here is None:
                return None
            path.append(here)
        paths.append(tuple(path[1:]))
    return tuple(paths)


# ------------------------------------------------------------------------------------------- outlines


def _of_one_event(pattern: p.Pattern) -> Outlined | None:
    """The outline of an event with one filter, as nearly all rules are."""
    match pattern:
        case p.Filter(p.EventType() | p.As(p.EventType()) as event, e.EventFilter(variable, predicate)):
            return Outlined(
                p.Filter(event, e.EventFilter(variable, _CONDITION)), {_CONDITION.name: predicate}
            )
        case _:
            return None


def _outlined(pattern: p.Pattern) -> Outlined | None:
    """The outline of a sequence of events with filters on one event each; None for any other pattern."""
    filters: list[e.EventFilter] = []
    for part in pattern.walk():
        match part:
            case p.EventType() | p.As():
                pass
            case p.Sequence(links=links) if not (part.before or part.after):
                if any(link.absent or link.distances or link.lacking for link in links):
                    return None
            case p.Filter(condition=condition):
                for one in conjuncts(condition):
                    if not isinstance(one, e.EventFilter):
                        return None
                    filters.append(one)
            case _:
                return None
    if len(filters) == 1:
        return Outlined(_renamed(pattern, lambda _: _CONDITION), {_CONDITION.name: filters[0].predicate})
    names: dict[e.Node, str] = {}
    for one in filters:
        for condition in conjuncts(one.predicate):
            names.setdefault(condition, _name(len(names)))

    def named(predicate: e.Node) -> e.Node:
        parts = tuple(e.Attribute(names[condition]) for condition in conjuncts(predicate))
        return parts[0] if len(parts) == 1 else e.And(parts)

    return Outlined(_renamed(pattern, named), {name: condition for condition, name in names.items()})


def _name(number: int) -> str:
    return f"condition {number}"


_CONDITION: Final = e.Attribute(_name(0))


def _renamed(pattern: p.Pattern, named: Callable[[e.Node], e.Node]) -> p.Pattern:
    """The pattern with names for the predicates of its filters, and without positions in a text."""
    match pattern:
        case p.Filter(inner, condition):
            parts = tuple(
                e.EventFilter(one.variable, named(one.predicate))
                for one in conjuncts(condition)
                if isinstance(one, e.EventFilter)
            )
            return p.Filter(_renamed(inner, named), parts[0] if len(parts) == 1 else e.And(parts))
        case p.As(inner, variable):
            return p.As(_renamed(inner, named), variable)
        case p.Sequence(parts, links):
            return p.Sequence(tuple(_renamed(part, named) for part in parts), links)
        case _:
            return pattern


def _filled(predicate: EventPredicate, conditions: Mapping[str, e.Node]) -> EventPredicate:
    """The predicate with the conditions that its names stand for."""
    names = [part.name for part in conjuncts(predicate.condition) if isinstance(part, e.Attribute)]
    if not names:
        return predicate
    if len(names) == 1 and not isinstance(conditions[names[0]], e.And):
        return EventPredicate(predicate.types, conditions[names[0]])
    return EventPredicate(
        predicate.types, conjoined(part for name in names for part in conjuncts(conditions[name]))
    )
