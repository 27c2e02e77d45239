"""Batches of matches as values: chosen rows, items left out, batches joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estero.answers.sieve.marked import Integers, MarkTable, Mask
from estero.engine.walk.matches import Matches


def chosen(matches: Matches, rows: Integers) -> Matches:
    """The matches in these ascending rows."""
    if len(rows) == len(matches.start):
        return matches
    return taken(matches, rows)


def taken(matches: Matches, rows: Integers) -> Matches:
    """The matches in these rows, in the order of the rows."""
    items = items_of(matches, rows)
    return Matches(
        matches.start[rows],
        matches.end[rows],
        _offsets(np.diff(matches.offsets)[rows]),
        matches.event[items],
        matches.marks[items],
    )


def items_of(matches: Matches, rows: Integers) -> Integers:
    """The items of the matches in these rows."""
    sizes = np.diff(matches.offsets)[rows]
    offsets = _offsets(sizes)
    return np.repeat(matches.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])


def shown(matches: Matches, marks: MarkTable) -> Matches:
    """The matches as answers show them: items without visible labels left out, equal sets under one id."""
    if not marks.merges:
        return matches
    visible: Mask = marks.is_visible[matches.marks]
    before = _offsets(visible)
    return matches._replace(
        offsets=before[matches.offsets],
        event=matches.event[visible],
        marks=marks.shown_as[matches.marks[visible]],
    )


def joined(parts: Sequence[Matches]) -> Matches:
    """One batch after the other; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(each.offsets) for each in parts])
    return Matches(
        np.concatenate([each.start for each in parts]),
        np.concatenate([each.end for each in parts]),
        _offsets(sizes),
        np.concatenate([each.event for each in parts]),
        np.concatenate([each.marks for each in parts]),
    )


def _offsets(sizes: Integers | Mask) -> Integers:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
