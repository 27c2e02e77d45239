"""The output of a source before it is decoded: texts or a table, and the place after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Offsets = dict[str, Any]
"""A place in a source, as JSON; its keys depend on the source."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that cannot be read as an event: its place in the source, the reason, and its bytes."""

    place: str
    reason: str
    text: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Some `texts` (JSON objects), or a `table` whose columns may be texts; `after` is the place after them.

    - `place`: returns the place of an event by its number.
    - `dead`: the messages that the source itself could not read.
    - `wanted`: selects the events to keep after decoding; others are in a past that was read before.
    """

    after: Offsets
    texts: Sequence[bytes] = ()
    table: pa.Table | None = None
    place: Callable[[int], str] = str
    dead: tuple[DeadLetter, ...] = ()
    wanted: Callable[[pa.Table], pa.Table] | None = None

    @property
    def size(self) -> int:
        """The number of events, readable or not."""
        return len(self.texts) if self.table is None else int(self.table.num_rows)
