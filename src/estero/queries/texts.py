"""The functions that turn the text of a query, in any language, into the query or its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, overload

from estero.arguments import checked, shown
from estero.errors import QueryError
from estero.events.scan import Scan
from estero.language.builder.queries import Built
from estero.language.syntax.languages import is_conjunctive
from estero.language.syntax.recover import read
from estero.queries.pattern_statement import PatternStatement
from estero.queries.query import Distinct, Query
from estero.queries.rules.rule_set import RuleSet
from estero.queries.statement import Statement
from estero.system.cores import threads_to_use

if TYPE_CHECKING:
    from estero.language.tree.conjunctive import ConjunctiveTree
    from estero.recognize.recognizers.continuous import ContinuousRecognizer
    from estero.recognize.recognizers.partials_recognizer import PartialsRecognizer
    from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
    from estero.recognize.rules.set_recognizer import RuleSetRecognizer


@checked
def query(text: str | Built) -> Query:
    """The query of a text in CEQL, of a conjunctive query, or of an object of the builder.

    A bare pattern of the builder stands for all its complex events. `conjunctive` describes the conjunctive
    language.

    Raises `QueryError`, with the place in the text, for all mistakes that do not depend on the events.
    """
    return Query(text)


@checked
def conjunctive(query: str | ConjunctiveTree) -> Query:
    """The full hierarchical conjunctive query that a text or its tree says.

    ``Q(x, y) <- T(x), S(x, y), R(k: x, l: y) AS r WITHIN 10 MINUTES``: events of the types T, S and R, in
    any order, that agree on the values of the variables. An argument of an atom is a variable, a constant,
    or ``_`` for what does not matter; the arguments stand for the attributes of the type in the order of its
    table, without the columns of type and time, or for those that are named. Where all types share one
    table, the last attributes may be left out; ``T()`` is any event of type T. The head lists all variables.
    The clauses are those of CEQL: FROM, WITHIN and LIMIT, in this order.

    Each atom is a label of the answer, named by AS, else by its type, or by its number, from 0, where another
    atom has that type. One event may serve several atoms. An answer ends at its last event, and WITHIN
    reaches from the first to the last. NULL equals nothing.

    Raises `QueryError`, with the place in the text, for all mistakes that do not depend on the events; for a
    query that is not hierarchical it shows two variables and their atoms.

    >>> print(conjunctive("q(x,y) <- T(x), S(x,y), R(x,y) within 5 events"))
    q(x, y) <- T(x), S(x, y), R(x, y) WITHIN 5 EVENTS
    """
    from estero.queries.conjunctive_statement import conjunctive_statement

    return Query(conjunctive_statement(str(query)))


@checked
def eql(text: str, *, max_samples_per_key: int = 1) -> Query:
    """The query of a text in EQL, Elastic's Event Query Language, with Elastic's meaning.

    ``process where process.name : "cmd.exe"`` asks for single events, ``sequence by user.name with maxspan=5m
    [a where …] [b where …]`` and ``sample by host.name […] […]`` for several. Fields with dots are columns
    of that name, or fields of structs; a comparison with a list holds if any element satisfies it. The
    category is ``event.category``, or the column that is named as the `type` of the events. The labels of
    answers are the numbers of the stages, from 1; `ComplexEvent.all_positions` gives the positions by stage.
    ``| head n`` and ``| tail n`` take a part of the answer, which is possible in `Query.run` only.

    A sample query gives at most `max_samples_per_key` samples for each key, from 1 to 1,000: those completed
    first; among those that one event completes, the ones with the earliest events, compared condition by
    condition. An event may be in several samples.

    Raises `QueryError`, with the place in the text, for all mistakes that do not depend on the events, and
    for `max_samples_per_key` where the text is not a sample; planning raises it for fields that no event has
    and for values that cannot be compared. Source: docs/eql.md.

    >>> print(eql('process where process.name:"cmd.exe" and not user.name in ("root","admin")|head 5'))
    process where process.name : "cmd.exe" and user.name not in ("root", "admin") | head 5
    """
    from estero.plan.samples import MOST_SAMPLES
    from estero.queries.eql_statement import eql_statement

    if not 1 <= max_samples_per_key <= MOST_SAMPLES:
        said = shown(max_samples_per_key)
        raise ValueError(f"max_samples_per_key is a whole number from 1 to {MOST_SAMPLES:,}, not {said}")
    return Query(eql_statement(text, int(max_samples_per_key)))


@overload
def restore(
    query: RuleSet, state: bytes, *, key: bytes | None = ..., metadata: str | Sequence[str] = ...
) -> RuleSetRecognizer: ...


@overload
def restore(
    query: Query | str,
    state: bytes,
    *,
    key: bytes | None = ...,
    partials: Literal[False] = ...,
    distinct: Distinct | None = ...,
    threads: int | None = ...,
) -> ContinuousRecognizer: ...


@overload
def restore(
    query: Query | str,
    state: bytes,
    *,
    key: bytes | None = ...,
    partials: Literal[True],
    distinct: Distinct | None = ...,
    threads: int | None = ...,
) -> PartialsRecognizer: ...


@overload
def restore(
    query: Query | str,
    state: bytes,
    *,
    key: bytes | None = ...,
    partials: bool,
    distinct: Distinct | None = ...,
    threads: int | None = ...,
) -> StreamRecognizer: ...


@checked
def restore(
    query: Query | RuleSet | str,
    state: bytes,
    *,
    key: bytes | None = None,
    partials: bool = False,
    distinct: Distinct | None = None,
    threads: int | None = None,
    metadata: str | Sequence[str] = (),
) -> StreamRecognizer | RuleSetRecognizer:
    """The recognizer of a query or a set of rules, resumed from a snapshot as if it had never stopped.

    The layout and the lateness of events are part of the snapshot. A snapshot that was written with a `key`
    is read with the same key, and one of a recognizer with `partials` or `distinct` with the same arguments;
    `threads` may be another number.

    A set must have the rules that the recognizer had, each with its query, in any order; change them in the
    recognizer afterwards. `partials`, `distinct` and `threads` are for queries only, and `metadata`, as in
    `RuleSet.recognizer`, for sets only.

    Raises `DataError` for bytes that are not a snapshot, are damaged, or belong to another query, version or
    key, and for a set with other rules, which it names; ValueError for arguments of the other kind.
    """
    if isinstance(query, RuleSet):
        if partials or distinct is not None or threads is not None:
            raise ValueError("partials, distinct and threads are for one query: leave them out for a set")
        return _restored_rules(query, state, key, metadata)
    if metadata:
        raise ValueError("metadata is for a set of rules: leave it out for one query")
    from estero.recognize.recognizers import continuous, partials_recognizer
    from estero.recognize.recognizers.intake import layout_in
    from estero.recognize.state_bytes import read

    asked = Query(query) if isinstance(query, str) else query
    asked = asked if distinct is None else asked.with_distinct(distinct)
    workers = threads_to_use(threads)
    snapshot = read(state, key)
    kind = partials_recognizer.KIND if partials else continuous.KIND
    layout = layout_in(snapshot, str(asked), kind)
    if partials:
        return asked.partials_recognizer_of(layout, snapshot)
    return asked.recognizer_of(layout, snapshot, threads=workers)


def _restored_rules(
    rules: RuleSet, state: bytes, key: bytes | None, metadata: str | Sequence[str]
) -> RuleSetRecognizer:
    from estero.recognize.rules.set_state import layout_of_rules
    from estero.recognize.state_bytes import read

    snapshot = read(state, key)
    return rules.recognizer_of(layout_of_rules(snapshot), snapshot, metadata=metadata)


@checked
def check(
    text: str,
    events: object = None,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    types: Sequence[str] = (),
    csv_options: Mapping[str, object] | None = None,
) -> list[QueryError]:
    """All errors of a text, by their place in it; with `events`, also of a query that does not fit them.

    The text is a query in CEQL or, with a head and ``<-``, a conjunctive one. A clause of CEQL that cannot be
    read has an error of its own, and the rest is checked without it. Types without events, and queries that
    can never match, issue an `EsteroWarning`. Raises `DataError` where the events cannot be read.
    """
    scan = Scan.of(events, type, time, order, time_unit, types, csv_options)

    def unfit(statement: Statement) -> list[QueryError]:
        if scan.events is None:
            errors = statement.errors()
            if not errors:
                statement.warn_if_never()
            return errors
        return Query(statement).check(scan)

    if is_conjunctive(text):
        from estero.queries.conjunctive_statement import ConjunctiveStatement

        try:
            return unfit(ConjunctiveStatement.of(text))
        except QueryError as error:
            return [error]
    reading = read(text)
    if reading.tree is None:
        return list(reading.errors)
    return reading.with_checks(unfit(PatternStatement(reading.tree, is_whole="WHERE" not in reading.lost)))
