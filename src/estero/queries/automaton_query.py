"""Queries whose pattern is an automaton that was given directly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from estero.arguments import checked, shown
from estero.automata.cea import CEA, from_first
from estero.automata.chain import Chain
from estero.automata.given.user_automaton import automaton_of
from estero.automata.given.user_runs import compares_or_gathers, runs_of
from estero.automata.pcea import PCEA
from estero.automata.reads import NoTypesError
from estero.automata.residual import Apartness, Residual
from estero.automata.skeleton import skeleton
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_query
from estero.language.tree import pattern as p
from estero.language.tree.parameters import without_places
from estero.language.tree.query import clauses_text
from estero.language.tree.words import quoted
from estero.queries.automaton_statement import AutomatonStatement
from estero.queries.parameters import names_of
from estero.queries.query import Distinct, Query
from estero.queries.statement import raise_first
from estero.theory.chain_pattern import chain_to_pattern
from estero.theory.rational import either
from estero.theory.to_formula import automaton_outline, automaton_to_formula

Given = tuple[object, ...]
"""A transition: state or states, event, labels, target state, and optionally a comparison."""
_GATHERS: Final = "this automaton gathers runs, which no pattern writes in one way"


@checked
def automaton(  # noqa: PLR0913  (one argument per clause)
    transitions: Iterable[Given],
    *,
    initial: Hashable | Iterable[Hashable] | None = None,
    final: Hashable | Iterable[Hashable],
    anchored: bool = False,
    types: Sequence[str] | None = None,
    select: str = "*",
    partition_by: str | Sequence[str | Sequence[str]] = (),
    within: str | None = None,
    consume_by: str | None = None,
    limit: int | str | None = None,
    filter: str | None = None,
    streams: str | Sequence[str] = (),
    distinct: Distinct | None = None,
) -> Query:
    """The query of an automaton given by its transitions.

    Each of `transitions` is ``(state, event, labels, state)``. States are any hashable values. The event
    is ``"SELL"``, ``"SELL[price > 10]"``, such texts with AND, OR and NOT, or ``"*"`` for any event
    (``"*[price > 10]"`` with a condition). The labels mark the event in the answer; without labels it is read
    and not reported. `initial` and `final` are one state or a collection of states.

    A run begins at any event in an initial state, reads every following event by one transition, and gives a
    complex event whenever it enters a final state. Events are skipped by a loop only:
    ``("q1", "*", (), "q1")``. With `anchored` a run begins only at the first event of its partition.

    **Transitions that compare.** ``(state, event, labels, state, comparison)`` asks in addition that the
    event agrees with the one by which the run entered the state: ``"before.k = k AND before.m != m"``, by
    ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``. A transition from a list of states gathers runs that stand
    in these states and began independently, each joined by ``=`` under the name of its state:
    ``(["q1", "q2"], "R", "r", "q3", "q1.k = k AND q2.k = k")``; one from ``[]`` begins a run, as one from an
    initial state does. In such an automaton every transition marks its event, and all events between are
    skipped. A complex event of several runs is given once. An automaton that gathers is refused if two of its
    runs can mark the same events alike, or one run can mark an event twice, with a stream that shows it; this
    is checked on short streams only.

    A distance in place of a comparison, ``"[<= 5 MINUTES]"``, is counted from the event that the run marked
    last; it is for automata whose transitions neither compare nor gather.

    `types` are all types of events; they are needed where ``*`` or NOT reads an event that is marked, and
    without them a query prints as its transitions if either stands anywhere but in a loop without labels. The
    other clauses are texts as in CEQL: ``select="MAX a, b[price]"``,
    ``partition_by=["name", ("ticker", "symbol")]``, ``within="10 SECONDS"``, ``consume_by="ANY"``,
    ``limit="3 PER 1 HOUR"``; ``filter="a.price < b.price"`` is asked of complex events, and `streams` are the
    names after FROM.
    With ``distinct="marks"`` complex events that differ only in where they start are one: see
    `Query.with_distinct`.

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
    for transition in given:
        if not isinstance(transition, str | tuple | list):
            raise TypeError(f"a transition is (state, event, labels, state), not {shown(transition)}")
    types = (types,) if isinstance(types, str) else types
    if types is not None and not types:
        raise ValueError("types is an empty list: name one type of events at least, or leave it out")
    machine: CEA | Chain | PCEA
    residuals: tuple[Residual, ...] = ()
    if compares_or_gathers(given):
        machine = runs_of(given, initial, final, types, anchored=anchored)
        if isinstance(machine, PCEA) and not names_of(machine):
            from estero.theory.ambiguity import refuse_ambiguous

            refuse_ambiguous(machine)
    else:
        read = automaton_of(given, initial, final, types)
        machine = from_first(read.automaton) if anchored else read.automaton
        residuals = read.residuals
    pattern, reason = _as_pattern(machine, residuals, types)
    names = [streams] if isinstance(streams, str) else streams
    brackets = [partition_by] if isinstance(partition_by, str) else partition_by
    text = clauses_text(
        ("SELECT", select),
        ("FROM", ", ".join(map(quoted, names))),
        ("WHERE", str(pattern) if filter is None else f"({pattern}) FILTER {filter}"),
        ("PARTITION BY", ", ".join(map(_bracket, brackets))),
        ("WITHIN", within or ""),
        ("CONSUME BY", consume_by or ""),
        ("LIMIT", "" if limit is None else str(limit)),
    )
    statement = AutomatonStatement(
        parse_query(text),
        automaton=without_places(machine),
        residuals=without_places(residuals),
        filtered=filter is not None,
        reason=reason,
    )
    raise_first(statement.errors())
    query = Query(statement)
    return query if distinct is None else query.with_distinct(distinct)


def _as_pattern(
    machine: CEA | Chain | PCEA, residuals: Sequence[Residual], types: Sequence[str] | None
) -> tuple[p.Pattern, str | None]:
    """An equivalent pattern; or one that only has the same types and labels, and the reason for that."""
    if isinstance(machine, PCEA):
        return automaton_outline(skeleton(machine), types), _GATHERS
    try:
        if isinstance(machine, Chain):
            return chain_to_pattern(machine), None
        if not residuals:
            return automaton_to_formula(machine, types), None
        reason = "the transitions of this automaton ask for distances, which patterns do between their parts"
    except (LimitExceeded, NoTypesError) as error:
        reason = str(error)
    outline = automaton_outline(machine if isinstance(machine, CEA) else skeleton(machine), types)
    steps = [
        residual.condition.distances for residual in residuals if isinstance(residual.condition, Apartness)
    ]
    apart = (p.Sequence((outline, outline), (p.Link(distances=step),)) for step in steps)
    return either([outline, *apart]), reason


def _bracket(names: str | Sequence[str]) -> str:
    alternatives = [names] if isinstance(names, str) else names
    return f"[{', '.join(map(quoted, alternatives))}]"
