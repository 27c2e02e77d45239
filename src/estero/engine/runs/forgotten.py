"""The events that CONSUME BY PARTITION has forgotten: in each partition, all events before a certain one.

A hash index like that of runs, by partition key; instead of max_start it has the first event that counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import CONSUME_PARTITION, CONSUME_PARTITION_ASKED
from estero.engine.kernels import INT, column, inlined, kernel
from estero.engine.store.hash_index import FREE, START, TAG, HashIndex, claim, find, new_index, put, rebuilt


def new_forgotten(consume: int, capacity: int) -> HashIndex | None:
    """An empty index for `capacity` partitions at first; None if partitions do not forget separately."""
    return new_index(capacity) if consume in (CONSUME_PARTITION, CONSUME_PARTITION_ASKED) else None


def with_free_slot(forgotten: HashIndex, oldest: int, capacity: int) -> HashIndex:
    """The index with a free slot for one more partition; if it grows, then by `capacity` at least."""
    return forgotten if has_free_slot(forgotten) else rebuilt(forgotten, oldest, capacity)


@inlined
def first_kept(forgotten, partition, place, oldest):  # type: ignore[no-untyped-def]
    """The first event that counts in the partition of the event at `place`, at least `oldest`.

    partition uint64[n, 2]: the keys of a batch.
    """
    entry = find(forgotten, 0, partition[place, 0], partition[place, 1])
    if entry == FREE:
        return oldest
    return max(oldest, forgotten.entries[entry, START])


@kernel(HashIndex)
@inlined
def has_free_slot(forgotten):  # type: ignore[no-untyped-def]
    """Whether there is a free slot for one more partition."""
    return 2 * (forgotten.used[0] + 1) <= forgotten.words.shape[0]


@kernel(HashIndex, column(np.uint64, 2), INT, INT, INT)
def forget(forgotten, partition, place, event, oldest):  # type: ignore[no-untyped-def]
    """Makes `event` the first that counts in the partition of the event at `place`.

    Needs `has_free_slot`. Events before `oldest` do not count anywhere.
    """
    one = partition[place, 0]
    two = partition[place, 1]
    entry = claim(forgotten, 0, one, two, oldest)
    put(forgotten, entry, 0, 0, event)


def forgotten_rows(forgotten: HashIndex, oldest: int, events: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The entries as rows uint64[n, 4], by key, in terms of the ascending `events` that are kept.

    Only the entries by which a kept event does not count.
    """
    rows: NDArray[np.uint64] = forgotten.words[
        (forgotten.entries[:, TAG] != 0) & (forgotten.entries[:, START] > oldest)
    ]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    places = np.searchsorted(events, rows[:, START].view(np.int64))
    rows[:, START] = places
    changed: NDArray[np.uint64] = rows[places > 0]
    return changed
