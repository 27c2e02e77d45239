"""In how many complex events each event is, as a table (docs/frames.md, "The whole set")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.answers.in_memory import check_polars, pandas_of, polars_of
from estero.answers.shown_values import held_by_python, shown_rows
from estero.errors import legible

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_PREVIEWED = 20
"""The rows that are printed."""
_AT_ONCE = 10_000
"""The bits of a number that Python writes at once: 3,010 digits."""


class Participation:
    """In how many complex events each event is marked: one row for each event and label.

    The columns: ``label`` (string), ``position`` (int64), the partition columns, the attributes that labels
    show (NULL where an event has none of that name), as in `Answer.rows`, and ``count``, in how many complex
    events the event is marked so, at least 1. It is int64 where all counts fit, else decimal128 of 38 digits,
    and string where that does not hold them. Rows are in the order of positions, then of labels.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """The table of Arrow."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas data frame."""
        return pandas_of(self._table)

    def to_polars(self) -> pl.DataFrame:
        """The same as a Polars data frame; EnvironmentProblem without Polars."""
        check_polars(self._table.schema)
        return polars_of(self._table)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The same as a dict for each row, whose ``count`` is an int of any size."""
        with held_by_python("a value of this answer"):
            rows: list[dict[str, Any]] = self._table.to_pylist()
        name = self._table.column_names[-1]
        return [
            {**row, name: number_of(row[name]) if isinstance(row[name], str) else int(row[name])}
            for row in rows
        ]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        first = self._table.slice(0, _PREVIEWED).to_batches()
        rows = [self._table.column_names]
        rows += [[*map(_shown, row.values())] for batch in first for row in shown_rows(batch)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        form = "  ".join(f"{{:<{width}}}" for width in widths)
        lines = [form.format(*row).rstrip() for row in rows]
        more = len(self) - _PREVIEWED
        return legible("\n".join([*lines, *([f"and {more:,} more"] if more > 0 else [])]), lines=True)


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


def _shown(value: object) -> str:
    return "" if value is None else str(value)
