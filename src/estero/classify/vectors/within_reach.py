"""Leaves out classified events that no complex event can span (`plan.Reach`), batch by batch.

Each batch is considered alone: all events within the window of its ends are kept, because the events before
and after it are unknown. So nothing waits, and the answer does not depend on the batches.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.needs import Bits, Need
from estero.classify.arrays import numbers_in
from estero.classify.column_names import POSITION, TIME, WORD, word_names
from estero.classify.vectors.taking import taken
from estero.engine.int64 import GREATEST, LEAST
from estero.engine.near import near_marked
from estero.plan.reach import Reach

_RARE: Final = 0.75
"""The largest share of the stream that windows around rare events may cover to leave enough out."""
SAMPLE: Final = 1 << 12
"""The number of events sampled to find out how rare they are."""

Stamps = NDArray[np.int64]


def within_reach(reach: Reach, stamps: Stamps, words: Sequence[NDArray[np.int64]]) -> NDArray[np.intp] | None:
    """The ascending indexes of the events that matter, of n relevant ones; None if all of them may.

    stamps int64[n] are positions or times, like the window, and words int64[n] the bits.
    """
    if not stamps.size:
        return None
    step = max(1, stamps.size // SAMPLE)
    needs = rare_needs(reach, int(stamps[0]), int(stamps[-1]), [word[::step] for word in words], step)
    return near_needed(reach, needs, stamps, words)


def rare_needs(
    reach: Reach, first: int, last: int, sample: Sequence[NDArray[np.int64]], step: int
) -> list[Need]:
    """The needs that few events between two stamps serve; `sample` has the bits of one of `step` events."""
    length, span = reach.window.length, last - first + 1
    if 2 * length >= span or first - length < LEAST or last + length > GREATEST:
        return []
    return [need for need in reach.needs if _is_rare(need, sample, step * length, span)]


def near_needed(
    reach: Reach, needs: Sequence[Need], stamps: Stamps, words: Sequence[NDArray[np.int64]]
) -> NDArray[np.intp] | None:
    """`within_reach` for some of the needs."""
    if not needs or bool((stamps[1:] < stamps[:-1]).any()):
        return None
    kept: NDArray[np.intp] | None = None
    for need in needs:
        marked = _any_kind(need.kinds, words)
        near = near_marked(stamps, marked, reach.window.length, before=not need.last, behind=not need.first)
        places = np.flatnonzero(near)
        kept = places if kept is None else kept[places]
        stamps, words = stamps[places], [word[places] for word in words]
        if not places.size:
            break
    return kept


def _is_rare(need: Need, sample: Sequence[NDArray[np.int64]], length: int, span: int) -> bool:
    """Whether windows of this length around such events of a sample would cover little of the stream."""
    number = np.count_nonzero(_any_kind(need.kinds, sample))
    sides = 1 if need.first or need.last else 2
    return bool(number * sides * length < _RARE * span)


def batch_within_reach(reach: Reach, batch: pa.RecordBatch, predicates: int) -> pa.RecordBatch:
    """The events of a classified batch that matter."""
    stamps = numbers_in(batch.column(POSITION if reach.window.in_positions else TIME))
    kept = within_reach(reach, stamps, [numbers_in(batch.column(name)) for name in word_names(predicates)])
    return batch if kept is None else taken(batch, kept)


def _any_kind(kinds: frozenset[Bits], words: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Whether each event has all bits of one of the kinds."""
    if all(len(kind) == 1 for kind in kinds):
        masks = _masks(frozenset().union(*kinds))
        return reduce(operator.or_, [(words[word] & mask) != 0 for word, mask in masks.items()])
    return reduce(operator.or_, (_of_kind(kind, words) for kind in kinds))


def _of_kind(kind: Bits, words: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    return reduce(operator.and_, [(words[word] & mask) == mask for word, mask in _masks(kind).items()])


def _masks(bits: Bits) -> dict[int, np.int64]:
    """Bits by the word that they are in."""
    masks: dict[int, int] = {}
    for bit in bits:
        masks[bit // WORD] = masks.get(bit // WORD, 0) | 1 << bit % WORD
    return {word: np.int64(mask) for word, mask in masks.items()}
