"""Operands that an operation reads more than once, computed once.

Most operations read an operand several times: ``round(v)`` reads ``v`` four times. Written out, n nested
calls would read the innermost operand 4**n times, in a statement of that length. So a long operand is a name
at first; it remains one (`Dialect.let`) if the operation reads it more than once, and replaces the name if it
is read once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from sqlglot import exp

from estero.classify.dialect import Dialect
from estero.classify.operations import Typed
from estero.classify.sql_trees import SQL, closed

_LONG: Final = 50
"""The size below which operands are repeated: computing a short one twice is faster than naming it."""


def with_names(
    dialect: Dialect, operands: Sequence[Typed], write: Callable[[Sequence[Typed]], Typed]
) -> Typed:
    """The result of `write` on operands, in SQL that repeats no long operand."""
    long = {f"__operand{n}": operand for n, operand in enumerate(operands) if _is_long(operand)}
    if not long:
        return write(operands)
    names = (f"__operand{n}" for n in range(len(operands)))
    result = write(
        [_named(n, operand) if n in long else operand for n, operand in zip(names, operands, strict=True)]
    )
    known = result.known
    if known is not None and any(_places(long, known).values()):
        known = None  # the names have no meaning outside the operation
    whole = exp.paren(result.sql, copy=False)  # now the root has a parent, too, in which it can be replaced
    bindings: list[tuple[exp.Column, SQL]] = []
    for name, places in _places(long, [whole]).items():
        operand = long[name].sql
        if len(places) == 1:
            places[0].replace(closed(operand))
        elif places:
            own = exp.column(f"__named{zlib.crc32(dialect.text(operand).encode()):08x}")
            for place in places:
                place.replace(own.copy())
            bindings.append((own, operand))
    sql = whole.this
    for own, operand in bindings:
        sql = dialect.let(own, operand, sql)
    return replace(result, sql=sql, known=known)


def _is_long(operand: Typed) -> bool:
    return operand.element is None and sum(1 for _ in islice(operand.sql.walk(), _LONG)) == _LONG


def _named(name: str, operand: Typed) -> Typed:
    """An operand as its name, which is also tested for NULL if the operand's own test is long."""
    known = operand.known
    if known is not None and sum(1 for condition in known for _ in condition.walk()) >= _LONG:
        known = None
    return replace(operand, sql=exp.column(name), known=known)


def _places(names: Mapping[str, Typed], trees: Iterable[SQL]) -> dict[str, list[exp.Column]]:
    """The nodes in which each name occurs."""
    places: dict[str, list[exp.Column]] = {name: [] for name in names}
    for tree in trees:
        for column in tree.find_all(exp.Column):
            if column.name in places:
                places[column.name].append(column)
    return places
