"""What ORDER BY … LIMIT n chooses of all complex events, and the query that finds these."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from estero.errors import NOWHERE, QueryError
from estero.language.check.ranking import ranked_by
from estero.language.tree.query import QueryTree
from estero.queries.statement import Statement


class Wanted(NamedTuple):
    """The first `number` complex events by what the text `by` says, those with most of it first.

    Where it is `ascending`, those with least come first.
    """

    number: int
    by: str
    ascending: bool


def unranked(statement: Statement) -> Statement:
    """The statement of all complex events of which ORDER BY chooses the best."""
    return replace(statement, tree=replace(statement.tree, ranking=None, limit=None))


def wanted(tree: QueryTree) -> Wanted:
    """What ORDER BY and its LIMIT ask for, of a query that was checked."""
    by = None if tree.ranking is None else ranked_by(tree, tree.ranking)
    if tree.ranking is None or by is None or tree.limit is None:
        raise TypeError("a query with ORDER BY was not checked")
    return Wanted(tree.limit, by, tree.ranking.ascending)


def not_shown(tree: QueryTree, error: ValueError) -> QueryError:
    """The error of a query that orders by what it does not show."""
    span, by = (NOWHERE, "") if tree.ranking is None else (tree.ranking.by.span, str(tree.ranking.by))
    return QueryError(
        str(error),
        text=tree.text,
        span=span,
        found=by,
        hint="ORDER BY looks at what SELECT shows: SELECT * shows everything",
    )
