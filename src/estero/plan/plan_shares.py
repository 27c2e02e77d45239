"""Which queries may have their enumeration shared among tasks, and why not the others (distributed-cea)."""

from __future__ import annotations

from typing import TypeGuard

from estero.automata.cea import CEA
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Plan
from estero.plan.plan_joins import AnyPlan


def may_be_shared(plan: AnyPlan) -> TypeGuard[Plan]:
    """Whether tasks share the enumeration where the events promise many complex events, and nobody asks.

    Where the work can be divided by keys or by time it is: recognition is divided then, too. What is left is
    one order of events that one task has to see; another task that sees them as well costs a copy of the
    relevant events, and saves half of an enumeration. That is not much where each end has one complex event,
    or so few that LIMIT or the strategy leaves. And the automaton has to tell how many there may be: what
    registers and joins compare is not known before the events are read.
    """
    if plan.keyed or plan.consume is not Consume.NONE or _is_cut(plan):
        return False
    if plan.limit is not None or plan.tree.strategy not in {Strategy.ALL, Strategy.STRICT}:
        return False
    if not isinstance(plan, Plan) or plan.registers is not None or plan.has_hidden:
        return False
    return _marks_several(plan.automaton)


def why_not_shared(plan: AnyPlan) -> str:
    """Why sharing would save nothing even if it was asked for; empty where it would."""
    if plan.sieved and plan.consume is not Consume.NONE:
        return "what CONSUME BY forgets depends on filters after enumeration, so each task would do all of it"
    return ""


def _is_cut(plan: AnyPlan) -> bool:
    """Whether it is cut by time."""
    return plan.window is not None and plan.classification.schema.time is not None


def _marks_several(automaton: CEA) -> bool:
    """Whether some run marks more than one event."""
    marked = {each.target for each in automaton.transitions if each.labels}
    before = None
    while marked != before:
        before = set(marked)
        marked |= {each.target for each in automaton.transitions if each.source in marked}
    return any(each.labels and each.source in marked for each in automaton.transitions)
