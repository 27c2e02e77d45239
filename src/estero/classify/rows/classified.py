"""What is known of a single event once it is classified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Row = Sequence[Any]
"""The values of one event by the places of their columns; None is NULL, and timestamps are ticks."""
Key = tuple[int, int]
"""Both halves of a partition key, as the bits of unsigned integers."""


class ClassifiedRow(NamedTuple):
    """A relevant event: its row, time in ticks, the bits of all predicates, its key, and what is compared.

    Without a time that is 0, and without PARTITION BY the key is None.
    """

    row: Row
    time: int
    bits: int
    key: Key | None
    values: tuple[Any, ...]
