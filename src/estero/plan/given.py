"""Plans of automata that users give directly."""

from __future__ import annotations

from dataclasses import replace

from estero.automata.cea import CEA
from estero.automata.chain import Chain
from estero.automata.compile.compile_pattern import Compiled
from estero.automata.correlated.given_chain import with_filters
from estero.automata.pcea import PCEA
from estero.automata.residual import Residual
from estero.automata.skeleton import skeleton
from estero.errors import NOWHERE, QueryError
from estero.language.tree.query import QueryTree, Strategy
from estero.plan.automaton import with_registers
from estero.plan.chains import with_chain
from estero.plan.draft import BESIDE, Draft
from estero.plan.joins import with_joins
from estero.plan.plan import Layout, Plan


def plan_of_given(
    tree: QueryTree, layout: Layout, text: object, automaton: CEA | Chain | PCEA, left: tuple[Residual, ...]
) -> Plan:
    """The plan of an automaton that was given directly, with the conditions left to check beside it."""
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
