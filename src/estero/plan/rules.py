"""Which plan a query gets: the first of the rules that serves it, and why not one further up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from estero.automata.cea import CEA
from estero.automata.chain import Chain
from estero.automata.compile.compile_pattern import Compiled
from estero.automata.compile.residual_filters import beside_automaton
from estero.automata.correlated.given_chain import with_filters
from estero.automata.formulas.chain_pattern import skeleton
from estero.automata.pcea import PCEA
from estero.automata.residual import Residual
from estero.errors import NOWHERE, QueryError
from estero.language.check.ticks import in_ticks, select_in_ticks
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.selection import paths_read
from estero.language.tree.whole import with_whole
from estero.plan.automaton import in_partitions, with_registers
from estero.plan.chains import chained, with_chain
from estero.plan.draft import BESIDE, Draft
from estero.plan.joins import joined, with_joins
from estero.plan.plan import Layout, Plan

PlanName = Literal["PCEA", "chain", "partitions", "CEA"]


class Rule(NamedTuple):
    """`serve` gives the plan of a query, or the reason why it gives none, as a phrase."""

    name: PlanName
    title: str
    serve: Callable[[Draft], Plan | str]


RULES: Final = (
    Rule("PCEA", "PCEA + heap", joined),  # joins the parts of an ALL
    Rule("chain", "a chain automaton", chained),  # joins neighbours, in an index
    Rule("partitions", "a CEA in partitions", in_partitions),  # that equalities of the pattern make
    Rule("CEA", "a CEA alone", with_registers),  # registers and a filter check what it compares
)
"""From top to bottom: the first plan there is serves the query, and the last one serves every query."""

PLANS: Final = tuple(rule.name for rule in RULES)
"""The names of all plans."""


class NotServedError(ValueError):
    """A plan was asked for that cannot serve the query; says why."""


def plan_of(
    tree: QueryTree,
    layout: Layout,
    *,
    automaton: CEA | Chain | PCEA | None = None,
    residuals: Sequence[Residual] = (),
    filtered: bool = False,
    text: str = "",
    only: PlanName | None = None,
) -> Plan:
    """The plan of a query that `check_query` has found no error in.

    `automaton` takes the place of its pattern's, with what is left to check of its complex events: the
    `residuals`, and if `filtered` the filter around the pattern. `text` takes that of its own text. `only`
    asks for one of the plans: all that can serve a query have equal answers. Raises `NotServedError`, with
    the reason, where that one cannot.
    """
    layout = replace(layout, schema=layout.schema.reading(paths_read(tree)))
    whole = with_whole(tree, layout.schema.time)
    if whole.pattern != tree.pattern:
        tree, text = whole, text or str(tree)
    pattern, select = in_ticks(tree.pattern, layout.schema), select_in_ticks(tree, layout.schema)
    if (pattern, select) != (tree.pattern, tree.select):
        tree, text = replace(tree, pattern=pattern, select=select), text or str(tree)
    if automaton is not None:
        left = (*residuals, *(beside_automaton(tree.pattern) if filtered else ()))
        return _given(tree, layout, text, automaton, left)
    draft = Draft(tree, layout, text, asked_for=only is not None)
    refused: list[tuple[str, str]] = []
    for rule in RULES:
        if only in (None, rule.name):
            plan = rule.serve(draft)
            if isinstance(plan, Plan):
                return replace(plan, refused=tuple(refused))
            refused.append((rule.title, plan))
    raise NotServedError("; ".join(f"this query is not served by {title}: {why}" for title, why in refused))


def _given(
    tree: QueryTree, layout: Layout, text: str, automaton: CEA | Chain | PCEA, left: tuple[Residual, ...]
) -> Plan:
    """The plan of an automaton that was given directly, and of what is left to check beside it."""
    machine = automaton if isinstance(automaton, CEA) else skeleton(automaton)
    draft = Draft(tree, layout, text, Compiled(machine, left))
    if isinstance(automaton, CEA):
        return with_registers(draft)
    if isinstance(automaton, PCEA):
        _refuse_strategy(tree)
        return with_joins(draft, automaton)
    plan = with_chain(draft, replace(automaton, residuals=left, reasons=(BESIDE,) * len(left)))
    if isinstance(plan, Plan):
        return plan
    compiled = with_filters(automaton)
    compiled = replace(compiled, residuals=(*compiled.residuals, *left))
    filtered = with_registers(Draft(tree, layout, text, compiled))
    return replace(filtered, refused=(("a chain automaton", plan),))


def _refuse_strategy(tree: QueryTree) -> None:
    if tree.strategy is not Strategy.ALL:
        raise QueryError(
            f"SELECT {tree.strategy.value} compares complex events, which automata that gather runs do not",
            text=tree.text,
            span=tree.places.get("STRATEGY", NOWHERE),
            hint="leave the strategy out",
        )
