"""A memory of recent results for repeated requests that cannot be hashed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")


class Remembered(Generic[Answer]):
    """The results of the last few requests, which are compared by ``==``.

    >>> lengths = Remembered[int]()
    >>> lengths.of({"a": 1}, lambda: 1), lengths.of({"a": 1}, lambda: 1 // 0)
    (1, 1)

    Where that does not tell all of them apart, `same` compares two.
    """

    def __init__(self, most: int = 16, same: Callable[[Any, Any], bool] = operator.eq) -> None:
        self._most = most
        self._same = same
        self._last: list[tuple[object, Answer]] = []

    def of(self, asked: object, work: Callable[[], Answer]) -> Answer:
        """The result for a request: remembered, or else computed by `work`."""
        for known, answer in self._last[:]:  # another thread may write
            if self._same(known, asked):
                return answer
        answer = work()
        self._last.insert(0, (asked, answer))
        del self._last[self._most :]
        return answer
