"""What a source gives, before it is decoded: texts or a table, and where the source goes on behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Offsets = dict[str, Any]
"""A place in a source, as JSON; what its keys are is the source's own business."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What came and cannot be read as an event: its place in the source, the reason, and its bytes."""

    place: str
    reason: str
    text: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Some `texts` (JSON objects), or a `table` whose columns may still be texts; `after` is where they end.

    `place` says where the event of a number is, `dead` are those that the source could not read itself.
    Of events that are no longer `wanted` (a past that was read before has them), decoding drops those.
    """

    after: Offsets
    texts: Sequence[bytes] = ()
    table: pa.Table | None = None
    place: Callable[[int], str] = str
    dead: tuple[DeadLetter, ...] = ()
    wanted: Callable[[pa.Table], pa.Table] | None = None

    @property
    def size(self) -> int:
        """How many events there are, read or not."""
        return len(self.texts) if self.table is None else int(self.table.num_rows)
