"""A text in CEQL, or a conjunctive query: the query that it is, or all that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from estero.errors import QueryError
from estero.language.builder.queries import Built, tree_of
from estero.language.check.queries import check_query
from estero.language.syntax.languages import is_conjunctive, not_ceql
from estero.language.syntax.parser import parse_conjunctive, parse_query
from estero.language.syntax.recover import read
from estero.queries.conjunctive_query import ConjunctiveQuery, conjunctive
from estero.queries.pattern_query import PatternQuery
from estero.queries.query import Query, raise_first

if TYPE_CHECKING:
    from estero.recognize.continuous import ContinuousRecognizer


def query(text: str | Built) -> PatternQuery:
    """The query of a CEQL text, or of what the builder has made: a query, or a pattern for all it finds.

    Raises `QueryError`, with the place in the text, for everything that is wrong whatever the events are.
    """
    if not isinstance(text, str):
        text = str(tree_of(text))
    other = not_ceql(text)
    if other is not None:
        raise other
    reading = read(text)
    if reading.tree is None:
        raise_first(reading.errors)
    else:
        raise_first(reading.with_checks(check_query(reading.tree, None)))
    return PatternQuery(reading.tree or parse_query(text))


def query_of_text(text: str) -> Query:
    """The query of a text, as `estero.query` or `estero.conjunctive` makes it.

    Raises `QueryError`, with the place in the text, for everything that is wrong whatever the events are.
    """
    return conjunctive(text) if is_conjunctive(text) else query(text)


def restore(query: Query | str, state: bytes, *, key: bytes | None = None) -> ContinuousRecognizer:
    """The recognizer of `query` that goes on from a snapshot: it finds what the one before would have found.

    How events are laid out and how late they may be is in the snapshot. A snapshot that was written with a
    `key` is read with it, and no other is. Raises `DataError` for bytes that are no snapshot, are damaged,
    or are of another query, version or key.
    """
    from estero.recognize.continuous import layout_in
    from estero.recognize.state_bytes import read

    asked = query_of_text(query) if isinstance(query, str) else query
    found = read(state, key)
    return asked.recognizer_of(layout_in(found, str(asked)), found)


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
    """Everything that is wrong with a text, in order of place; with `events`, what does not fit them.

    The text is a query in CEQL or, with a head and ``<-``, a conjunctive one. Where parts of a query in CEQL
    cannot be read, they have an error each, and the rest is checked without them. Types without events are
    warned of, as by `Query.run`. Raises `DataError` where the events cannot be read.
    """

    def unfit(query: Query) -> list[QueryError]:
        if events is None:
            return query.errors()
        return query.check(
            events,
            type=type,
            time=time,
            order=order,
            time_unit=time_unit,
            types=types,
            csv_options=csv_options,
        )

    if is_conjunctive(text):
        try:
            return unfit(ConjunctiveQuery(parse_conjunctive(text)))
        except QueryError as error:
            return [error]
    reading = read(text)
    if reading.tree is None:
        return list(reading.errors)
    return reading.with_checks(unfit(PatternQuery(reading.tree, is_whole="WHERE" not in reading.lost)))
