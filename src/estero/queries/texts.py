"""A text in CEQL, or a conjunctive query: the query that it is, or all that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estero.errors import QueryError
from estero.language.check.conjunctive import check_conjunctive
from estero.language.check.queries import check_query
from estero.language.syntax.languages import is_conjunctive
from estero.language.syntax.parser import parse_conjunctive
from estero.language.syntax.recover import read
from estero.queries.conjunctive_query import ConjunctiveQuery
from estero.queries.query import Query

__all__ = ["check", "query_of_text"]


def query_of_text(text: str) -> Query:
    """The query of a text, as `estero.query` or `estero.conjunctive` makes it.

    Raises `QueryError`, with the place in the text, for everything that is wrong whatever the events are.
    """
    return ConjunctiveQuery(text) if is_conjunctive(text) else Query(text)


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
            conjunctive = parse_conjunctive(text)
        except QueryError as error:
            return [error]
        if events is None:
            return check_conjunctive(conjunctive)
        return unfit(ConjunctiveQuery.of_conjunctive(conjunctive))
    reading = read(text)
    if reading.tree is None:
        return list(reading.errors)
    if events is None:
        return reading.with_checks(check_query(reading.tree, None))
    return reading.with_checks(unfit(Query.of_tree(reading.tree, is_whole="WHERE" not in reading.lost)))
