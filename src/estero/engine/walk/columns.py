"""The events of each label, extracted from matches in one pass (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, column, kernel

Selected = tuple[NDArray[np.int32], NDArray[np.int64]]
"""The list offsets int32[m + 1] of one label, and the events int64[items] with it."""
_TOGETHER: Final = 4
_LAST: Final = _TOGETHER - 1
"""So many labels are picked out in one pass."""
_FEW: Final = 64
"""So many events are picked out by NumPy sooner than by kernels."""


def select_labels(
    offsets: NDArray[np.int64],
    marks: NDArray[np.int32],
    events: NDArray[np.int64],
    lookup: NDArray[np.bool_],
    known: range,
) -> Sequence[Selected]:
    """The list offsets of each label, and those of `events` int64[items] that have it, counted from `known`.

    Complex event i has items offsets[i] … offsets[i + 1] - 1; `lookup[label, id]` says whether the label is
    in label set `id`. A batch may mark at most 2^31 - 1 events. Raises IndexError for an event that is not
    among the `known` ones.

    Complex events with the same marks, such as those of a sequence, are rows of a table, and a label is some
    of its columns. Measured a complex event of `A ; B+ ; C`, with 5.6 events: 19 ns; 49 when each event went
    from label to label of its set.
    """
    items = int(offsets[1] - offsets[0]) if offsets.size > 1 else 0
    is_table = items and items * (offsets.size - 1) == marks.size
    if is_table and (offsets.size == 2 or _are_alike(offsets, marks, items)):
        return _of_alike(events, lookup[:, marks[:items]], known)
    counts = np.zeros((_TOGETHER, lookup.shape[1]), np.int64)
    _count(marks, counts)
    having = lookup @ counts.sum(axis=0)
    selected: list[Selected | None] = [None] * len(lookup)
    places = np.flatnonzero(having < marks.size)
    for first in range(0, places.size, _TOGETHER):
        group = places[first : first + _TOGETHER]
        bits = (1 << np.arange(group.size)) @ lookup[group]
        bases = np.zeros(_TOGETHER + 1, np.int64)
        bases[1 : group.size + 1] = np.cumsum(having[group] + 1)
        bases[group.size + 1 :] = bases[group.size]
        starts, chosen = np.empty((_TOGETHER, offsets.size), np.int32), np.empty(int(bases[-1]) + 1, np.int64)
        _check(_select(offsets, marks, events, bits, bases, known.start, len(known), starts, chosen), known)
        for row, place in enumerate(group.tolist()):
            selected[place] = starts[row], chosen[bases[row] : bases[row + 1] - 1]
    if places.size == len(lookup):
        return [own for own in selected if own is not None]
    all_events = offsets.astype(np.int32), _picked(events, 1, np.zeros(1, np.int64), known)
    return [own or all_events for own in selected]


def _of_alike(events: NDArray[np.int64], has: NDArray[np.bool_], known: range) -> list[Selected]:
    """`select_labels` for complex events with the same marks; `has` says which items each label marks."""
    items = has.shape[1]
    selected = []
    if events.size <= _FEW:
        table = events.reshape(-1, items) - known.start
        _check(int(table.min() < 0 or table.max() >= len(known)), known)
        for own in has:
            chosen = table[:, own]
            selected.append((_starts(table.shape[0], chosen.shape[1]), chosen.reshape(-1)))
        return selected
    for own in has:
        chosen = _picked(events, items, np.flatnonzero(own), known)
        selected.append((_starts(events.size // items, int(np.count_nonzero(own))), chosen))
    return selected


def _starts(lists: int, length: int) -> NDArray[np.int32]:
    """The offsets of lists of one length."""
    if not length:
        return np.zeros(lists + 1, np.int32)
    return np.arange(0, lists * length + 1, length, dtype=np.int32)


def _picked(
    events: NDArray[np.int64], items: int, places: NDArray[np.int64], known: range
) -> NDArray[np.int64]:
    """The events at these places of each `items` events."""
    chosen = np.empty(events.size // items * places.size, np.int64)
    _check(_pick(events, items, places, known.start, len(known), chosen), known)
    return chosen


def _check(outside: int, known: range) -> None:
    if outside:
        raise IndexError(f"complex events have others than events {known.start} to {known.stop - 1}")


@kernel(INT64S, INT, INT64S, INT, INT, INT64S)
def _pick(events, items, places, first, number, chosen):  # type: ignore[no-untyped-def]
    """Fills `chosen` with the `places` of each `items` events; 1 if one is none of `number` from `first`."""
    outside = np.int64(0)
    last = first + number - 1
    for place in range(places.size):
        source = places[place]
        target = place
        while target < chosen.size:
            event = events[source]
            chosen[target] = event - first
            outside |= (event - first) | (last - event)
            source += items
            target += places.size
    return 1 if outside < 0 else 0


@kernel(INT64S, INT32S, INT)
def _are_alike(offsets, marks, items):  # type: ignore[no-untyped-def]
    """Whether all complex events have the same number of items and marks as the first one; 1 or 0.

    `items` is their average number.
    """
    unlike = np.int64(0)
    for match in range(offsets.size - 1):
        unlike |= offsets[match + 1] - offsets[match] - items
    if unlike != 0:
        return 0
    for item in range(items, marks.size):
        unlike |= np.int64(marks[item] ^ marks[item - items])
    return 1 if unlike == 0 else 0


@kernel(INT32S, column(np.int64, 2))
def _count(marks, counts):  # type: ignore[no-untyped-def]
    """The number of occurrences of each label set among every fourth item, counts int64[4, sets].

    Adjacent items are counted apart, for one count would wait for the other if they have the same marks.
    """
    for item in range(marks.size):
        counts[item & _LAST, marks[item]] += 1


@kernel(INT64S, INT32S, INT64S, INT64S, INT64S, INT, INT, column(np.int32, 2), INT64S)
def _select(offsets, marks, events, bits, bases, first, number, starts, chosen):  # type: ignore[no-untyped-def]
    """Fills starts int32[4, m + 1] and chosen for four labels at once; bits[id] are those in label set `id`.

    Returns 1 if an event is none of `number` from `first` on.

    Label k has chosen[bases[k]] … , and after its last place one that is written to but does not count: this
    avoids a branch for each event, which the processor would have to predict.
    """
    one, two, three, four = bases[0], bases[1], bases[2], bases[3]
    outside = np.int64(0)
    for label in range(_TOGETHER):
        starts[label, 0] = 0
    for match in range(offsets.size - 1):
        for item in range(offsets[match], offsets[match + 1]):
            own = bits[marks[item]]
            event = events[item] - first
            outside |= event | (number - 1 - event)
            chosen[one] = event
            chosen[two] = event
            chosen[three] = event
            chosen[four] = event
            one += own & 1
            two += own >> 1 & 1
            three += own >> 2 & 1
            four += own >> 3
        starts[0, match + 1] = one - bases[0]
        starts[1, match + 1] = two - bases[1]
        starts[2, match + 1] = three - bases[2]
        starts[3, match + 1] = four - bases[3]
    return 1 if outside < 0 else 0
