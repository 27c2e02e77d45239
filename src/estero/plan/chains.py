"""Plans whose filters compare neighbours: a chain automaton, and how its runs wait.

Neighbours are an event of a run and the one marked just before it. If they are compared by equality and
disequality only and there is no window, runs wait in an ED-index; otherwise in heaps by their keys, and in an
ordered index where they are compared by order (docs/architecture.md). Comparisons that no index serves are
checked on the enumerated complex events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from estero.automata.ages import by_age
from estero.automata.cea import CEA
from estero.automata.chain import Chain, ChainTransition, ColumnTransition, as_pcea, chain_columns
from estero.automata.compile.compile_pattern import Compiled, compile_pattern
from estero.automata.correlated.compile_chain import chain_of
from estero.automata.correlated.filter_cases import in_cases
from estero.automata.correlated.given_chain import indexed
from estero.automata.correlated.push_down import Decision
from estero.automata.pcea import PceaTransition
from estero.automata.residual import Residual, predicates_called
from estero.errors import LimitExceeded
from estero.language.check.set_predicates import registered_among
from estero.language.tree.query import Consume, Strategy
from estero.plan.draft import NOTHING_COMPARED, Draft
from estero.plan.key_values import Values
from estero.plan.keyed import KeyedPlan
from estero.plan.keys import Order
from estero.plan.plan import Opened, Section

_STRATEGY: Final = "the strategy {} compares whole complex events"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan(KeyedPlan):
    """How a query is evaluated by a chain automaton; `drawn` is the pattern's own automaton.

    If there are `steps`, these are the transitions and runs wait in an ED-index. Otherwise `transitions` are
    those of a parallelised automaton, and `orders` the comparisons that each of them makes beside its key.
    `in_registers` are the residuals that registers could check.
    """

    evaluated: ClassVar[tuple[str, ...]] = ("columns", "states", "final", "steps", "transitions", "orders")
    checked_by = "the index"

    chain: Chain
    pattern: CEA
    steps: tuple[ColumnTransition, ...] = ()
    transitions: tuple[PceaTransition, ...] = ()
    orders: tuple[Order | None, ...] = ()
    in_registers: tuple[Residual, ...] = ()

    @property
    def states(self) -> tuple[str, ...]:
        """The states of the chain by their names."""
        return self.chain.states

    @property
    def final(self) -> frozenset[int]:
        """The numbers of its final states."""
        return self.chain.final

    @property
    def ordered(self) -> bool:
        """Whether events are compared by order, beyond their join keys."""
        return any(self.orders)

    @property
    def has_hidden(self) -> bool:
        """Whether the same answer may be found twice."""
        return bool(self.chain.repeats)

    @property
    def kernels(self) -> str:
        if self.steps:
            return "chain-ed-index"
        return "pcea-ordered-index" if self.ordered else "pcea-heap"

    @property
    def machine(self) -> Chain:
        return self.chain

    @property
    def drawn(self) -> CEA:
        """The pattern's own automaton."""
        return self.pattern

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening_by_keys import opened_in_heaps, opened_in_lists  # loads the kernels

        del ordinals, counting, total
        states, final = len(self.chain.states), sorted(self.chain.final)
        if self.steps:
            return opened_in_lists(self, self.columns, states, self.steps, final, words)
        hidden = [transition.hidden for transition in self.chain.transitions]
        transitions = list(zip(self.transitions, hidden, self.orders, strict=True))
        return opened_in_heaps(self, self.columns, states, transitions, final, words)

    # ------------------------------------------------------------------------------------- in words

    def lines(self) -> Iterator[str]:
        if self.steps:
            name, compared = "chain + ED-index", "by = and !=, and there is no window"
            update = "constant time per event"
        elif self.ordered:
            name, compared = (
                "PCEA + ordered index",
                "by <, <=, > or >=" if self.chain.ordered else "by = and !=",
            )
            update = self.heap_guarantee("O(log² {})")
        else:
            name, compared, update = "PCEA + heap", "by =", self.heap_guarantee("O(log {})")
        over = "residual filter over " if self.residuals else ""
        if self.chain.compares:
            yield f"{over}{name}: each event is compared with the one before it in its run, {compared}"
        else:
            yield f"{over}{name}: all comparisons always hold, so none has to be evaluated"
        if self.residuals:
            yield f"guarantee: {update}; filters are evaluated during enumeration, so the delay is unbounded"
            yield f"not registers: {self._why_no_registers()}"
        elif self.chain.repeats:
            yield f"guarantee: {update}; duplicates are removed, so the delay is unbounded"
            yield f"duplicates: {self.chain.repeats}"
        else:
            yield f"guarantee: {update}, output-linear delay between complex events"

    def key_lines(self) -> Iterator[str]:
        """The keys by which events are joined, and how strings are distinguished."""
        yield from KeyedPlan.key_lines(self)
        values = self.classification.values
        if any(order is not None and values[order.left].hashed is not None for order in self.orders):
            yield (
                "strings compared by !=: by one 64-bit hash, which two of n different strings share with "
                "probability n² / 2^65"
            )

    def _why_no_registers(self) -> str:
        if self.in_registers:
            return "complex events have at most two events, and registers would keep a run for each first one"
        return "they cannot check the remaining filters either"

    def automaton_sections(self) -> Iterator[Section]:
        """The chain automaton."""
        yield "Automaton (chain)", self.chain.lines()


