"""Queries whose pattern is an automaton that was given directly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from estero.automata.cea import CEA
from estero.automata.chain import Chain
from estero.automata.formulas.chain_pattern import chain_to_pattern, skeleton
from estero.automata.formulas.to_formula import automaton_outline, automaton_to_formula
from estero.automata.formulas.user_automaton import automaton_of
from estero.automata.formulas.user_runs import compares_or_gathers, runs_of
from estero.automata.pcea import PCEA
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_query
from estero.language.tree.pattern import Pattern
from estero.language.tree.words import named, quoted
from estero.queries.decisions.ambiguity import ambiguous_stream
from estero.queries.pattern_statement import AutomatonStatement
from estero.queries.query import Query
from estero.queries.statement import raise_first

Given = tuple[object, ...]
"""A transition: from one or more states, on an event, marked with labels, to a state; what is compared."""


def automaton(  # noqa: PLR0913  (one argument per clause)
    transitions: Iterable[Given],
    *,
    initial: Hashable | Iterable[Hashable] | None = None,
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

    **Transitions that compare.** ``(state, event, labels, state, comparison)`` asks in addition that the
    event agrees with the one by which the run entered the state: ``"before.k = k AND before.m != m"``, by
    ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``. A transition from a list of states gathers runs that stand
    in these states and began independently, each joined by ``=`` under the name of its state:
    ``(["q1", "q2"], "R", "r", "q3", "q1.k = k AND q2.k = k")``; one from ``[]`` begins a run, as one from an
    initial state does. In such an automaton every transition marks its event, and all events between are
    passed over. Two runs must not mark the same events alike: an automaton with such runs is refused, with a
    stream that shows it. Runs that gather are checked on short streams only.

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
    given = list(transitions)
    machine: CEA | Chain | PCEA
    if compares_or_gathers(given):
        machine = runs_of(given, initial, final, types)
        _check_unambiguous(machine)
    else:
        machine = automaton_of(given, initial, final, types)
    pattern, reason = _as_pattern(machine, types)
    clauses = [f"SELECT {select} WHERE {pattern!s}"]
    if partition_by:
        brackets = [partition_by] if isinstance(partition_by, str) else partition_by
        clauses.append(f"PARTITION BY {', '.join(map(_bracket, brackets))}")
    clauses += [f"WITHIN {within}"] if within is not None else []
    clauses += [f"CONSUME BY {consume_by}"] if consume_by is not None else []
    clauses += [f"LIMIT {limit}"] if limit is not None else []
    statement = AutomatonStatement(parse_query(" ".join(clauses)), automaton=machine, reason=reason)
    raise_first(statement.errors())
    return Query(statement)


def _as_pattern(machine: CEA | Chain | PCEA, types: Sequence[str] | None) -> tuple[Pattern, str | None]:
    """A pattern that finds the same; or one with the same types and labels, and why there is no other."""
    try:
        if isinstance(machine, CEA):
            return automaton_to_formula(machine, types), None
        if isinstance(machine, Chain):
            return chain_to_pattern(machine), None
        reason = "this automaton gathers runs, which no pattern writes in one way"
    except LimitExceeded as error:
        reason = str(error)
    return automaton_outline(machine if isinstance(machine, CEA) else skeleton(machine), types), reason


def _check_unambiguous(machine: Chain | PCEA) -> None:
    stream = ambiguous_stream(machine)
    if stream is not None:
        events = " ".join(
            f"{each.type}({', '.join(f'{named(name)}={value!r}' for name, value in each.attributes.items())})"
            for each in stream
        )
        raise ValueError(
            f"two runs of this automaton mark the same events alike, for instance those of {events}: "
            "make the conditions of its transitions exclude one another, or give them different labels"
        )


def _bracket(names: str | Sequence[str]) -> str:
    alternatives = [names] if isinstance(names, str) else names
    return f"[{', '.join(map(quoted, alternatives))}]"
