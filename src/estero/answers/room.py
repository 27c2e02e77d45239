"""Whether an answer fits into memory, found out while it is fetched: before it is full, not after."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from estero.errors import LimitExceeded

_UNASKED = 256 << 20
"""Bytes that are fetched before complex events are counted: a second's work or so, to which counting adds."""
_UNKNOWN = 8 << 30
"""The memory of a machine that does not say what it has."""
_OF_A_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_room() -> int:
    """Bytes that one answer may take: half of the memory of the machine, or of the container."""
    return min([_memory_of_the_machine(), *_limits_of_the_container()]) // 2


def within(
    room: int, batches: Iterable[pa.RecordBatch], count: Callable[[], int] | None, *, asked: str
) -> Iterator[pa.RecordBatch]:
    """The batches, as long as all of them fit into so many bytes.

    Where much has come, `count` says how much will; without it (counting would take as long as fetching) they
    come until the room is full. `asked` is what wants them. Raises `LimitExceeded`, which names the number.
    """
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if count is not None and size > min(_UNASKED, room // 2):
            total = count()
            if total * (size / rows) > room:
                raise _too_much(f"{total:,} complex events", total * size // rows, room, asked)
            count = None
        if size > room:
            raise _too_much(f"more than {rows:,} complex events", size, room, asked)
        yield batch


def _too_much(number: str, size: int, room: int, asked: str) -> LimitExceeded:
    return LimitExceeded(
        f"the answer has {number}, which take {_in_words(size)} or more in memory, and {asked} fills at most "
        f"{_in_words(room)} here: count() counts them, limit(n) and sample(k) take some, write(path) writes "
        "them to a file; an answer with a limit is held whatever its size"
    )


def _in_words(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB"


def _memory_of_the_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _limits_of_the_container() -> Iterator[int]:
    for file in _OF_A_CONTAINER:
        try:
            yield int(file.read_text())
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
