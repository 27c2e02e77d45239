"""What Estero does with a query that an automaton joins: plan, q-tree, automaton, SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.explanation import predicate_lines
from estero.language.render import render_window
from estero.plan_chains import ChainPlan
from estero.plan_joins import JoinPlan, KeyedPlan


@dataclass(frozen=True, slots=True)
class JoinExplanation:
    """The explanation of a conjunctive query, or of a pattern whose events an automaton joins.

    `sql` is DuckDB's statement, None where no events were given.
    """

    plan: KeyedPlan
    sql: str | None = None

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{_indented(body)}" for title, body in self.sections())

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        plan = self.plan
        yield "Query", plan.text
        yield "Plan", "\n".join(self._plan_lines())
        if isinstance(plan, JoinPlan):
            yield "q-tree (an atom is joined by the variables above it)", "\n".join(plan.q_tree_lines())
        bits = predicate_lines(plan.classification.predicates)
        yield "Predicates (one bit of an event each)", "\n".join(bits)
        if isinstance(plan, JoinPlan):
            yield "Automaton (PCEA)", "\n".join(plan.automaton.lines())
        if isinstance(plan, ChainPlan):
            yield "Automaton (chain)", "\n".join(plan.chain.lines())
        if self.sql is not None:
            from estero.pipeline.shown_sql import duckdb_text, spark_text

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
            yield f"window: at most {render_window(window)} from first to last event; memory follows it"
        if plan.limit is not None:
            yield f"limit: at most {plan.limit} complex events at each end; enumeration stops there"
        yield "events kept: those of which some predicate is true; the others never leave the classification"
        if self.sql is None:
            return
        exact = not plan.shown_keys and all(column.exact for column in plan.columns)
        keys = "as they are" if exact else "as two independent 64-bit hashes"
        yield f"join keys: values that the classification computes, {keys}"
        if plan.shown_keys:
            yield "on Spark: tasks share the partition keys"
        elif plan.partition:
            names = " or ".join(dict.fromkeys(plan.partition.values()))
            yield f"on Spark: tasks share the values of {names}, which every event of an answer has"
        else:
            yield "on Spark: one task, because not all events of an answer share a value"


def _chosen(plan: KeyedPlan) -> Iterator[str]:
    """The plan, why it was chosen, and what it guarantees."""
    read = "w events in the window" if plan.tree.window is not None else "n events read"
    size = "w" if plan.tree.window is not None else "n"
    if not isinstance(plan, ChainPlan):
        yield "PCEA + heap: the query is hierarchical, so one automaton joins all its atoms, each answer once"
        yield f"guarantee: O(log {size}) per event with {read}, output-linear delay between answers"
    elif plan.steps:
        yield "chain + ED-index: each event is compared with the one before it, by = and !=, without a window"
        yield "guarantee: constant time per event, output-linear delay between answers"
    elif any(plan.orders):
        yield "PCEA + ordered index: each event is compared with the one before it, by order as well"
        yield f"guarantee: O(log² {size}) per event with {read}, output-linear delay between answers"
    else:
        yield "PCEA + heap: each event is compared with the one before it, by equality"
        yield f"guarantee: O(log {size}) per event with {read}, output-linear delay between answers"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
