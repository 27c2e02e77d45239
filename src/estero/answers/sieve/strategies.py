"""MAX, NEXT and LAST among the complex events of an end position (docs/semantics.md)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from estero.answers.measures.marked import Integers, Mask
from estero.engine.walk.matches import Matches
from estero.language.tree.query import Strategy


def strategic(strategy: Strategy, matches: Matches) -> Integers:
    """The rows that the strategy keeps, ascending; matches of one end are adjacent and complete."""
    match strategy:
        case Strategy.NEXT:
            return _largest(matches, matches.offsets[:-1], +1)
        case Strategy.LAST:
            return _largest(matches, matches.offsets[1:] - 1, -1)
        case Strategy.MAX:
            return np.flatnonzero(_maximal(matches))
        case _:
            return np.arange(len(matches.start))


def _groups(matches: Matches) -> Integers:
    """A number for each match, by its end."""
    change = np.diff(matches.end) != 0
    groups = np.zeros(len(matches.start), np.int64)
    np.cumsum(change, out=groups[1:])
    return groups


def _largest(matches: Matches, begins: Integers, step: int) -> Integers:
    """The rows whose support is the largest at their end, compared from `begins` on in steps of `step`.

    Going up, the first difference decides for the smaller event, as that is the one in the larger support;
    going down, for the larger event. Where one support has ended, the other is the larger one.
    """
    rows = np.arange(len(matches.start))
    sizes, groups = np.diff(matches.offsets), _groups(matches)
    settled = [np.empty(0, np.int64)]
    place = 0
    while len(rows):
        goes_on = sizes[rows] > place
        some_go_on = np.zeros(groups[-1] + 1, np.bool_)
        some_go_on[groups[rows[goes_on]]] = True
        settled.append(rows[~some_go_on[groups[rows]]])
        rows = rows[goes_on]
        if len(rows):
            events = matches.event[begins[rows] + step * place] * step
            best = np.full(groups[-1] + 1, np.iinfo(np.int64).max)
            np.minimum.at(best, groups[rows], events)
            rows = rows[events == best[groups[rows]]]
        place += 1
    return np.sort(np.concatenate(settled))


def _maximal(matches: Matches) -> Mask:
    """Whether each match has a support that no other at its end strictly contains, bool [m].

    If one support at an end holds everything that is marked there, it alone is maximal; if all are of one
    size, none contains another.
    """
    sizes, groups = np.diff(matches.offsets), _groups(matches)
    if not len(groups):
        return np.zeros(0, np.bool_)
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    largest, smallest = np.maximum.reduceat(sizes, begins), np.minimum.reduceat(sizes, begins)
    keep: Mask = sizes == largest[groups]
    whole = _distinct(matches.event, np.repeat(groups, sizes), len(begins)) == largest
    bounds = [*begins.tolist(), len(groups)]
    for group in np.flatnonzero(~whole & (smallest < largest)).tolist():
        low, high = bounds[group], bounds[group + 1]
        items = matches.event[matches.offsets[low] : matches.offsets[high]]
        keep[low:high] = _maximal_of(items, matches.offsets[low : high + 1] - matches.offsets[low])
    return keep


def _distinct(events: Integers, groups: Integers, count: int) -> Integers:
    """The number of different events in each group, int64 [count]."""
    order = np.lexsort((events, groups))
    events, groups = events[order], groups[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (events[1:] != events[:-1]) | (groups[1:] != groups[:-1])
    return np.bincount(groups[is_new], minlength=count)


def _maximal_of(items: NDArray[np.int64], offsets: Integers) -> list[bool]:
    """The same for one end at which no support holds all items.

    Larger supports come first; each is compared with the maximal ones that hold its rarest event.
    """
    events, numbers = np.unique(items, return_inverse=True)
    places: list[int] = numbers.tolist()
    bounds: list[int] = offsets.tolist()
    sets = [frozenset(places[low:high]) for low, high in pairwise(bounds)]
    holding: list[list[frozenset[int]]] = [[] for _ in events]
    maximal: set[frozenset[int]] = set()
    for support in sorted(set(sets), key=len, reverse=True):
        rarest = min(support, key=lambda item: len(holding[item]), default=None)
        if rarest is not None and not _is_inside(support, holding[rarest]):
            maximal.add(support)
            for item in support:
                holding[item].append(support)
    return [support in maximal for support in sets]


def _is_inside(support: frozenset[int], others: Iterable[frozenset[int]]) -> bool:
    return any(support < other for other in others)
