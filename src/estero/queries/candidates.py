"""A note on filters that are checked on very many complex events before a strategy chooses among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from estero.language.check.notes import leaving_out
from estero.language.tree.expressions import Aggregate, Node, SetPredicate
from estero.language.tree.pattern import Filter, shortened
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan

UNKNOWN: Final = Layout(Schema(shared={}), type_column="type", tick_ns=1)
"""The layout of unknown events."""


def may_list_many(tree: QueryTree) -> bool:
    """Whether a query may have such a filter, so that its plan has to be examined."""
    chooses = tree.strategy not in (Strategy.ALL, Strategy.STRICT)
    filters = (node.condition for node in tree.pattern.walk() if isinstance(node, Filter))
    return chooses and any(map(_is_of_sets, filters)) and leaving_out(tree) is not None


def many_candidates(plan: Plan) -> Iterator[str]:
    """The note on the first filter that is checked on all complex events before the strategy chooses."""
    residual = next((residual for residual in plan.residuals if _is_of_sets(residual.condition)), None)
    iteration = leaving_out(plan.tree)
    if residual is None or iteration is None or plan.selects_in_kernel or not may_list_many(plan.tree):
        return
    yield (
        f"{plan.said(residual)} is checked on each complex event before {plan.strategy.value} chooses, and "
        f"{shortened(iteration)} may leave out any event: n events can give 2^n at one end; "
        "steps that skip nothing, such as A+[NOT A], give few"
    )


def _is_of_sets(condition: object) -> bool:
    """Whether a condition needs all events of a variable, so that registers never check it."""
    return isinstance(condition, Node) and any(
        isinstance(node, Aggregate | SetPredicate) for node in condition.walk()
    )
