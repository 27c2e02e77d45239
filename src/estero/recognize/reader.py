"""What recognition has found → tables, counts and single complex events, however often they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from estero.recognize.recognition import Ended, Recognition

Found = Iterable[tuple[Recognition, Ended]]
"""Compact sets in order of their ends, each with what has found it."""

_PICKED_AT_ONCE = 256
"""Complex events that are gone to by their indexes before they are handed on."""


def tables_of(found: Found, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """All complex events in order of their end, or the first `limit` of them."""
    if limit is not None and limit <= 0:
        return
    left = limit
    for recognition, ended in found:
        for table in recognition.tables(ended):
            if left is not None and table.num_rows >= left:
                yield table.slice(0, left)
                return
            yield table
            left = None if left is None else left - table.num_rows


def counts_of(found: Found) -> Iterator[tuple[int, int]]:
    """(end position, number of complex events that end there), ascending, without enumerating."""
    for recognition, ended in found:
        yield from recognition.counts(ended)


def picked_from(found: Found, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """The complex events with these ascending indexes, without enumerating those between."""
    wanted = iter(indexes)
    index = next(wanted, None)
    before = 0
    for recognition, ended in found:
        if index is None:
            return
        total = sum(count for _, count in recognition.counts(ended))
        here: list[int] = []
        while index is not None and index < before + total:
            here.append(index - before)
            index = next(wanted, None)
            if len(here) == _PICKED_AT_ONCE:
                yield recognition.pick(ended, here)
                here = []
        if here:
            yield recognition.pick(ended, here)
        before += total
