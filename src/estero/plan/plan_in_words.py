"""A plan in sentences: which algorithm runs and why, what it guarantees, and what is filtered where.

The plans are those of an automaton with compact sets, with registers on top of it and residual filters
behind it; join_explanation.py has the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.residual import Agreement, Residual
from estero.automata.strategies import MaxAutomaton
from estero.language.tree.pattern import PartitionKey
from estero.language.tree.query import Consume, Strategy
from estero.language.tree.words import quoted
from estero.plan.division import division_in_words
from estero.plan.plan import Plan

HEAP = "PCEA + heap"


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan, why it was chosen, what it guarantees, and why it is none that joins events."""
    yield from _chosen(plan)
    if plan.not_joined:
        yield f"not {HEAP}: {plan.not_joined}"
    if plan.not_chained:
        yield f"not a chain automaton: {plan.not_chained}"
    yield f"events kept: {_kept(plan)}"
    yield f"on Spark: {division_in_words(plan)}"
    if plan.keyed:
        keys = ", ".join(f"[{', '.join(bracket)}]" for bracket in plan.classification.keys)
        why = "" if plan.shown_keys else ", because the pattern's equalities say the same,"
        yield f"partitions: by {keys}{why or ','} interleaved inside the kernel"
    if plan.tree.window is not None:
        yield f"window: at most {plan.tree.window!s} from start to end; memory follows it"
    else:
        yield "window: none, so every open partial match is kept"
    if plan.consume is not Consume.NONE:
        what = "everything read so far" if plan.consume is Consume.ANY else "its partition"
        yield f"consume: after a position with an answer {what} is forgotten"
    if plan.limit is not None:
        yield f"limit: at most {plan.limit} complex events at each end; enumeration stops there"


def filter_lines(plan: Plan) -> Iterator[str]:
    """Each filter, and the strategy, with the place where it is applied."""
    conditions = [each for each in plan.automaton.predicates if each.condition is not None]
    if conditions:
        yield "in the automaton, as bits that the SQL computes (each over one event):"
        yield from (f"  {each}" for each in conditions)
    pushed = pushed_down(plan)
    if pushed:
        yield "by registers, while runs go on (a run that violates one is dropped at once):"
        yield from (f"  {residual_text(each)}" for each in pushed)
    if plan.residuals:
        yield "after enumeration, on each complex event that the automaton finds:"
        for residual, reason in zip(plan.residuals, plan.reasons, strict=True):
            yield f"  {residual_text(residual)}"
            if reason:
                yield f"    because {reason}"
        known = plan.classification.schema
        if not known.types and not known.shared:
            yield "  (no events were given: where their kinds are known, registers may check some of these)"
    if plan.has_hidden:
        yield "after enumeration, what runs with different hidden labels find twice is given once"
    if plan.strategy is not Strategy.ALL:
        yield f"the strategy {plan.strategy.value}: {_strategy(plan)}"


def pushed_down(plan: Plan) -> list[Residual]:
    """The comparisons between variables that registers check."""
    if plan.registers is None:
        return []
    everything = compile_pattern(plan.tree.pattern, plan.tree.streams).residuals
    return [each for each in everything if each not in plan.residuals]


def residual_text(residual: Residual) -> str:
    """The condition as it is written in a query, and how often it is asked."""
    condition = residual.condition
    if isinstance(condition, Agreement):
        text = f"PARTITION BY [{', '.join(map(_key, condition.keys))}]"
    else:
        text = str(condition)
    text = f"not: {text}" if residual.refuted else text
    return text if residual.place is None else f"{text}, in each instance of its part of the pattern"


# -------------------------------------------------------------------------------------------- pieces


def _chosen(plan: Plan) -> Iterator[str]:
    if plan.residuals:
        yield "residual filter over CEA + tECS: not every filter can be checked while runs go on"
    elif plan.registers is not None:
        yield "CEA + tECS with registers: the comparisons between variables are checked while runs go on"
    else:
        yield "CEA + tECS: every predicate is over one event, so one automaton serves the whole pattern"
    if plan.registers is not None:
        number = plan.registers.registers
        yield (
            f"registers: {number} for each run; runs in one state that remember different values are kept "
            "apart, so the time per event grows with how many there are"
        )
    yield f"guarantee: {_guarantee(plan)}"


def _guarantee(plan: Plan) -> str:
    if plan.registers is not None:
        update = "time per event linear in the values that open runs remember"
    elif plan.ordered and plan.window is not None:
        update = "time per event linear in the runs that no other run beats, a front for each state"
    else:
        update = "constant time per event"
    if plan.residuals:
        return f"{update}; filtered while enumerating, so there is no bound on the delay"
    if plan.sieved:
        return f"{update}; complex events with one end are compared, so there is no bound on the delay"
    return f"{update}, output-linear delay between complex events"


def _kept(plan: Plan) -> str:
    if not plan.classification.keep_all:
        return "those of which some predicate is true; the others never leave the classification"
    if plan.keyed:
        return "all that have a partition key, because places in the partition count"
    return "all, because a run can begin or end with any of them"


def _strategy(plan: Plan) -> str:
    match plan.strategy:
        case Strategy.STRICT:
            return "in the automaton, which was rewritten"
        case Strategy.MAX if isinstance(plan.deterministic(), MaxAutomaton):
            return "in the automaton among runs with one start; then complex events with one end are compared"
        case Strategy.MAX:
            return "after enumeration, among complex events with one end"
        case _ if plan.ordered and plan.window is None:
            return "in recognition, where each state keeps the best run only"
        case _ if plan.ordered:
            return "in recognition, where each state keeps the best runs for each start in the window"
        case _:
            return "after enumeration, because filters are applied before it"


def _key(key: PartitionKey) -> str:
    attribute = quoted(key.attribute)
    return attribute if key.variable is None else f"{quoted(key.variable)}.{attribute}"
