"""``python -m benchmarks.calls``: what calling a kernel costs, by what it is given; asked are 1.5 µs.

The kernels have nothing to do, so that the time is that of the call: µs by the processor's clock for this
thread, the least of some turns. Pools are given as a recognizer has them, with their blocks filled; and
anew, as where one of their arrays has moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import estero
from estero.engine.kernels import Cursor, Kernel
from estero.engine.runs.run_cea import advance
from estero.engine.stamps import _window_starts
from estero.engine.walk.columns import _count, _select

_CALLS, _TURNS = 20_000, 15


def microseconds(call: Callable[..., object], arguments: tuple[Any, ...]) -> float:
    """What one call takes."""
    took = []
    for _ in range(_TURNS):
        begun = time.thread_time_ns()
        for _ in range(_CALLS):
            call(*arguments)
        took.append((time.thread_time_ns() - begun) / _CALLS / 1e3)
    return min(took)


def given(kernel: Kernel) -> tuple[Any, ...]:
    """What a kernel is given for the last event of a stream, which it has read."""
    seen: list[tuple[Any, ...]] = []
    called = Kernel.__call__

    def noted(self: Kernel, *arguments: Any) -> int:
        if self is kernel:
            seen.append(arguments)
        return called(self, *arguments)

    with patch.object(Kernel, "__call__", noted):
        events = pa.table({"type": ["A", "B", "C"]})
        estero.query("SELECT * WHERE A ; B ; C").run(events, type="type").to_arrow()
    return seen[-1]


def cases() -> Iterator[tuple[str, Kernel, tuple[Any, ...]]]:
    """What is measured."""
    places, numbers = np.empty(0, np.int32), np.empty(0, np.int64)
    yield "2 arrays", _count, (places, numbers)
    yield "2 arrays and 2 integers", _window_starts, (numbers.view(np.uint64), 0, 0, numbers)
    arrays = (numbers, places, *[numbers] * 5, np.empty((0, 0), np.int32), numbers)
    yield "9 arrays", _select, arrays
    arguments = given(advance)
    yield "4 pools, a cursor and 2 integers", advance, arguments
    yield "nothing: the kernel's function of Python", advance.function, arguments


def main() -> None:
    """Prints the table."""
    print("| given | µs |")
    print("|---|---:|")
    for name, kernel, arguments in cases():
        print(f"| {name} | {microseconds(kernel, arguments):.2f} |", flush=True)
    arguments = given(advance)

    def moved() -> int:
        pools = (type(pool)(*pool) if isinstance(pool, tuple) else pool for pool in arguments)
        return advance(*pools)

    pools = [pool for pool in arguments if isinstance(pool, tuple) and not isinstance(pool, Cursor)]
    print(f"| the same, all {len(pools)} pools made anew | {microseconds(moved, ()):.2f} |")


if __name__ == "__main__":
    main()
