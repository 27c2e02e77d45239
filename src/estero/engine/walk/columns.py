"""The events of each label, selected from complex events in one pass (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, column, kernel

Selected = tuple[NDArray[np.int32], NDArray[np.int64]]
"""One label: the offsets int32[m + 1] of the lists of its events, and these events, int64[items]."""


def select_labels(
    offsets: NDArray[np.int64],
    marks: NDArray[np.int32],
    events: NDArray[np.int64],
    lookup: NDArray[np.bool_],
) -> Sequence[Selected]:
    """For each label the events that it marks in each complex event, as lists.

    Complex event i has items offsets[i] … offsets[i + 1] - 1 of `events` int64[items]; `lookup[label, id]`
    says whether label set `id` has the label. A batch may mark at most 2^31 - 1 events.

    A label that marks all events is not looked up: without this, complex events of six events with one label
    on all of them and one on each took 41 ns. Where all complex events are marked in the same way, as those
    of a sequence are, they are rows of a table: with three labels that takes 5 ns, not 29.
    """
    items = int(offsets[1] - offsets[0]) if offsets.size > 1 else 0
    if items and _are_alike(offsets, marks, items):
        return _of_alike(events.reshape(-1, items), lookup[:, marks[:items]])
    counts = np.zeros(lookup.shape[1], np.int64)
    _count(marks, counts)
    places = np.flatnonzero(lookup @ counts < marks.size)  # the other labels have all events
    selected = [(offsets.astype(np.int32), events)] * len(lookup)
    lookup = lookup[places]
    of_set, labels = np.ascontiguousarray(np.nonzero(lookup.T))
    firsts = np.searchsorted(of_set, np.arange(lookup.shape[1] + 1))
    bases = np.concatenate(([0], np.cumsum(lookup @ counts)))
    starts = np.empty((len(places), offsets.size), np.int32)
    chosen = np.empty(int(bases[-1]), np.int64)
    _select(offsets, marks, events, firsts, labels, bases, bases[:-1].copy(), starts, chosen)
    for row, place in enumerate(places.tolist()):
        selected[place] = starts[row], chosen[bases[row] : bases[row + 1]]
    return selected


def _of_alike(events: NDArray[np.int64], has: NDArray[np.bool_]) -> list[Selected]:
    """The same for complex events that are rows of a table; `has` says which items each label marks."""
    matches = len(events)
    selected = []
    for own in has:
        number = np.count_nonzero(own)
        starts = np.arange(matches + 1, dtype=np.int32) * np.int32(number)
        selected.append((starts, events if number == own.size else events[:, own]))
    return [(starts, chosen.reshape(-1)) for starts, chosen in selected]


@kernel(INT64S, INT32S, INT)
def _are_alike(offsets, marks, items):  # type: ignore[no-untyped-def]
    """1 if all complex events have as many items as the first one, with the same marks, else 0."""
    for match in range(offsets.size - 1):
        first = offsets[match]
        if offsets[match + 1] - first != items:
            return 0
        unlike = 0
        for item in range(items):
            unlike |= marks[first + item] ^ marks[item]
        if unlike != 0:
            return 0
    return 1


@kernel(INT32S, INT64S)
def _count(marks, counts):  # type: ignore[no-untyped-def]
    """How often each label set occurs, counts int64[sets]."""
    for item in range(marks.size):
        counts[marks[item]] += 1


@kernel(INT64S, INT32S, INT64S, INT64S, INT64S, INT64S, INT64S, column(np.int32, 2), INT64S)
def _select(offsets, marks, events, firsts, labels, bases, ends, starts, chosen):  # type: ignore[no-untyped-def]
    """Fills starts int32[labels, m + 1] and chosen int64[bases[-1]].

    Label set k has labels[firsts[k]] … labels[firsts[k + 1] - 1]. The events of label j begin at
    chosen[bases[j]], and those before chosen[ends[j]] are filled.
    """
    for label in range(starts.shape[0]):
        starts[label, 0] = 0
    for match in range(offsets.size - 1):
        for item in range(offsets[match], offsets[match + 1]):
            mark = marks[item]
            event = events[item]
            for place in range(firsts[mark], firsts[mark + 1]):
                label = labels[place]
                chosen[ends[label]] = event
                ends[label] += 1
        for label in range(starts.shape[0]):
            starts[label, match + 1] = ends[label] - bases[label]
