"""The limit of memory for the state of a recognizer, and the times at which it is checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from estero.errors import LimitExceeded

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.answers.rule_answers import RuleAnswers
    from estero.recognize.metrics import Extent

_UNITS: Final = {
    **{name: 1000**power for power, name in enumerate(["B", "KB", "MB", "GB", "TB"])},
    **{name: 1024**power for power, name in enumerate(["B", "KIB", "MIB", "GIB", "TIB"])},
}
_SIZE: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?I?B)\s*", re.IGNORECASE)
_SELDOM: Final = 16
"""It is measured again after at least this fraction of the state at that time has come."""


def bytes_of(limit: int | str) -> int:
    """A limit in bytes, from a number or a text with a unit; ValueError for anything else.

    >>> bytes_of("1.5 KB"), bytes_of("2 MiB")
    (1500, 2097152)
    """
    if isinstance(limit, str):
        size = _SIZE.fullmatch(limit)
        if size is None or size[2].upper() not in _UNITS:
            raise ValueError(
                f"a memory limit is a number of bytes, or a text such as '500 MB': not {limit!r}"
            )
        limit = int(float(size[1]) * _UNITS[size[2].upper()])
    if isinstance(limit, bool) or limit < 1:
        raise ValueError(f"a memory limit is at least one byte, not {limit}")
    return limit


MemoryPolicy = Literal["error", "shed"]
"""The action at the limit: an error, or shedding of the oldest partitions."""


class Shed(NamedTuple):
    """The number of partitions that were shed, and of events that only they needed."""

    partitions: int = 0
    events: int = 0


class MemoryGuard:
    """Guards the state of a recognizer, which may take `limit` bytes; `policy` is the action at the limit.

    Measuring takes as long as a snapshot, so that it waits until a part of the state may be new: the cost is
    in proportion to the events that come.
    """

    def __init__(self, limit: int, policy: MemoryPolicy = "error") -> None:
        self.limit = limit
        self.over = False
        """Whether the state exceeds the limit, and some of it is to be shed before the next events."""
        self._sheds = policy == "shed"
        self._next = 0

    def check(
        self,
        events: int,
        size: int,
        measured: Callable[[], Extent],
        answer: Answer | RuleAnswers,
        *,
        can_shed: bool,
    ) -> None:
        """Raises `LimitExceeded`, with the answer, if the state after so many events exceeds the limit.

        `size` is the number of items of any kind held. If the policy is to shed and something can be shed, it
        sets `over` instead.
        """
        if events < self._next:
            return
        extent = measured()
        self._next = 0
        if extent.bytes <= self.limit:
            self._next = events + size // _SELDOM
        elif self._sheds and can_shed:
            self.over = True
        else:
            raise LimitExceeded(_words(extent, self.limit), answer=answer)


def shed_to(limit: int, measured: Callable[[], Extent], shed: Callable[[], int]) -> Shed:
    """Sheds until the state is within this size, or nothing can be shed."""
    first = extent = measured()
    partitions = 0
    while extent.bytes > limit:
        dropped = shed()
        if not dropped:
            break
        partitions += dropped
        extent = measured()
    return Shed(partitions, first.events - extent.events)


def _words(extent: Extent, limit: int) -> str:
    return (
        f"the state of this recognizer takes {extent.bytes:,} bytes, and it may take {limit:,}: "
        f"{extent.events:,} events are kept and {extent.nodes:,} nodes of compact sets, for "
        f"{extent.partitions:,} partitions in which something is open, beside what is held back. The events "
        "of this push are recognized, and its answer is error.answer. Hold less with a (shorter) WITHIN, "
        "PARTITION BY with fewer keys at a time, or a lower lateness; or resume a snapshot with a higher "
        'memory_limit; memory_policy="shed" drops the oldest partitions instead'
    )
