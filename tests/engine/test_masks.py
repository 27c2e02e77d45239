"""Masks looked up row by row, and the events of labels: the kernels beside their definitions in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estero.engine.masks import marked_rows, rows_among, rows_of_one, rows_with_bits
from estero.engine.walk import columns
from estero.engine.walk.columns import select_labels

INDEX_TYPES: tuple[type[np.integer[Any]], ...] = (
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
)


def drawn_masks(rng: np.random.Generator, number: int, words: int) -> list[NDArray[np.int64]]:
    """Masks of few bits: some rows are left without any, some have the highest bit of a word."""
    masks = []
    for _ in range(number):
        bits = rng.random((int(rng.integers(1, 20)), words, 63)) < 0.05
        masks.append((bits << np.arange(63)).sum(axis=2).astype(np.int64))
    return masks


@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_and_bits_are_those_of_all_columns_together(columns: int, words: int, keep_all: bool) -> None:
    rng = np.random.default_rng([columns, words])
    for index_type in INDEX_TYPES:
        masks = drawn_masks(rng, columns, words)
        drawn = [rng.integers(0, len(each), 500) for each in masks]
        together = np.bitwise_and.reduce([table[at] for table, at in zip(masks, drawn, strict=True)])
        wanted = np.flatnonzero(together.any(axis=1) | keep_all)
        indices: list[NDArray[np.integer[Any]]] = [each.astype(index_type) for each in drawn]
        rows, bits = rows_with_bits(indices, masks, keep_all=keep_all)
        assert rows.tolist() == wanted.tolist()
        assert bits.T.tolist() == together[wanted].tolist()


@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_rows_of_one_column_and_then_of_another_are_those_of_both(index_type: type[np.integer[Any]]) -> None:
    rng = np.random.default_rng(9)
    masks = drawn_masks(rng, 2, 1)
    one, other = (rng.integers(0, len(table), 500).astype(index_type) for table in masks)
    rows, bits = rows_among(other, masks[1][:, 0], *rows_of_one(one, masks[0][:, 0]))
    wanted, (wanted_bits,) = rows_with_bits([one, other], masks, keep_all=False)
    assert (rows.tolist(), bits.tolist()) == (wanted.tolist(), wanted_bits.tolist())


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_marked_rows_are_found(share: float) -> None:
    marked = np.random.default_rng(10).random(300) < share
    assert marked_rows(marked).tolist() == np.flatnonzero(marked).tolist()


def test_no_rows_have_no_bits() -> None:
    rows, bits = rows_with_bits([np.empty(0, np.int32)], [np.ones((1, 1), np.int64)], keep_all=True)
    assert (rows.shape, bits.shape) == ((0,), (1, 0))


def test_a_column_of_constant_memory_is_read_like_any_other() -> None:
    indices = np.array([0, 1, 0], np.int32)
    indices.flags.writeable = False
    rows, bits = rows_with_bits([indices], [np.array([[2], [0]], np.int64)], keep_all=False)
    assert (rows.tolist(), bits.tolist()) == ([0, 2], [[2, 2]])


def test_each_label_gets_its_events_in_order_and_its_own_offsets() -> None:
    rng = np.random.default_rng(7)
    lookup = rng.random((4, 6)) < 0.4
    lookup[2], lookup[3] = True, False
    offsets = np.concatenate(([0], np.cumsum(rng.integers(0, 5, 60)))).astype(np.int64)
    marks = rng.integers(0, 6, offsets[-1]).astype(np.int32)
    events = rng.integers(0, 1000, offsets[-1])
    selected = select_labels(offsets, marks, events, lookup, range(1000))
    assert len(selected) == 4
    for (starts, chosen), has in zip(selected, lookup, strict=True):
        assert chosen.tolist() == events[has[marks]].tolist()
        assert starts.tolist() == np.concatenate(([0], np.cumsum(has[marks])))[offsets].tolist()


@pytest.mark.parametrize("alike", [[0, 1, 2], [3], [4, 4, 0, 5, 4]])
def test_labels_of_complex_events_that_are_marked_alike_are_those_of_any_others(alike: list[int]) -> None:
    rng = np.random.default_rng(8)
    lookup = rng.random((5, 6)) < 0.4
    lookup[2], lookup[3] = True, False
    marks = np.tile(np.array(alike, np.int32), 40)
    offsets = np.arange(0, marks.size + 1, len(alike))
    events = rng.integers(0, 1000, marks.size)
    for number in (40, 39):  # the last one has an item less
        items = marks.size - (40 - number)
        cut = np.minimum(offsets, items)
        selected = select_labels(cut, marks[:items], events[:items], lookup, range(1000))
        for (starts, chosen), has in zip(selected, lookup, strict=True):
            assert chosen.tolist() == events[:items][has[marks[:items]]].tolist()
            assert starts.tolist() == np.concatenate(([0], np.cumsum(has[marks[:items]])))[cut].tolist()


def test_arrays_of_one_layout_need_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = set()

    def select(*given: NDArray[Any] | int) -> int:
        arrays = [each for each in given if isinstance(each, np.ndarray)]
        layouts.add(tuple((each.dtype, each.ndim, each.flags.c_contiguous) for each in arrays))
        return 0

    monkeypatch.setattr(columns, "_select", select)
    for labels in (1, 2, 5):
        lookup = np.arange(3 * labels).reshape(labels, 3) % 2 == 0
        marks = np.array([0, 1, 0], np.int32)
        select_labels(np.array([0, 2, 3]), marks, np.array([7, 8, 9]), lookup, range(10))
    assert len(layouts) == 1
    assert all(contiguous for _, _, contiguous in layouts.pop())


@pytest.mark.parametrize("marks", [[0, 1, 0, 1], [0, 0, 1, 0]])  # alike, and not
@pytest.mark.parametrize("shown", [[[True, False]], [[True, True]], [[False, True], [True, True]]])
def test_events_are_counted_from_the_first_that_is_known(marks: list[int], shown: list[list[bool]]) -> None:
    offsets, events = np.array([0, 2, 4]), np.array([7, 8, 7, 9])
    lookup = np.array(shown)
    given = offsets, np.array(marks, np.int32)
    from_seven = select_labels(*given, events - 7, lookup, range(3))
    for (starts, chosen), (same, counted) in zip(
        select_labels(*given, events, lookup, range(7, 10)), from_seven, strict=True
    ):
        assert (starts.tolist(), chosen.tolist()) == (same.tolist(), counted.tolist())
    for known in (range(8, 10), range(7, 9)):
        with pytest.raises(IndexError, match=f"others than events {known.start} to {known.stop - 1}"):
            select_labels(*given, events, np.ones((1, 2), np.bool_), known)


def test_without_labels_nothing_is_selected() -> None:
    offsets, marks, events = np.array([0, 1]), np.zeros(1, np.int32), np.array([5])
    assert list(select_labels(offsets, marks, events, np.empty((0, 1), np.bool_), range(9))) == []
