"""What Estero does with a query that an automaton joins: plan, q-tree, automaton, SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.automata.compile.compile_pattern import compile_pattern
from estero.errors import legible
from estero.language.tree.query import Consume
from estero.plan.division import division_in_words
from estero.plan.plan_chains import ChainPlan, checked_by_registers
from estero.plan.plan_in_words import residual_text
from estero.plan.plan_joins import JoinPlan, KeyedPlan
from estero.queries.explanation import predicate_lines


@dataclass(frozen=True, slots=True)
class JoinExplanation:
    """The explanation of a conjunctive query, or of a pattern whose events an automaton joins.

    `sql` is DuckDB's statement, None where no events were given.
    """

    plan: KeyedPlan
    sql: str | None = None

    def __str__(self) -> str:
        text = "\n\n".join(f"{title}\n{_indented(body)}" for title, body in self.sections())
        return legible(text, lines=True)

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        plan = self.plan
        yield "Query", plan.text
        yield "Plan", "\n".join(self._plan_lines())
        if isinstance(plan, JoinPlan):
            yield "q-tree (an atom is joined by the variables above it)", "\n".join(plan.q_tree_lines())
        if plan.residuals:
            yield "What is filtered where", "\n".join(_filter_lines(plan))
        bits = predicate_lines(plan.classification.predicates)
        yield "Predicates (one bit of an event each)", "\n".join(bits)
        if isinstance(plan, JoinPlan):
            yield "Automaton (PCEA)", "\n".join(plan.automaton.lines())
        if isinstance(plan, ChainPlan):
            yield "Automaton (chain)", "\n".join(plan.chain.lines())
        if self.sql is not None:
            from estero.classify.shown_sql import duckdb_text, spark_text

            yield "Classification (DuckDB)", duckdb_text(self.sql)
            yield "Classification (Spark)", spark_text(plan.classification)

    def svg(self) -> str:
        """The q-tree as a picture, or the automaton of a pattern."""
        match self.plan:
            case JoinPlan(q_tree=q_tree, atoms=atoms):
                from estero.plots.q_tree import plot_q_tree

                return plot_q_tree(q_tree, [atom.text for atom in atoms]).svg()
            case ChainPlan(drawn=drawn):
                from estero.plots import plot_automaton

                return plot_automaton(drawn).svg()
            case other:
                raise TypeError(f"no picture of a {type(other).__name__}")

    def _repr_html_(self) -> str:
        from html import escape

        texts = "".join(
            f"<h4>{escape(title)}</h4><pre>{escape(body)}</pre>" for title, body in self.sections()
        )
        return f"{texts}{self.svg()}"

    def _plan_lines(self) -> Iterator[str]:
        plan = self.plan
        yield from _chosen(plan)
        if plan.shown_keys:
            keys = ", ".join(f"[{', '.join(bracket)}]" for bracket in plan.shown_keys)
            yield f"partitions: by {keys}, which is a part of every join key"
        window = plan.tree.window
        if window is None:
            yield "window: none, so every event that may still be joined is kept"
        else:
            yield f"window: at most {window!s} from first to last event; memory follows it"
        if plan.consume is not Consume.NONE:
            what = "everything read so far" if plan.consume is Consume.ANY else "its partition"
            yield f"consume: after a position with an answer {what} is forgotten"
        if plan.limit is not None:
            yield f"limit: at most {plan.limit} complex events at each end; enumeration stops there"
        yield "events kept: those of which some predicate is true; the others never leave the classification"
        if self.sql is None:
            return
        exact = not plan.shown_keys and all(column.exact for column in plan.columns)
        keys = "as they are" if exact else "as two independent 64-bit hashes"
        yield f"join keys: values that the classification computes, {keys}"
        if _tells_strings_apart(plan):
            yield (
                "strings that must differ: by one 64-bit hash, which two of n different strings share with a "
                "probability of n² / 2^65"
            )
        yield f"on Spark: {division_in_words(plan)}"


def _chosen(plan: KeyedPlan) -> Iterator[str]:
    """The plan, why it was chosen, and what it guarantees."""
    read = "w events in the window" if plan.tree.window is not None else "n events read"
    size = "w" if plan.tree.window is not None else "n"
    name, compared, update = "PCEA + heap", "by equality", f"O(log {size}) per event with {read}"
    if not isinstance(plan, ChainPlan):
        yield f"{name}: the query is hierarchical, so one automaton joins all its atoms, each answer once"
        yield f"guarantee: {update}, output-linear delay between answers"
        return
    if plan.steps:
        name, compared, update = (
            "chain + ED-index",
            "by = and !=, without a window",
            "constant time per event",
        )
    elif any(plan.orders):
        name, compared = "PCEA + ordered index", "by order as well"
        update = f"O(log² {size}) per event with {read}"
    if not plan.residuals:
        yield f"{name}: each event is compared with the one before it, {compared}"
        yield f"guarantee: {update}, output-linear delay between answers"
        return
    yield f"residual filter over {name}: each event is compared with the one before it, {compared}"
    yield f"not registers: {_why_no_registers(plan)}"
    yield f"guarantee: {update}; filtered while enumerating, so there is no bound on the delay"


def _why_no_registers(plan: ChainPlan) -> str:
    """Why what is filtered is not checked while runs go on."""
    if checked_by_registers(plan):
        return "a complex event has two events at most, and registers would keep a run for each first one"
    return "they cannot check what is filtered either"


def _filter_lines(plan: KeyedPlan) -> Iterator[str]:
    """Each comparison of several events, with the place where it is checked."""
    everything = compile_pattern(plan.tree.pattern, plan.tree.streams).residuals
    yield "by the index, as each event comes:"
    yield from (f"  {residual_text(each)}" for each in everything if each not in plan.residuals)
    yield "after enumeration, on each complex event that the automaton finds:"
    for residual, reason in zip(plan.residuals, plan.reasons, strict=True):
        yield f"  {residual_text(residual)}"
        yield f"    because {reason}"


def _tells_strings_apart(plan: KeyedPlan) -> bool:
    """Whether strings are compared by order, which is that of their hashes."""
    if not isinstance(plan, ChainPlan):
        return False
    values = plan.classification.values
    return any(order is not None and values[order.left].hashed is not None for order in plan.orders)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
