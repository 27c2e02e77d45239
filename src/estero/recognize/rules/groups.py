"""Rules that differ in the constants of their conditions alone, which one recognition serves together.

Recognition sees bits, not conditions. So the plans of ``a ; b ; c`` with a thousand different filters are one
plan over the same bits, and their events one stream in which the rule is a part of the partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from estero.automata.cea import EventPredicate
from estero.language.tree.query import Consume
from estero.plan.automaton import AutomatonPlan
from estero.plan.identity import digest
from estero.plan.plan import Plan

RULE: Final = "__rule"
"""The column of classified events with the place of their rule in its group, int64."""


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that one recognition serves, in the order of their set, with their own plans; never empty."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]

    @property
    def plan(self) -> Plan:
        """The plan that serves all of them: that of the first, by keys where there are several."""
        (first, *others) = self.plans
        if not others or first.keyed:
            return first
        return replace(first, classification=replace(first.classification, keys=((RULE,),)))


def groups_of(plans: Mapping[str, Plan]) -> list[RuleGroup]:
    """The groups of a set of rules, in order of their first rules."""
    alike: dict[object, list[str]] = {}
    for place, (name, plan) in enumerate(plans.items()):
        alike.setdefault(_shape(plan) or place, []).append(name)
    return [RuleGroup(tuple(names), tuple(plans[name] for name in names)) for names in alike.values()]


def _shape(plan: Plan) -> str | None:
    """What plans of one group have in common; None for a plan that is alone.

    Alone are plans that look at other events than their own (contiguity, deadlines, CONSUME), and those whose
    complex events are compared with one another, or chosen, after recognition.
    """
    if (
        not isinstance(plan, AutomatonPlan)
        or plan.counts_places
        or plan.classification.keep_all
        or plan.deadlines
        or plan.consume is not Consume.NONE
        or plan.interval is not None
        or plan.decides_later
        or plan.needs_enumeration
        or plan.from_first
    ):
        return None
    numbered = tuple(EventPredicate((str(bit),)) for bit in range(len(plan.classification.predicates)))
    common = [getattr(plan, name) for name in plan.evaluated if name != "automaton"]
    automaton = replace(plan.automaton, predicates=numbered[: len(plan.automaton.predicates)])
    return digest(
        [
            replace(plan.classification, predicates=numbered),
            automaton,
            *common,
            plan.shown,
            plan.measures,
            plan.window,
            plan.strategy,
            plan.limit,
            plan.shown_keys,
            plan.shared,
            plan.distinct,
            plan.by_place,
        ]
    )
