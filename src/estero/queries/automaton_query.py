"""Queries whose pattern is an automaton that was given directly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from estero.automata.formulas.to_formula import automaton_outline, automaton_to_formula
from estero.automata.formulas.user_automaton import automaton_of
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_query
from estero.language.tree.words import quoted
from estero.queries.pattern_statement import AutomatonStatement
from estero.queries.query import Query
from estero.queries.statement import raise_first

Given = tuple[Hashable, str, "Iterable[str] | str | None", Hashable]
"""A transition: from a state, on an event, marked with labels, to a state."""


def automaton(  # noqa: PLR0913  (one argument per clause)
    transitions: Iterable[Given],
    *,
    initial: Hashable | Iterable[Hashable],
    final: Hashable | Iterable[Hashable],
    types: Sequence[str] | None = None,
    select: str = "*",
    partition_by: str | Sequence[str | Sequence[str]] = (),
    within: str | None = None,
    consume_by: str | None = None,
    limit: int | None = None,
) -> Query:
    """The query that finds what an automaton finds.

    Each of `transitions` is ``(state, event, labels, state)``. States are any hashable values. The event
    is ``"SELL"``, ``"SELL[price > 10]"``, such texts with AND, OR and NOT, or ``"*"`` for any event
    (``"*[price > 10]"`` with a condition). The labels mark the event in the answer; with none, it is read
    and not reported. `initial` and `final` are one state or a collection of states.

    A run begins at any event in an initial state, reads one event after the other, each by one transition,
    and has found a complex event whenever it enters a final state. What it may pass over it says itself,
    by a loop: ``("q1", "*", (), "q1")``.

    `types` are the types of events that there are; they are needed where ``*`` or NOT stands anywhere else
    than in a loop without labels. The other clauses are texts as in CEQL: ``select="MAX a, b[price]"``,
    ``partition_by=["name", ("ticker", "symbol")]``, ``within="10 SECONDS"``, ``consume_by="ANY"``.

    Raises `QueryError`, with the place, for a text that is wrong, and `ValueError`, with the names of the
    states, for what does not fit together.

    >>> query = automaton(
    ...     [
    ...         ("calm", "SELL[name = 'INTC']", {"a"}, "waiting"),
    ...         ("waiting", "*", (), "waiting"),
    ...         ("waiting", "BUY[price > 10]", {"b"}, "done"),
    ...     ],
    ...     initial="calm",
    ...     final="done",
    ...     within="10 EVENTS",
    ... )
    >>> print(query)
    SELECT * WHERE SELL AS a ; BUY AS b FILTER a[name = 'INTC'] AND b[price > 10] KEEP [a, b] WITHIN 10 EVENTS
    """
    cea = automaton_of(transitions, initial, final, types)
    try:
        pattern, reason = automaton_to_formula(cea, types), None
    except LimitExceeded as error:
        pattern, reason = automaton_outline(cea, types), str(error)
    clauses = [f"SELECT {select} WHERE {pattern!s}"]
    if partition_by:
        brackets = [partition_by] if isinstance(partition_by, str) else partition_by
        clauses.append(f"PARTITION BY {', '.join(map(_bracket, brackets))}")
    clauses += [f"WITHIN {within}"] if within is not None else []
    clauses += [f"CONSUME BY {consume_by}"] if consume_by is not None else []
    clauses += [f"LIMIT {limit}"] if limit is not None else []
    statement = AutomatonStatement(parse_query(" ".join(clauses)), automaton=cea, reason=reason)
    raise_first(statement.errors())
    return Query(statement)


def _bracket(names: str | Sequence[str]) -> str:
    alternatives = [names] if isinstance(names, str) else names
    return f"[{', '.join(map(quoted, alternatives))}]"
