"""The query whose complex events include the matches of a statement with MATCH_RECOGNIZE."""

from __future__ import annotations

from estero.arguments import checked
from estero.errors import QueryError, Span
from estero.language.row_patterns.as_ceql import clause_as_ceql
from estero.language.row_patterns.statements import placed_clauses
from estero.language.row_patterns.words import words_of
from estero.queries.query import Query


@checked
def from_match_recognize(text: str, /) -> Query:
    """The query in CEQL whose answer contains all matches of a statement with MATCH_RECOGNIZE.

    PATTERN becomes a sequence of neighbouring rows (``:``) of a partition, DEFINE its filters, PARTITION BY
    and WITHIN the same clauses. The rows of a variable are those with its label. A match is the complex event
    that PATTERN prefers among those with its start; the answer also has the others, and those that AFTER
    MATCH SKIP passes over. MEASURES and the statement around the clause are not read. The events are the rows
    of the table, and `run` takes the columns of ORDER BY as `time` and `order`. Rows whose keys are NULL form
    a partition in SQL, and belong to none here.

    Raises `QueryError` for whatever has no counterpart: PREV at the first row of the match, NEXT, CLASSIFIER,
    aggregates of the match so far, a pattern that may be empty, ``$``, ORDER BY with DESC, keys that are
    expressions.

    >>> query = from_match_recognize('''
    ...     SELECT * FROM prices MATCH_RECOGNIZE (
    ...         PARTITION BY symbol ORDER BY day MEASURES count(*) AS days
    ...         PATTERN (high down) DEFINE down AS price < PREV(price)
    ...     )''')
    >>> print(str(query).partition(" WHERE ")[2])
    prices AS high : prices AS down FILTER down.price < high.price PARTITION BY [symbol]
    """
    placed = placed_clauses(text)
    if len(placed) != 1:
        span = placed[1].whole if placed else Span(0, len(text))
        raise QueryError(
            f"a query is made of one MATCH_RECOGNIZE, and the statement has {len(placed) or 'none'}",
            text=text,
            span=span,
            found=text[span.start : span.end],
        )
    (only,) = placed
    words = words_of(text[only.source.start : only.source.end])
    if not words or not words[0].is_name or any(not word.is_name for word in words):
        raise QueryError(
            "a query reads the rows of a table, and MATCH_RECOGNIZE follows something else",
            text=text,
            span=only.source,
            found=text[only.source.start : only.source.end],
            hint="name a table, and run the query over the rows of the subquery",
        )
    return Query(clause_as_ceql(only.clause, words[0].name))
