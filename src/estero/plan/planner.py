"""The stair of plans: which of those that can serve a query it gets, and why not one further up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from estero.automata.joins.all_joins import joined_all
from estero.errors import LimitExceeded
from estero.plan.plan import Layout, plan_query
from estero.plan.plan_chains import ChainPlan, plan_chain, why_registers
from estero.plan.plan_joins import AnyPlan, JoinPlan, plan_join

if TYPE_CHECKING:
    from estero.automata.cea import CEA
    from estero.language.tree.query import QueryTree

PlanName = Literal["PCEA", "partitions", "chain", "CEA"]
"""What joins parts of an ALL; a CEA in the partitions that equalities make; what joins neighbours; a CEA with
registers and filters."""
PLANS: Final[tuple[PlanName, ...]] = ("PCEA", "partitions", "chain", "CEA")
"""All of them."""


class NotServedError(ValueError):
    """A plan was asked for that cannot serve the query; says why."""


def plan_of(
    tree: QueryTree, layout: Layout, *, automaton: CEA | None = None, only: PlanName | None = None
) -> AnyPlan:
    """The plan of a query that `check_query` has found no error in; `automaton` replaces its pattern's.

    `only` asks for one of the plans: all that can serve a query have equal answers. Raises
    `NotServedError`, with the reason, where that one cannot.
    """
    if only is not None:
        return _asked_for(tree, layout, only)
    if automaton is not None:
        return plan_query(tree, layout, automaton=automaton)
    joined = join_plan(tree, layout)
    if isinstance(joined, JoinPlan):
        # Also where all of it is one partition: measured, heaps beat a state for each set of parts
        # (benchmarks/correlated.py).
        return joined
    plan = plan_query(tree, layout)
    if not plan.residuals and plan.registers is None:
        return plan
    chained = plan_chain(tree, layout)
    if isinstance(chained, ChainPlan):
        better = why_registers(chained)
        if not better:
            return chained
        chained = better
    return replace(plan, not_joined=joined, not_chained=chained)


def _asked_for(tree: QueryTree, layout: Layout, name: PlanName) -> AnyPlan:
    if name == "PCEA":
        joined = join_plan(tree, layout)
        if isinstance(joined, str):
            reason = joined or "no equality joins parts of an ALL"
            raise NotServedError(f"this query is not served by PCEA: {reason}")
        return joined
    if name == "chain":
        chained = plan_chain(tree, layout)
        if isinstance(chained, str):
            raise NotServedError(f"this query is not served by a chain: {chained}")
        return chained
    plan = plan_query(tree, layout, partitions=name == "partitions")
    if name == "partitions" and plan.classification.keys == plan.shown_keys:
        raise NotServedError("this query is not served by partitions: its equalities make none")
    return plan


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
