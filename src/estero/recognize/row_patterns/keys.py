"""The entries of PARTITION BY and ORDER BY: columns, or expressions that are computed first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from estero.classify.sql_texts import quoted
from estero.errors import QueryError
from estero.language.row_patterns.expressions import Names
from estero.language.row_patterns.scalars import FUNCTIONS
from estero.language.row_patterns.tree import Scalar
from estero.language.row_patterns.words import words_of

_DIRECTION: Final = re.compile(r"(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?\s*$", re.IGNORECASE)
_NULLS: Final = re.compile(r"NULLS\s+(?:FIRST|LAST)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Key:
    """An entry of PARTITION BY or ORDER BY: the number of its column, or None for an expression.

    `name` is that of its column in results, `value` its SQL, and `direction` what the entry says about NULL.
    """

    scalar: Scalar
    column: int | None
    descending: bool
    name: str
    value: str
    direction: str = ""

    @property
    def sort(self) -> str:
        """The SQL of the entry in ORDER BY."""
        return f"{self.value}{' DESC' if self.descending else ''}{self.direction and ' '}{self.direction}"

    @property
    def nulls_first(self) -> bool:
        """Whether NULL comes before all values."""
        return self.direction.upper().endswith("FIRST")


def keys_of(scalars: Sequence[Scalar], names: Names, part: str) -> list[Key]:
    """The entries of PARTITION BY or ORDER BY."""
    keys = []
    for scalar in scalars:
        try:
            select = sqlglot.parse_one(f"SELECT 1 ORDER BY {scalar.text}", dialect=names.dialect)
            (ordered,) = select.args["order"].expressions
        except (SqlglotError, ValueError, KeyError) as error:
            raise QueryError(f"{part} cannot be read", text=names.clause.text, span=scalar.span) from error
        node = ordered.this
        _check_key(node, scalar, names, part)
        column = _column(scalar, names, part)
        nulls = _NULLS.search(scalar.text)
        text = node.sql(names.dialect)
        value = f"({_DIRECTION.sub('', scalar.text)})" if column is None else quoted(names.columns[column])
        name = text if column is None else names.columns[column]
        direction = nulls[0] if nulls else ""
        keys.append(Key(scalar, column, bool(ordered.args.get("desc")), name, value, direction))
    return keys


def _column(scalar: Scalar, names: Names, part: str) -> int | None:
    """The number of the column that an entry names; None if it is an expression."""
    words = words_of(_DIRECTION.sub("", scalar.text), dialect=names.dialect)
    path = [word.name.casefold() for word in words]
    if (
        len(path) == 3
        and path[0] == names.relation.casefold()
        and path[1] == "."
        and path[2] in names.numbers
    ):
        return names.numbers[path[2]]
    if len(words) != 1 or not words[0].is_name:
        return None
    if path[0] not in names.numbers:
        raise QueryError(
            f'{part}: there is no column {words[0].name!r} in the input: "{words[0].name}" not found',
            text=names.clause.text,
            span=scalar.span,
            found=scalar.text,
            hint=f"its columns are {', '.join(names.columns)}",
        )
    return names.numbers[path[0]]


def _check_key(node: exp.Expr, scalar: Scalar, names: Names, part: str) -> None:
    """Raises `QueryError` for functions of matches, which are not known before the rows are in order."""
    for inner in node.walk():
        called = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else ""
        if names.aggregate(inner) or called in FUNCTIONS or isinstance(inner, exp.Window):
            raise QueryError(
                f"{called or inner.key.upper()} reads a row of the match and cannot be part of {part}",
                text=names.clause.text,
                span=scalar.span,
                found=scalar.text,
                hint="order and partition by columns of the input",
            )
