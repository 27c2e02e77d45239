"""The complex events that ORDER BY … LIMIT n chooses, and the query that finds all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from estero.errors import NOWHERE, QueryError
from estero.language.check.ranking import ranked_by
from estero.language.tree.query import QueryTree
from estero.queries.statement import Statement


class Wanted(NamedTuple):
    """The first `number` complex events by the value of the text `by`, largest first.

    With `ascending`, the smallest come first.
    """

    number: int
    by: str
    ascending: bool


def unranked(statement: Statement) -> Statement:
    """The statement for all complex events, of which ORDER BY chooses the best."""
    return replace(statement, tree=replace(statement.tree, ranking=None, limit=None))


def wanted(tree: QueryTree) -> Wanted:
    """The ranking that ORDER BY and its LIMIT request in a checked query."""
    by = None if tree.ranking is None else ranked_by(tree, tree.ranking)
    if tree.ranking is None or by is None or tree.limit is None:
        raise TypeError("a query with ORDER BY was not checked")
    return Wanted(tree.limit, by, tree.ranking.ascending)


def not_shown(tree: QueryTree, error: ValueError) -> QueryError:
    """The error of a query that orders by a value that it does not show."""
    span, by = (NOWHERE, "") if tree.ranking is None else (tree.ranking.by.span, str(tree.ranking.by))
    return QueryError(
        str(error),
        text=tree.text,
        span=span,
        found=by,
        hint="ORDER BY looks at what SELECT shows: SELECT * shows everything",
    )