def chained(draft: Draft) -> ChainPlan | str:
    """The plan on a chain automaton, or the reason why there is none or another plan is better."""
    if draft.why_no_chain is not None:
        return draft.why_no_chain
    schema = draft.layout.schema
    aged = by_age(draft.compiled.automaton, draft.compiled.residuals)
    if not draft.by_name and not isinstance(aged, str):
        return "the age of runs decides the distances of steps"
    if not draft.by_name and not draft.best.compares:
        if isinstance(draft.in_partitions, str):
            return NOTHING_COMPARED
        return "equalities define partitions, in which nothing else is compared"
    refused = ""
    for compiled, last in _ways_to_compile(draft):
        chain = chain_of(compiled.automaton, compiled.residuals, schema, windowed=draft.window is not None)
        if isinstance(chain, str):
            refused = refused or chain
        elif last or all(residual.place is None for residual in chain.residuals):
            plan = _planned(draft, chain, compiled)
            return plan if draft.by_name else _why_registers(plan) or plan
    return refused


def with_chain(draft: Draft, own: Chain) -> ChainPlan | str:
    """The plan of a query whose automaton is a chain that was given directly, or why there is none."""
    strategy = draft.tree.strategy
    if strategy is not Strategy.ALL:
        return _STRATEGY.format(strategy.value)
    chain = indexed(own, draft.layout.schema, windowed=draft.window is not None)
    if isinstance(chain, str):
        return chain
    chain = replace(chain, residuals=own.residuals, reasons=own.reasons)
    return _planned(draft, chain, draft.compiled)


def _ways_to_compile(draft: Draft) -> Iterator[tuple[Compiled, bool]]:
    """The pattern with OR of patterns for OR of comparisons, then as it is; and whether this is the last.

    Both are without the equalities that PARTITION BY of the query already implies.
    """
    compilation = draft.in_partitions if draft.tree.partition_by else ""
    pattern, compiled = draft.pattern, draft.compiled
    if not isinstance(compilation, str) and compilation.tree.partition_by == draft.tree.partition_by:
        pattern, compiled = compilation.tree.pattern, compilation.compiled
    cases = in_cases(pattern)
    if cases != pattern:
        with suppress(LimitExceeded):  # the unchanged pattern needs no cases
            yield compile_pattern(cases, draft.tree.streams), False
    yield compiled, True


def _why_registers(plan: ChainPlan) -> str:
    """The reason why registers serve a query better than a chain does, as a phrase; empty if they do not.

    Registers can check, as runs go on, what a chain leaves to a filter of whole complex events. For pairs of
    events that saves nothing: a filter looks at no more of them than there are runs with different registers,
    and at fewer where the index is selective. Inside partitions there are few runs, and registers cost less
    for each (measured, with up to hundreds of them: half of what the filter costs).
    """
    if not plan.in_registers:
        return ""
    left = f"it would leave {plan.said(plan.in_registers[0])} to a filter"
    if plan.chain.most_events is None or plan.chain.most_events > 2:
        return f"{left}; registers drop runs that violate it"
    if plan.shared or plan.shown_keys:
        return f"{left}; within partitions, registers have few runs to check"
    return ""


def _planned(draft: Draft, chain: Chain, compiled: Compiled) -> ChainPlan:
    schema = draft.layout.schema
    values = Values(schema)
    orders: Sequence[Order | None] = ()
    steps: tuple[ColumnTransition, ...] = ()
    transitions: tuple[PceaTransition, ...] = ()
    if draft.window is None and not chain.ordered:
        by_number = chain_columns(chain)
        steps = by_number.transitions
        columns = values.columns(by_number.keys)
    else:
        automaton = as_pcea(chain)
        transitions = automaton.transitions
        columns = values.columns(automaton.keys)
        orders = [_order(transition, chain, values) for transition in chain.transitions]
    decide = Decision(compiled.automaton, schema)
    return ChainPlan(
        tree=draft.tree,
        written=draft.text,
        chain=chain,
        pattern=compiled.automaton,
        steps=steps,
        transitions=transitions,
        orders=tuple(orders),
        columns=columns,
        classification=draft.classification(
            chain.predicates,
            chain.residuals,
            tuple(values.numbered),
            keys=draft.keys,
        ),
        shown=draft.shown,
        measures=draft.measures,
        window=draft.window,
        interval=draft.interval,
        pushed=tuple(residual for residual in compiled.residuals if residual not in chain.residuals),
        residuals=chain.residuals,
        reasons=chain.reasons,
        predicates=registered_among(predicates_called(chain.residuals)),
        shared=_shared_value(draft, chain),
        in_registers=tuple(
            residual for residual in chain.residuals if not isinstance(decide.drafts(residual), str)
        ),
    )


def _order(transition: ChainTransition, chain: Chain, values: Values) -> Order | None:
    """The comparison that one transition makes beside its equalities."""
    compared = [*transition.different, *([] if transition.order is None else [transition.order])]
    if not compared or transition.source is None:
        return None
    (one,) = compared
    before = tuple(
        dict.fromkeys(
            name
            for step in chain.transitions
            if step.target == transition.source
            for name in chain.predicates[step.predicate].types
        )
    )
    here = chain.predicates[transition.predicate].types
    high = transition.upper
    upper = None if high is None else (values.in_order(high.right, here), high.operator)
    return Order(one.operator, values.in_order(one.left, before), values.in_order(one.right, here), upper)


def _shared_value(draft: Draft, chain: Chain) -> dict[str, str]:
    """For each type, an attribute whose value all events of an answer share; empty if there is none.

    It is also empty if the query has keys of its own, and if this attribute does not decide which events are
    forgotten.
    """
    if draft.tree.partition_by or draft.tree.consume is not Consume.NONE:
        return {}
    shared: dict[str, str] = {}
    for name in dict.fromkeys(name for predicate in chain.predicates for name in predicate.types):
        attributes = draft.layout.schema.attributes_of(name) or {}
        usable = [attribute for attribute in draft.shared_keys if attribute in attributes]
        if not usable:
            return {}
        shared[name] = usable[0]
    return shared
