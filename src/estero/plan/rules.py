"""The choice of a plan for a query: the first rule that serves it, with the reasons against those before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from estero.automata.compile.residual_filters import beside_automaton
from estero.automata.residual import Residual
from estero.language.check.ticks import in_ticks, select_in_ticks
from estero.language.tree.query import QueryTree
from estero.language.tree.selection import paths_read
from estero.language.tree.whole import with_whole
from estero.plan.automaton import in_partitions, with_registers
from estero.plan.draft import NOTHING_JOINED, Draft
from estero.plan.outline import planned_once
from estero.plan.plan import Layout, Plan

if TYPE_CHECKING:
    from estero.automata.cea import CEA
    from estero.automata.chain import Chain
    from estero.automata.pcea import PCEA

PlanName = Literal["PCEA", "chain", "partitions", "CEA"]


class Rule(NamedTuple):
    """A way to plan: `serve` gives the plan of a query, or the reason why it gives none, as a phrase."""

    name: PlanName
    title: str
    serve: Callable[[Draft], Plan | str]


def _joined(draft: Draft) -> Plan | str:
    """See `joins.joined`, which a pattern without an ALL need not load."""
    if not (draft.by_name or draft.in_any_order):
        return NOTHING_JOINED
    from estero.plan.joins import joined

    return joined(draft)


def _chained(draft: Draft) -> Plan | str:
    """See `chains.chained`, which a pattern that compares nothing need not load."""
    if draft.why_no_chain is not None:
        return draft.why_no_chain
    from estero.plan.chains import chained

    return chained(draft)


RULES: Final = (
    Rule("PCEA", "PCEA + heap", _joined),  # joins the parts of an ALL
    Rule("chain", "a chain automaton", _chained),  # joins neighbours, in an index
    Rule("partitions", "a CEA in partitions", in_partitions),  # that equalities of the pattern make
    Rule("CEA", "a CEA alone", with_registers),  # registers and a filter check what it compares
)
"""The rules in order: the first one that gives a plan is taken, and the last serves every query."""

PLANS: Final = tuple(rule.name for rule in RULES)
"""The names of all plans."""


class NotServedError(ValueError):
    """Raised if the plan that was requested cannot serve the query; says why."""


def plan_of(
    tree: QueryTree,
    layout: Layout,
    *,
    automaton: CEA | Chain | PCEA | None = None,
    residuals: Sequence[Residual] = (),
    filtered: bool = False,
    text: object = "",
    only: PlanName | None = None,
) -> Plan:
    """The plan of a query without errors (`check_query`).

    `automaton` replaces that of its pattern, with the conditions left to check on its complex events: the
    `residuals`, and if `filtered` the filter around the pattern. `text` replaces its own text. `only`
    requests one of the plans: all that can serve a query have equal answers. Raises `NotServedError`, with
    the reason, if that one cannot.
    """
    known = layout
    if layout.schema.has_insides:
        layout = replace(layout, schema=layout.schema.reading(paths_read(tree)))
    whole = with_whole(tree, layout.schema.time)
    if whole.pattern != tree.pattern:
        tree, text = whole, text or str(tree)
    pattern, select = in_ticks(tree.pattern, layout.schema), select_in_ticks(tree, layout.schema)
    if (pattern, select) != (tree.pattern, tree.select):
        tree, text = replace(tree, pattern=pattern, select=select), text or str(tree)
    if automaton is None and only is None:
        plan = planned_once(tree, text, known, layout.schema, _planned_itself)
        if plan is not None:
            return plan
    if automaton is not None:
        from estero.plan.given import plan_of_given  # chains and joins, too

        left = (*residuals, *(beside_automaton(tree.pattern) if filtered else ()))
        return plan_of_given(tree, layout, text, automaton, left)
    return _first_plan(Draft(tree, layout, text, by_name=only is not None), only)


def _planned_itself(tree: QueryTree, layout: Layout) -> Plan:
    """The plan of the outline of a query; the paths in its conditions are not among the paths it reads."""
    return _first_plan(Draft(tree, replace(layout, schema=layout.schema.reading(paths_read(tree)))))


def _first_plan(draft: Draft, only: PlanName | None = None) -> Plan:
    """The plan of the first rule that serves a query; raises `NotServedError`."""
    refused: list[tuple[str, str]] = []
    for rule in RULES:
        if only in (None, rule.name):
            plan = rule.serve(draft)
            if isinstance(plan, Plan):
                return replace(plan, refused=tuple(refused))
            refused.append((rule.title, plan))
    raise NotServedError("; ".join(f"this query is not served by {title}: {why}" for title, why in refused))
