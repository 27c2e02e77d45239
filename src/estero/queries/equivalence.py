"""Equivalence and inclusion of queries: the same complex events on every stream, or all those of the other.

theory/equivalence.py decides it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from estero.arguments import checked
from estero.automata.cea import CEA
from estero.automata.lacking import lacking
from estero.language.builder.queries import Built
from estero.queries.automaton_statement import AutomatonStatement
from estero.queries.pattern_statement import PatternStatement
from estero.queries.query import Query
from estero.theory.equivalence import Comparison, Side, Witness, event_text, shortest_witness
from estero.theory.inclusion import PAIR_CAP


@dataclass(frozen=True)
class Counterexample(Witness):
    """A shortest stream with a complex event of one query that the other lacks.

    `events` are dicts of attributes, with the type as `type`, in stream order. The complex event reaches
    from position `start` to `end` and marks `positions` (by label, ascending). `found_by` and `missed_by`
    are the two queries.
    """

    found_by: Query
    missed_by: Query

    def __str__(self) -> str:
        labels_at = [
            [label for label, places in self.positions.items() if position in places]
            for position in range(len(self.events))
        ]
        rows = [
            (str(position), event_text(event), ", ".join(labels))
            for position, (event, labels) in enumerate(zip(self.events, labels_at, strict=True))
        ]
        width = max(len(text) for _, text, _ in rows)
        lines = [f"  {number:>3}  {text:<{width}}  {labels}".rstrip() for number, text, labels in rows]
        return "\n".join(
            [
                f"this complex event, from {self.start} to {self.end},",
                *lines,
                f"is found by      {self.found_by}",
                f"and not found by {self.missed_by}",
            ]
        )


@checked
def equivalent(one: Query | Built | str, other: Query | Built | str, *, limit: int = PAIR_CAP) -> bool:
    """Whether the two queries have the same complex events on every stream.

    Complex events are the same if they have the same start, end and positions under all labels, whatever
    SELECT shows. Numbers may be of any size, with or without a fraction. The queries may have conditions on
    single events, and must have the same PARTITION BY, WITHIN, CONSUME BY and LIMIT. `difference` gives a
    stream that tells two queries apart.

    Raises ValueError where it cannot be decided, with the reason: a query compares events with each other,
    the clauses differ, or a condition computes with attributes and no stream was found that tells the
    queries apart. Raises `LimitExceeded` where more than `limit` pairs of sets of states of the automata
    would have to be compared, which takes some ten seconds.

    >>> equivalent("SELECT * WHERE A ; (B OR C)", "SELECT * WHERE (A ; B) OR (A ; C)")
    True
    """
    return difference(one, other, limit=limit) is None


@checked
def difference(
    one: Query | Built | str, other: Query | Built | str, *, limit: int = PAIR_CAP
) -> Counterexample | None:
    """A shortest stream with a complex event of only one of the two queries, None if there is none.

    Queries, `limit` and errors are those of `equivalent`.

    >>> print(difference("SELECT * WHERE A ; B", "SELECT * WHERE A : B"))
    this complex event, from 0 to 2,
        0  A      A
        1  other
        2  B      B
    is found by      SELECT * WHERE A ; B
    and not found by SELECT * WHERE A : B
    """
    first, second = _query(one), _query(other)
    comparison = Comparison.of(_side(first), _side(second))
    shown = shortest_witness(limit, comparison, comparison.turned())
    if shown is None:
        return None
    witness, by_second = shown
    return _counterexample(witness, second, first) if by_second else _counterexample(witness, first, second)


@checked
def includes(larger: Query | Built | str, smaller: Query | Built | str, *, limit: int = PAIR_CAP) -> bool:
    """Whether `larger` has all complex events of `smaller`, on every stream.

    `missing` shows one that it lacks. Queries, `limit` and errors are those of `equivalent`; the strategy has
    to be that of all complex events or STRICT, without CONSUME BY and LIMIT.

    >>> includes("SELECT * WHERE A ; B", "SELECT * WHERE A : B")
    True
    """
    return missing(larger, smaller, limit=limit) is None


@checked
def missing(
    larger: Query | Built | str, smaller: Query | Built | str, *, limit: int = PAIR_CAP
) -> Counterexample | None:
    """A shortest stream with a complex event of `smaller` that `larger` lacks, None if there is none.

    Queries, `limit` and errors are those of `includes`.

    >>> missing("SELECT * WHERE A : B", "SELECT * WHERE A ; B").stream
    'A other B'
    """
    less, more = _query(smaller), _query(larger)
    comparison = Comparison.of(_side(less), _side(more))
    if comparison.chosen:
        raise ValueError(
            f"{comparison.chosen} chooses among complex events, so one query's need not be another's"
        )
    shown = shortest_witness(limit, comparison)
    return None if shown is None else _counterexample(shown[0], less, more)


_ONE_EVENT: Final = "only conditions on one event can be decided, and this"


def _query(given: Query | Built | str) -> Query:
    return given if isinstance(given, Query) else Query(given)


def _side(query: Query) -> Side:
    """The compared part of a query; raises ValueError if its automaton alone does not determine it."""
    statement = query.statement
    if not isinstance(statement, PatternStatement):
        raise ValueError(f"only queries with a pattern can be compared, not {query}")  # noqa: TRY004
    if isinstance(statement, AutomatonStatement) and not isinstance(statement.automaton, CEA):
        raise ValueError(f"{_ONE_EVENT} automaton compares events:\n{query}")  # noqa: TRY004
    compiled = statement.compiled()
    if any(any(lacking(predicate)) for predicate in compiled.automaton.predicates):
        raise ValueError(f"{_ONE_EVENT} query requires an absence: {query}")
    if compiled.residuals:
        condition = compiled.residuals[0].condition
        raise ValueError(f"{_ONE_EVENT} query compares events with each other: {condition} in {query}")
    return Side(query.tree, compiled.automaton)


def _counterexample(witness: Witness, found_by: Query, missed_by: Query) -> Counterexample:
    return Counterexample(witness.events, witness.start, witness.end, witness.positions, found_by, missed_by)
