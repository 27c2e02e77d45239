"""The passes over the events that a set of rules needs, and the conditions that are dispatched in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD
from estero.classify.columns import ColumnType
from estero.classify.vectors.conditions import Condition
from estero.plan.plan import Classification, Plan
from estero.plan.together import reading_of, together
from estero.recognize.rules.conditions.dispatch import Dispatcher, is_worth_it
from estero.recognize.rules.conditions.plain_conditions import (
    condition_columns,
    plain_conditions,
    type_names,
)
from estero.recognize.rules.groups import RuleGroup, groups_of, is_dispatchable


def checked_in(types: Mapping[str, ColumnType]) -> frozenset[str]:
    """The columns whose values may have no 64-bit form."""
    return frozenset(name for name, column in types.items() if column.checked)


class EventColumns(NamedTuple):
    """The form in which expressions read the columns of events, and the columns of classified events."""

    types: Mapping[str, ColumnType]
    classified: Callable[[Classification], pa.Schema]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the events: its classification, and the groups of rules that it serves.

    If conditions are dispatched, `conditions` has them by predicate, and the classification only has types.
    """

    classification: Classification
    groups: tuple[RuleGroup, ...]
    conditions: Mapping[EventPredicate, Condition] = field(default_factory=dict)

    def dispatcher(self) -> Dispatcher:
        """A dispatcher of the conditions; it has none if conditions are classified."""
        dispatcher = Dispatcher(type_names(self.classification.predicates))
        dispatcher.add(self.conditions)
        return dispatcher

    def places(self) -> dict[EventPredicate, int] | None:
        """The places of dispatched conditions."""
        return {predicate: place for place, predicate in enumerate(self.conditions)} or None


def passes_of(plans: Mapping[str, Plan], columns: EventColumns | None = None) -> list[Pass]:
    """The passes that a set of rules needs, in order of their first rules.

    Rules share a pass if they partition by the same keys and compare the same values of several events. With
    `columns`, conditions that read only these columns are dispatched if many rules have such conditions.
    """
    alike: dict[tuple[object, ...], dict[str, Plan]] = {}
    checked = None if columns is None else checked_in(columns.types)
    for name, plan in plans.items():
        alike.setdefault(reading_of(plan.classification, checked), {})[name] = plan
    return [reading for own in alike.values() for reading in dispatched_passes(own, columns)]


def dispatched_passes(plans: Mapping[str, Plan], columns: EventColumns | None) -> Iterator[Pass]:
    """The passes of rules with the same keys and values: one, or two if some conditions are dispatched."""
    dispatched = {} if columns is None else _dispatched(plans, columns)
    others = {name: plan for name, plan in plans.items() if name not in dispatched}
    readings = [_dispatching(dispatched)] if dispatched else []
    if others:
        asked = together([plan.classification for plan in others.values()])
        readings.append(Pass(asked, tuple(groups_of(others))))
    yield from sorted(readings, key=lambda reading: list(plans).index(reading.groups[0].names[0]))


def _dispatching(rules: Mapping[str, tuple[Plan, Mapping[EventPredicate, Condition]]]) -> Pass:
    plans = {name: plan for name, (plan, _) in rules.items()}
    conditions = {key: value for _, own in rules.values() for key, value in own.items()}
    return Pass(_of_types(plans.values()), tuple(groups_of(plans, may_grow=True)), conditions)


def _of_types(plans: Iterable[Plan]) -> Classification:
    """The classification for dispatched conditions: the types of events, and the columns they read."""
    asked = together([plan.classification for plan in plans])
    types = tuple(EventPredicate((name,)) for name in type_names(asked.predicates))
    payload = tuple(dict.fromkeys((*asked.payload, *condition_columns(asked.predicates))))
    return replace(asked, predicates=types, payload=payload, encoded=True)


def _dispatched(
    plans: Mapping[str, Plan], columns: EventColumns
) -> dict[str, tuple[Plan, Mapping[EventPredicate, Condition]]]:
    """The rules whose conditions can be dispatched, with these conditions; none if there are too few."""
    able = {name: plan for name, plan in plans.items() if is_dispatchable(plan)}
    if not is_worth_it(len(able)):
        return {}
    reading = _of_types(able.values())
    if len(reading.predicates) > WORD:
        return {}
    predicates = {one: None for plan in able.values() for one in plan.classification.predicates}
    plain = plain_conditions(predicates, columns.types, columns.classified(reading))
    dispatched: dict[str, tuple[Plan, Mapping[EventPredicate, Condition]]] = {
        name: (plan, {one: plain[one] for one in plan.classification.predicates})
        for name, plan in able.items()
        if all(one in plain for one in plan.classification.predicates)
    }
    return dispatched if is_worth_it(len(dispatched)) else {}
