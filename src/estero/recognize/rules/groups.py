"""Groups of rules that differ only in the constants of their conditions and are recognized together.

Recognition depends on bits, not on conditions. The plans of ``a ; b ; c`` with a thousand different filters
are therefore one plan over the same bits, and their events one stream partitioned by rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD
from estero.language.tree.query import Consume, Strategy
from estero.plan.automaton import AutomatonPlan
from estero.plan.identity import digest
from estero.plan.plan import Plan
from estero.plan.stages import StagedPlan
from estero.system.copies import copied

RULE: Final = "__rule"
"""The column of classified events with the place of their rule in its group, int64."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The common part of plans that differ only in their conditions; equal for all of them.

    `plan` is one of them, which partitions by rule and reads only bits of events.
    """

    key: tuple[object, ...]
    plan: Plan = field(compare=False)

    def plan_of_any(self) -> Plan:
        """The plan, independent of the rule that it was made from, so that states fit all of them."""
        return replace(self.plan, written=f"rules of the shape {digest(self.key)}")


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules with plans of one `shape`, in the order of their set; never empty.

    Without a shape, there is one rule, which is recognized by its own plan.
    """

    names: tuple[str, ...]
    plans: tuple[Plan, ...]
    shape: Shape | None = None

    @property
    def plan(self) -> Plan:
        """The plan that evaluates all of them."""
        return self.plans[0] if self.shape is None else self.shape.plan_of_any()


def groups_of(plans: Mapping[str, Plan], *, may_grow: bool = False) -> list[RuleGroup]:
    """The groups of a set of rules, in order of their first rules.

    A rule on its own has no shape, unless its group `may_grow`.
    """
    alike: dict[Shape | str, list[str]] = {}
    for name, plan in plans.items():
        alike.setdefault(shape_of(plan) or name, []).append(name)
    return [
        RuleGroup(
            tuple(names),
            tuple(plans[name] for name in names),
            shape if isinstance(shape, Shape) and (may_grow or len(names) > 1) else None,
        )
        for shape, names in alike.items()
    ]


def is_dispatchable(plan: Plan) -> bool:
    """Whether a plan depends only on events for which one of its conditions holds."""
    known = plan.classification
    return not (plan.counts_places or known.keep_all or len(known.predicates) > WORD)


def shape_of(plan: Plan) -> Shape | None:
    """The shape of a plan; None if it cannot be shared.

    This is the case for sequences with keys that are lists, for plans that depend on other events than their
    own (contiguity, deadlines, CONSUME), and if complex events are chosen or compared as they are listed.
    """
    if (
        not isinstance(plan, AutomatonPlan | StagedPlan)
        or (isinstance(plan, StagedPlan) and plan.reads_lists)
        or not is_dispatchable(plan)
        or plan.deadlines
        or plan.consume is not Consume.NONE
        or plan.interval is not None
        or plan.decides_later
        or plan.needs_enumeration
        or plan.from_first
    ):
        return None
    known = plan.classification
    # Which runs MAX, NEXT and LAST keep depends on the conditions that one event can satisfy: on its type.
    typed = plan.strategy is not Strategy.ALL
    numbered = tuple(
        EventPredicate(predicate.types if typed else (str(bit),))
        for bit, predicate in enumerate(known.predicates)
    )
    asked = copied(known, predicates=numbered, keys=known.keys or ((RULE,),))
    own_fields: dict[str, object] = {"classification": asked, "refused": (), "_fingerprints": {}}
    if isinstance(plan, AutomatonPlan):
        own_fields["automaton"] = copied(
            plan.automaton, predicates=numbered[: len(plan.automaton.predicates)]
        )
    shape: Plan = copied(plan, **own_fields)
    own = [getattr(shape, name) for name in shape.evaluated]
    key = (
        type(plan).__name__,
        *own,
        *(known.keys, known.values, known.payload, known.order, known.type_column, len(numbered)),
        *(plan.strategy, plan.limit, plan.shown_keys, plan.shown, plan.measures, plan.window),
        *(tuple(plan.shared.items()), plan.distinct, plan.by_place),
    )
    return Shape(key, shape)
