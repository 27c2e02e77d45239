"""LIMIT behind filters: of each end, complex events are looked at until enough have passed, and few beyond.

In rounds: of all ends a few, then more of those ends where not enough of them passed. A round begins anew,
and looks at several times as many as the one before, so that all together look at little more than the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from estero.answers.report import EventStore
from estero.answers.sieve.batches import chosen, joined, taken
from estero.answers.sieve.marked import Integers
from estero.answers.sieve.sieve import Sieve
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots, by_end

Find = Callable[[Roots, int], Iterable[Matches]]
"""The first so many complex events of each end of some roots."""

_FIRST: Final = 4
"""So many are looked at for each that is wanted, before it is known how many pass."""
_FACTOR: Final = 8
_AT_ONCE: Final = 1 << 14
"""Complex events that are held until all those of their ends are there, unless one end has more."""


def sifted_to_limit(
    sieve: Sieve, find: Find, roots: Roots, limit: int, store: EventStore
) -> Iterator[Matches]:
    """What the sieve leaves of `roots`, at most `limit` for each end, in order of their ends."""
    ends, bounds = by_end(roots)
    step = max(1, _AT_ONCE // limit)
    for low in range(0, ends.size, step):
        part = roots.part(bounds[low], bounds[min(low + step, ends.size)])
        found = list(_rounds(sieve, find, part, limit, store))
        if found:
            together = joined(found)
            yield taken(together, np.argsort(together.end, kind="stable"))


def _rounds(sieve: Sieve, find: Find, roots: Roots, limit: int, store: EventStore) -> Iterator[Matches]:
    """The answers, those of an end together; ends come as they are done with."""
    most = _FIRST * limit
    while roots.event.size:
        ends, _ = by_end(roots)
        looked_at, passed = np.zeros(ends.size, np.int64), np.zeros(ends.size, np.int64)
        found = _counted(find(roots, most), ends, looked_at)
        kept = list(_counted(sieve.sift_all(found, store), ends, passed))
        unknown = ends[(passed < limit) & (looked_at >= most)]
        for each in kept:
            done = chosen(each, np.flatnonzero(~np.isin(each.end, unknown)))
            if len(done.start):
                yield done
        roots = roots.chosen(np.flatnonzero(np.isin(roots.event, unknown)))
        most *= _FACTOR


def _counted(chunks: Iterable[Matches], ends: Integers, counts: Integers) -> Iterator[Matches]:
    """The same chunks; adds up in `counts` how many there are of each of `ends`."""
    for chunk in chunks:
        np.add.at(counts, np.searchsorted(ends, chunk.end), 1)
        yield chunk
