"""What Estero does with a query, in words a person can check: plan, filters, automaton, SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from estero.automata.cea import CEA, FIRST, EventPredicate, LabelSet, Transition
from estero.automata.residual import HiddenSet
from estero.errors import legible
from estero.language.tree.query import QueryTree
from estero.plan.plan import Plan
from estero.plan.plan_in_words import filter_lines, plan_lines

FEW_STATES, FEW_CLASSES = 200, 64
"""The whole deterministic automaton is worked out for an explanation if it is no bigger than this."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one query. `sql` is DuckDB's statement, None where no events were given.

    `text` is how the query prints, where that is not the text of its tree.
    """

    query: QueryTree
    plan: Plan
    sql: str | None = None
    text: str = ""

    def __str__(self) -> str:
        text = "\n\n".join(f"{title}\n{_indented(body)}" for title, body in self.sections())
        return legible(text, lines=True)

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        plan = self.plan
        yield "Query", self.text or str(self.query)
        yield "Plan", "\n".join(plan_lines(plan))
        filters = "\n".join(filter_lines(plan))
        if filters:
            yield "What is filtered where", filters
        yield "Predicates (one bit of an event each)", "\n".join(predicate_lines(plan.automaton.predicates))
        yield "Automaton", "\n".join((*automaton_lines(plan.automaton), _size(plan)))
        yield "Label sets", "\n".join(_label_lines(plan.automaton))
        if self.sql is not None:
            from estero.classify.shown_sql import duckdb_text, spark_text

            yield "Classification (DuckDB)", duckdb_text(self.sql)
            yield "Classification (Spark)", spark_text(plan.classification)

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


def automaton_lines(automaton: CEA) -> Iterator[str]:
    """The states and transitions of an automaton, a line each."""
    begins, accepts = _states(automaton.initial), _states(automaton.final)
    yield f"{automaton.states} states; a run begins in {begins} and accepts in {accepts}"
    yield from (_transition(each) for each in automaton.transitions)
    if any(each.hidden for each in automaton.transitions):
        yield "(#…): hidden labels, which tell filters what belongs together; answers do not show them"


def _transition(transition: Transition) -> str:
    guard = " and ".join(
        [
            *(f"b{bit}" for bit in sorted(transition.guard.present)),
            *(f"not b{bit}" for bit in sorted(transition.guard.absent)),
        ]
    )
    marks = f"mark {', '.join(sorted(transition.labels))}" if transition.labels else "pass over"
    hidden = f" ({_hidden(transition.hidden)})" if transition.hidden else ""
    return f"{transition.source} → {transition.target}  on {guard or 'any event'}: {marks}{hidden}"


def _states(states: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(states)))


def _hidden(labels: HiddenSet) -> str:
    return ", ".join(map(str, sorted(labels)))


def predicate_lines(predicates: Iterable[EventPredicate]) -> Iterator[str]:
    """The predicates with their bits, a line each."""
    for bit, predicate in enumerate(predicates):
        yield f"b{bit}  {predicate}{' (told by its position)' if predicate == FIRST else ''}"


def _label_lines(automaton: CEA) -> Iterator[str]:
    marks: dict[tuple[LabelSet, HiddenSet], None] = {
        (each.labels, each.hidden): None for each in automaton.transitions if each.labels or each.hidden
    }
    for number, (labels, hidden) in enumerate(marks):
        shown = ", ".join(sorted(labels)) or "none"
        yield f"{number}  {shown}{f' ({_hidden(hidden)})' if hidden else ''}"


# ------------------------------------------------------------------------------------- determinisation


def _size(plan: Plan) -> str:
    """How big the deterministic automaton is; conditions are taken to be true or not independently."""
    lazily = "worked out as events ask for them"
    classes = _classes(plan.automaton.predicates)
    if len(classes) <= FEW_CLASSES:
        states = _few_states(plan, classes)
        if states is not None:
            return f"deterministic: {states} states, {len(classes)} classes of events at most; {lazily}"
    return f"deterministic: states and classes of events are {lazily}, at most {plan.state_cap:,} states"


def _few_states(plan: Plan, classes: Iterable[int]) -> int | None:
    """How many states the deterministic automaton has, or None where they are more than a few."""
    automaton = plan.deterministic()
    states, state = 1, 0
    while state < states:
        for bits in classes:
            row = automaton.row(state, automaton.class_of(bits))
            states = max(states, row.skip + 1, *(target + 1 for _, target in row.edges))
            if states > min(plan.state_cap, FEW_STATES):
                return None
        state += 1
    return states


def _classes(predicates: tuple[EventPredicate, ...]) -> list[int]:
    """The combinations of bits that an event can have: it has one type, and one of another name has none.

    Gives up beyond `FEW_CLASSES`.
    """
    names = dict.fromkeys(name for predicate in predicates for name in predicate.types)
    found: dict[int, None] = {0: None}
    for name in (*names, None):
        open_bits: list[tuple[int, ...]] = []
        for bit, predicate in enumerate(predicates):
            if predicate == FIRST or (name in predicate.types and predicate.condition is not None):
                open_bits.append((0, 1 << bit))
            elif name in predicate.types:
                open_bits.append((1 << bit,))
        for choice in product(*open_bits):
            found[sum(choice)] = None
            if len(found) > FEW_CLASSES:
                return list(found)
    return list(found)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
