"""Queries that differ in constants of which checks look at the kinds alone: one is right where another is."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Final

from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.check.set_predicates import all_registered
from estero.language.syntax.parser import shapes
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema

_MOST: Final = 4096
"""The most outlines that are remembered for a schema."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A query, and its text with the shortest constants in the place of these (`Shaped.outline`)."""

    tree: QueryTree
    text: str

    @classmethod
    def of(cls, tree: QueryTree) -> Outline | None:
        """The outline of a query as it was parsed; None where its text has no shape."""
        shaped = shapes().shaped(tree.text)
        return None if shaped is None else cls(tree, sys.intern(shaped.outline()))


@dataclass(slots=True)
class _Right:
    """The outlines of right queries, for the schema that was asked for last."""

    schema: Schema | None
    outlines: set[object] = field(default_factory=set)


_LAST: Final = {with_schema: _Right(None) for with_schema in (False, True)}


def errors_of(tree: QueryTree, schema: Schema | None, outline: Outline | None) -> list[QueryError]:
    """The errors of a query, as `check_query`, which is asked once for right queries of one outline.

    The outline of another tree, such as this one had before values were bound, says nothing.
    """
    if outline is None or outline.tree is not tree:
        return check_query(tree, schema)
    last = _LAST[schema is not None]
    if last.schema is not schema or len(last.outlines) >= _MOST:
        last = _LAST[schema is not None] = _Right(schema)
    key = (outline.text, all_registered())
    if key in last.outlines:
        return []
    errors = check_query(tree, schema)
    if not errors:
        last.outlines.add(key)
    return errors
