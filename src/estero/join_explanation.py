"""What Estero does with a query that an automaton joins: plan, q-tree, automaton, SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.explanation import predicate_lines
from estero.language.render import render_window
from estero.plan_joins import JoinPlan


@dataclass(frozen=True, slots=True)
class JoinExplanation:
    """The explanation of a conjunctive query, or of another that is planned as one.

    `sql` is DuckDB's statement, None where no events were given.
    """

    plan: JoinPlan
    sql: str | None = None

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{_indented(body)}" for title, body in self.sections())

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        plan = self.plan
        yield "Query", plan.text
        yield "Plan", "\n".join(self._plan_lines())
        yield "q-tree (an atom is joined by the variables above it)", "\n".join(plan.q_tree_lines())
        yield "Predicates (one bit of an event each)", "\n".join(predicate_lines(plan.automaton.predicates))
        yield "Automaton (PCEA)", "\n".join(plan.automaton.lines())
        if self.sql is not None:
            from estero.pipeline.shown_sql import duckdb_text, spark_text

            yield "Classification (DuckDB)", duckdb_text(self.sql)
            yield "Classification (Spark)", spark_text(plan.classification)

    def svg(self) -> str:
        """The q-tree as a picture."""
        from estero.plots.q_tree import plot_q_tree

        return plot_q_tree(self.plan.q_tree, [atom.text for atom in self.plan.atoms]).svg()

    def _repr_html_(self) -> str:
        from html import escape

        texts = "".join(
            f"<h4>{escape(title)}</h4><pre>{escape(body)}</pre>" for title, body in self.sections()
        )
        return f"{texts}{self.svg()}"

    def _plan_lines(self) -> Iterator[str]:
        plan = self.plan
        yield "PCEA + heap: the query is hierarchical, so one automaton joins all its atoms, each answer once"
        window = plan.tree.window
        if window is None:
            yield "guarantee: O(log n) per event with n events read, output-linear delay between answers"
            yield "window: none, so every event that may still be joined is kept"
        else:
            yield "guarantee: O(log w) per event with w events in the window, output-linear delay"
            yield f"window: at most {render_window(window)} from first to last event; memory follows it"
        if plan.limit is not None:
            yield f"limit: at most {plan.limit} complex events at each end; enumeration stops there"
        yield "events kept: those of which some predicate is true; the others never leave the classification"
        if self.sql is None:
            return
        exact = all(column.exact for column in plan.columns)
        keys = "as they are" if exact else "as two independent 64-bit hashes"
        yield f"join keys: values that the classification computes, {keys}"
        if plan.partition:
            names = " or ".join(dict.fromkeys(plan.partition.values()))
            yield f"on Spark: tasks share the values of {names}, which every atom has"
        else:
            yield "on Spark: one task, because no variable is in every atom, in one attribute of each type"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
