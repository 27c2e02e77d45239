"""The stair of plans: which of those that can serve a query it gets, and why not one further up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from estero.automata.all_joins import joined_all
from estero.errors import LimitExceeded
from estero.plan import Layout, Plan, plan_query
from estero.plan_joins import AnyPlan, JoinPlan, plan_join

if TYPE_CHECKING:
    from estero.automata.cea import CEA
    from estero.language.query import QueryTree

PlanName = Literal["CEA", "PCEA"]
"""An automaton with compact sets, registers and filters behind it; an automaton that joins."""

_FEW_PARTS: Final = 6
"""So many parts of an ALL are few enough for an automaton with a state for each set of them."""


def plan_of(
    tree: QueryTree, layout: Layout, *, automaton: CEA | None = None, only: PlanName | None = None
) -> AnyPlan:
    """The plan of a query that `check_query` has found no error in; `automaton` replaces its pattern's.

    `only` asks for one of the plans: all that can serve a query have equal answers. Raises `ValueError`,
    with the reason, where that one cannot.
    """
    if automaton is not None:
        if only == "PCEA":
            raise ValueError("this query is not served by PCEA: an automaton takes the place of the pattern")
        return plan_query(tree, layout, automaton=automaton)
    joined = "" if only == "CEA" else join_plan(tree, layout)
    if isinstance(joined, JoinPlan):
        if only is None and len(joined.atoms) <= _FEW_PARTS:
            plan = plan_query(tree, layout)
            if not _compares(plan):  # all of it is one partition: constant time per event
                return plan
        return joined
    if only == "PCEA":
        raise ValueError(f"this query is not served by PCEA: {joined or 'no equality joins parts of an ALL'}")
    plan = plan_query(tree, layout)
    return replace(plan, not_joined=joined) if joined and _compares(plan) else plan


def _compares(plan: Plan) -> bool:
    """Whether something is left that compares events with each other."""
    return bool(plan.residuals) or plan.registers is not None


def join_plan(tree: QueryTree, layout: Layout) -> JoinPlan | str:
    """ALL of parts that equalities join, as an automaton that joins; or a phrase on why it is not.

    The phrase is empty where nothing is joined.
    """
    atoms = joined_all(tree, layout.schema)
    if isinstance(atoms, str):
        return atoms
    try:
        return plan_join(atoms, tree, layout, str(tree))
    except LimitExceeded as error:
        return str(error)
