"""The stair of plans: which of those that can serve a query it gets, and why not one further up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from estero.automata.all_joins import joined_all
from estero.errors import LimitExceeded
from estero.plan import Layout, plan_query
from estero.plan_joins import AnyPlan, JoinPlan, plan_join

if TYPE_CHECKING:
    from estero.automata.cea import CEA
    from estero.language.query import QueryTree

PlanName = Literal["CEA", "PCEA"]
"""An automaton with compact sets, registers and filters behind it; an automaton that joins."""


def plan_of(
    tree: QueryTree, layout: Layout, *, automaton: CEA | None = None, only: PlanName | None = None
) -> AnyPlan:
    """The plan of a query that `check_query` has found no error in; `automaton` replaces its pattern's.

    `only` asks for one of the plans: all that can serve a query have equal answers. Raises `ValueError`,
    with the reason, where that one cannot.
    """
    joined: JoinPlan | str = "an automaton takes the place of the pattern"
    if automaton is None and only != "CEA":
        joined = join_plan(tree, layout)
    if isinstance(joined, JoinPlan):
        return joined
    if only == "PCEA":
        raise ValueError(f"this query is not served by PCEA: {joined or 'no equality joins parts of an ALL'}")
    plan = plan_query(tree, layout, automaton=automaton)
    filtered = plan.residuals or plan.registers is not None
    return replace(plan, not_joined=joined) if filtered and automaton is None and only is None else plan


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
