"""What Estero does with a query, in words a person can check: plan, guarantee, automaton, SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.automata.cea import CEA, Transition
from estero.language.query import QueryTree
from estero.language.render import render_window
from estero.plan import Plan


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one query; `sql` is None where no events were given."""

    query: QueryTree
    plan: Plan
    sql: str | None = None

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{_indented(body)}" for title, body in self.sections())

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        yield "Query", str(self.query)
        yield "Plan", "\n".join(self._plan_lines())
        yield (
            "Predicates (one bit of an event each)",
            "\n".join(f"b{bit}  {predicate}" for bit, predicate in enumerate(self.plan.automaton.predicates)),
        )
        yield "Automaton", "\n".join(automaton_lines(self.plan.automaton))
        if self.sql is not None:
            yield "Classification (DuckDB)", pretty_sql(self.sql)

    def svg(self) -> str:
        """The automaton as a picture."""
        from estero.plots import plot_automaton

        return plot_automaton(self.plan.automaton).svg()

    def _repr_html_(self) -> str:
        from html import escape

        texts = "".join(
            f"<h4>{escape(title)}</h4><pre>{escape(body)}</pre>" for title, body in self.sections()
        )
        return f"{texts}{self.svg()}"

    def _plan_lines(self) -> Iterator[str]:
        plan = self.plan
        yield "CEA + tECS: every predicate is over one event, so one automaton serves the whole pattern"
        yield "guarantee: constant time per event, output-linear delay between complex events"
        yield "events kept: " + (
            "all that have a partition key, because ':' counts events of the partition"
            if plan.classification.keep_all
            else "those of which some predicate is true; the others never leave the classification"
        )
        if plan.keyed:
            keys = ", ".join(f"[{', '.join(bracket)}]" for bracket in plan.classification.keys)
            yield f"partitions: by {keys}, interleaved inside the kernel"
        if self.query.window is not None:
            yield f"window: at most {render_window(self.query.window)} from start to end; memory follows it"
        else:
            yield "window: none, so every open partial match is kept"


def automaton_lines(automaton: CEA) -> Iterator[str]:
    """The states and transitions of an automaton, a line each."""
    begins, accepts = _states(automaton.initial), _states(automaton.final)
    yield f"{automaton.states} states; a run begins in {begins} and accepts in {accepts}"
    yield from (_transition(each) for each in automaton.transitions)


def _transition(transition: Transition) -> str:
    guard = " and ".join(
        [
            *(f"b{bit}" for bit in sorted(transition.guard.present)),
            *(f"not b{bit}" for bit in sorted(transition.guard.absent)),
        ]
    )
    marks = f"mark {', '.join(sorted(transition.labels))}" if transition.labels else "pass over"
    return f"{transition.source} → {transition.target}  on {guard or 'any event'}: {marks}"


def _states(states: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(states)))


def pretty_sql(sql: str) -> str:
    """The statement on several lines."""
    import sqlglot

    return sqlglot.transpile(sql, read="duckdb", write="duckdb", pretty=True)[0]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
