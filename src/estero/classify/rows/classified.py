"""The data of a single classified event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Row = Sequence[Any]
"""The values of one event by the indexes of their columns; None is NULL, and timestamps are ticks."""
Key = tuple[int, int]
"""Both halves of a partition key, as the bits of unsigned integers."""


class ClassifiedRow(NamedTuple):
    """A relevant event: row, time in ticks, bits of all predicates, key and compared values.

    Without a time column the time is 0, and without PARTITION BY the key is None.
    """

    row: Row
    time: int
    bits: int
    key: Key | None
    values: tuple[Any, ...]
