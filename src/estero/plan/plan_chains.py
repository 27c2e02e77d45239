"""From a query whose filters compare neighbours to a plan: a chain automaton, and how its runs wait.

Neighbours are an event of a run and the one it marked before. Where they are compared by equality and
disequality only and there is no window, runs wait in an ED-index; else in heaps by their keys, and in an
ordered index where they are compared by order (algorithms.md, "The planner"). What no index serves is
checked of the complex events that are enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA
from estero.automata.chain import Chain, ChainTransition, ColumnTransition, as_pcea, chain_columns
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.correlated.compile_chain import chain_of
from estero.automata.correlated.equality_classes import partitioned
from estero.automata.correlated.push_down import Decision
from estero.automata.pcea import PceaTransition
from estero.automata.residual import Residual, columns_read, predicates_called
from estero.language.check.set_predicates import registered_among
from estero.language.tree.expressions import ComparisonOperator
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import Consume, EventWindow, QueryTree, Strategy
from estero.language.tree.schema import Schema
from estero.language.tree.selection import shown_labels
from estero.plan.plan import Classification, Layout, payload_of, window_in_ticks
from estero.plan.plan_in_words import residual_text
from estero.plan.plan_joins import KeyedPlan, Values


@dataclass(frozen=True, slots=True)
class Order:
    """Value column `left` of the event before compares by `operator` with column `right` of that at hand.

    Where it is in a range, that is the lower end, and it compares by the second of `upper` with the first.
    """

    operator: ComparisonOperator
    left: int
    right: int
    upper: tuple[int, ComparisonOperator] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan(KeyedPlan):
    """How a query is evaluated by a chain automaton; `drawn` is the pattern's own automaton.

    Where `steps` are there, runs wait in an ED-index and these are the transitions. Else `transitions` are
    those of a parallelised automaton, and `orders` what each of them compares beside its key.
    """

    chain: Chain
    drawn: CEA
    steps: tuple[ColumnTransition, ...] = ()
    transitions: tuple[PceaTransition, ...] = ()
    orders: tuple[Order | None, ...] = ()


def plan_chain(tree: QueryTree, layout: Layout) -> ChainPlan | str:
    """The plan of a checked query on a chain automaton, or a phrase on why there is none."""
    if tree.strategy is not Strategy.ALL:
        return f"the strategy {tree.strategy.value} compares whole complex events"
    compiled = compile_pattern(_within_partitions(tree, layout.schema), tree.streams)
    chain = chain_of(compiled.automaton, compiled.residuals, layout.schema, windowed=tree.window is not None)
    if isinstance(chain, str):
        return chain
    if not chain.compares:
        return "nothing is compared"
    return _planned(tree, layout, chain, compiled.automaton)


def _within_partitions(tree: QueryTree, schema: Schema) -> Pattern:
    """The pattern, without the equalities that PARTITION BY of the query says already."""
    found = partitioned(tree, schema) if tree.partition_by else ""
    if isinstance(found, QueryTree) and found.partition_by == tree.partition_by:
        return found.pattern
    return tree.pattern


def why_registers(plan: ChainPlan) -> str:
    """A phrase on why registers serve a query better than a chain does; empty where they do not.

    What a chain leaves to a filter of whole complex events, registers may check as runs go on. Of pairs of
    events that saves nothing: a filter looks at no more of them than there are runs with other registers, and
    at fewer where the index is selective. Inside partitions there are few runs, and registers cost less for
    each (measured, with up to hundreds of them: half of what the filter costs).
    """
    checked = checked_by_registers(plan)
    if not checked:
        return ""
    left = f"it would leave {residual_text(checked[0])} to a filter"
    if plan.chain.most_events is None or plan.chain.most_events > 2:
        return f"{left}; registers end runs that violate it"
    if plan.partition or plan.shown_keys:
        return f"{left}; inside partitions registers have few runs to check"
    return ""


def checked_by_registers(plan: ChainPlan) -> list[Residual]:
    """What a chain leaves to a filter and registers could check."""
    decide = Decision(plan.drawn, plan.classification.schema)
    return [each for each in plan.residuals if not isinstance(decide.drafts(each), str)]


def _planned(tree: QueryTree, layout: Layout, chain: Chain, drawn: CEA) -> ChainPlan | str:
    values = Values(layout.schema)
    orders: Sequence[Order | None] = ()
    steps: tuple[ColumnTransition, ...] = ()
    transitions: tuple[PceaTransition, ...] = ()
    if tree.window is None and not chain.ordered:
        by_number = chain_columns(chain)
        steps = by_number.transitions
        columns = values.columns(by_number.keys)
    else:
        automaton = as_pcea(chain)
        transitions = automaton.transitions
        columns = values.columns(automaton.keys)
        orders = [_order(each, chain, values) for each in chain.transitions]
    shown = shown_labels(tree, layout.schema)
    keys = tuple(bracket.alternatives for bracket in tree.partition_by)
    checked = columns_read(chain.residuals, layout.schema, layout.type_column)
    return ChainPlan(
        tree=tree,
        text=str(tree),
        chain=chain,
        drawn=drawn,
        steps=steps,
        transitions=transitions,
        orders=tuple(orders),
        columns=columns,
        classification=Classification(
            predicates=chain.predicates,
            schema=layout.schema,
            type_column=layout.type_column,
            only_type=layout.only_type,
            keys=keys,
            order=layout.order,
            payload=payload_of(shown, keys, checked),
            values=tuple(values.found),
        ),
        shown=shown,
        window=window_in_ticks(tree, layout),
        window_in_positions=isinstance(tree.window, EventWindow),
        partition=_partition(tree, chain, layout.schema),
        residuals=chain.residuals,
        reasons=chain.reasons,
        predicates=registered_among(predicates_called(chain.residuals)),
    )


def _order(transition: ChainTransition, chain: Chain, values: Values) -> Order | None:
    """What one transition compares beside equalities."""
    compared = [*transition.different, *([] if transition.order is None else [transition.order])]
    if not compared or transition.source is None:
        return None
    (one,) = compared
    before = tuple(
        dict.fromkeys(
            name
            for each in chain.transitions
            if each.target == transition.source
            for name in chain.predicates[each.predicate].types
        )
    )
    here = chain.predicates[transition.predicate].types
    high = transition.upper
    upper = None if high is None else (values.in_order(high.right, here), high.operator)
    return Order(one.operator, values.in_order(one.left, before), values.in_order(one.right, here), upper)


def _partition(tree: QueryTree, chain: Chain, schema: Schema) -> dict[str, str]:
    """For each type an attribute whose value all events of an answer share; empty where there is none.

    Nor is there one where the query has keys of its own, and where what is forgotten is not told by it.
    """
    if tree.partition_by or tree.consume is not Consume.NONE:
        return {}
    found = partitioned(tree, schema)
    if isinstance(found, str):
        return {}
    types = dict.fromkeys(name for each in chain.predicates for name in each.types)
    shared: dict[str, str] = {}
    for name in types:
        attributes = schema.attributes_of(name) or {}
        there = [each for each in found.partition_by[0].alternatives if each in attributes]
        if not there:
            return {}
        shared[name] = there[0]
    return shared
