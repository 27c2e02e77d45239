"""Tables about all complex events together (docs/frames.md, "The whole set")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from estero.answers.frames import HeldTable
from estero.answers.shown_values import held_by_python

_PREVIEWED = 20
"""The number of rows that are printed."""
_AT_ONCE = 10_000
"""The bits of a number that Python prints in one go: 3,010 digits."""


class _WholeTable(HeldTable):
    """A table about all complex events; `exact` are the columns of integers of any size."""

    def __init__(self, table: pa.Table, exact: Sequence[str]) -> None:
        super().__init__(table)
        self._exact = tuple(exact)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts, in which integers are ints of any size."""
        with held_by_python("a value of this answer"):
            rows: list[dict[str, Any]] = self._table.to_pylist()
        return [{**row, **{name: _integer(row[name]) for name in self._exact}} for row in rows]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return self._printed(_PREVIEWED)


class Participation(_WholeTable):
    """The number of complex events that mark each event: one row for each event and label.

    The columns: ``label`` (string), ``position`` (int64), the partition columns, the attributes that labels
    show (NULL where an event has none of that name), as in `Answer.rows`, and ``count``, the number of
    complex events that mark the event so, at least 1: int64 where all counts fit, else decimal128 of 38
    digits, else string. Rows are ordered by position, then by label. By partition the partition columns come
    first, and rows are ordered by these first, NULL last.
    """


class Aggregates(_WholeTable):
    """Aggregates over all complex events of each partition: a row for each partition that has any.

    The columns: the partition columns, by which rows are ordered, NULL last; then the aggregates by name.
    Integers are int64 where all of them fit, else decimal128 of 38 digits, else strings, as are decimals that
    do not fit.
    """


def text_of(number: int) -> str:
    """The digits of a number that is not negative, of any length: Python itself stops at 4,300.

    >>> text_of(10**5000 + 7)[-3:], len(text_of(10**5000))
    ('007', 5001)
    """
    if number.bit_length() < _AT_ONCE:
        return str(number)
    low = number.bit_length() * 3 // 20  # about half of the digits
    front, back = divmod(number, 10**low)
    return text_of(front) + text_of(back).zfill(low)


def number_of(digits: str) -> int:
    """The number with these digits, of any length.

    >>> number_of(text_of(10**5000 + 7)) == 10**5000 + 7
    True
    """
    if len(digits) < _AT_ONCE // 4:
        return int(digits)
    low = len(digits) // 2
    power: int = 10**low
    return number_of(digits[:-low]) * power + number_of(digits[-low:])


def _integer(value: Any) -> int | None:
    """A value of a column of integers, as an int."""
    if isinstance(value, str):
        return -number_of(value[1:]) if value.startswith("-") else number_of(value)
    return None if value is None else int(value)
