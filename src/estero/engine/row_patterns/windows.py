"""The ends of the windows of rows, found in a pass over rows in order of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT64S, kernel


@kernel(INT64S, INT64S, INT64S, INT64S)
def mark_ends(times, latest, first, ends):  # type: ignore[no-untyped-def]
    """Writes for each row the end of the rows of its partition whose time is at most its `latest`.

    times, latest and ends int64[rows]; a partition is rows first[p] to first[p + 1] int64[partitions + 1], in
    which times rise. Where `latest` rises, too, the border advances from the previous row's; else it is found
    by binary search.
    """
    for partition in range(first.size - 1):
        begin = first[partition]
        end = first[partition + 1]
        at = begin
        for row in range(begin, end):
            if row > begin and latest[row] < latest[row - 1]:
                low = begin
                high = end
                while low < high:
                    half = (low + high) >> 1
                    if times[half] <= latest[row]:
                        low = half + 1
                    else:
                        high = half
                at = low
            else:
                while at < end and times[at] <= latest[row]:
                    at += 1
            ends[row] = at


def ends_of(
    times: NDArray[np.int64], latest: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each row, the end of the rows of its partition whose time is at most its `latest`.

    >>> import numpy as np
    >>> times = np.array([1, 2, 5, 1, 1])
    >>> ends_of(times, times + 1, np.array([0, 3, 5])).tolist()
    [2, 2, 3, 5, 5]
    """
    ends = np.empty(times.size, np.int64)
    mark_ends(np.ascontiguousarray(times), np.ascontiguousarray(latest), first, ends)
    return ends
