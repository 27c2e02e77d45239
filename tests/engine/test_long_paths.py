"""Numbers of paths beyond words, and the paths that they lead to, against a plain count of every node."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.streams import batch_of, recognizer_of
from estero.engine.store.arena import NONE, UNION, Arena
from estero.engine.walk import long_paths
from estero.engine.walk.counter import FITS, SHORT
from estero.engine.walk.long_paths import LongPaths


def plain_counts(arena: Arena, oldest: int) -> list[int]:
    """The paths of each node that start inside the window, one node after the other."""
    counts: list[int] = []
    size = arena.size[0]
    columns = (column[:size].tolist() for column in (arena.kind, arena.left, arena.right, arena.start))
    for kind, left, right, start in zip(*columns, strict=True):
        below = (1 if left == NONE else counts[left]) + (counts[right] if kind == UNION else 0)
        counts.append(below if start >= oldest else 0)
    return counts


def plain_match(arena: Arena, counts: list[int], node: int, index: int) -> list[int]:
    """The marked events of path number `index` below a node, ascending."""
    events = []
    while True:
        left = int(arena.left[node])
        if arena.kind[node] == UNION:
            right = index >= counts[left]
            index -= counts[left] if right else 0
            node = int(arena.right[node]) if right else left
            continue
        if arena.kind[node] >= 0:
            events.append(int(arena.event[node]))
        if left == NONE:
            assert index == 0
            return events[::-1]
        node = left


@pytest.mark.parametrize(("length", "spare"), [(1, 192), (1, 0), (7, 8), (7, 64), (40, 0), (1 << 12, 192)])
@pytest.mark.parametrize("pattern", ["A ; B+ ; C", "A+ ; B", "(A OR B)+ ; C", "(A ; B)+ ; C"])
@given(
    st.integers(350, 450),
    st.one_of(st.none(), st.integers(250, 340)),
    st.integers(0, 99),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5),
)
@settings(max_examples=3)
def test_any_path_is_found_by_its_number(
    length: int, spare: int, pattern: str, events: int, window: int | None, seed: int, places: list[float]
) -> None:
    letters = "".join(random.Random(seed).choices("ABC", (8, 8, 1), k=events - 1)) + (
        "B" if pattern == "A+ ; B" else "C"
    )
    recognizer, bits = recognizer_of(pattern, window=window)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(long_paths, "_SHORTEST", length)
        patched.setattr(long_paths, "_SPARE", spare)
        for roots in recognizer.push(batch_of(letters, bits)):
            numbers = recognizer.counts(roots)
            for place in (*range(0, len(numbers), 40), len(numbers) - 1):
                root, oldest = int(roots.root[place]), int(roots.oldest[place])
                counts = plain_counts(recognizer.runs.arena, oldest)
                assert numbers[place] == counts[root]
                for index in {0, counts[root] - 1, *(int(counts[root] * at) for at in places)}:
                    found = recognizer.match_at(roots, place, index)
                    assert found.event.tolist() == plain_match(recognizer.runs.arena, counts, root, index)
    assert numbers[-1] > FITS


@pytest.mark.long
@pytest.mark.parametrize("window", [None, 5_000])
@pytest.mark.parametrize("pattern", ["A ; B+ ; C", "(A OR B)+ ; C"])
def test_leading_bits_tell_the_way_of_long_numbers(pattern: str, window: int | None) -> None:
    draw = random.Random(3)
    recognizer, bits = recognizer_of(pattern, window=window)
    whole = []
    told = LongPaths._way

    def way(paths: LongPaths, top: int, index: int, shift: int) -> object:
        whole.append(shift == 0)
        return told(paths, top, index, shift)

    for roots in recognizer.push(batch_of("".join(draw.choices("ABC", (1, 2, 1), k=8_000)) + "C", bits)):
        root, oldest = int(roots.root[-1]), int(roots.oldest[-1])
        counts = plain_counts(recognizer.runs.arena, oldest)
        total, last = counts[root], len(roots.root) - 1
        assert recognizer.counts(roots.part(last, last + 1)) == [total]
        assert total.bit_length() > 2_000
        for index in [*(draw.randrange(total) for _ in range(5)), 7, total >> 1_000, total - 1, total - 9]:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(LongPaths, "_way", way)
                found = recognizer.match_at(roots, last, index)
            assert found.event.tolist() == plain_match(recognizer.runs.arena, counts, root, index)
    assert sum(whole) < len(whole) / 2


def test_numbers_of_different_windows_are_kept_apart() -> None:
    recognizer, bits = recognizer_of("A+ ; B", window=90)
    for roots in recognizer.push(batch_of("A" * 99 + "ABAAB" * 9, bits)):
        numbers = recognizer.counts(roots)
        for place in (5, 3, 5, 0, 4, 5):
            counts = plain_counts(recognizer.runs.arena, int(roots.oldest[place]))
            root = int(roots.root[place])
            assert recognizer.counts(roots.part(place, place + 1)) == [numbers[place]] == [counts[root]]
            found = recognizer.match_at(roots, place, numbers[place] - 1)
            assert found.event.tolist() == plain_match(
                recognizer.runs.arena, counts, root, numbers[place] - 1
            )
        assert len(set(numbers)) > 3
        assert np.unique(roots.oldest).size > 3


@pytest.mark.parametrize("pattern", ["A ; B ; C", "A ; (B OR C) ; C"])
@pytest.mark.parametrize("window", [5, 30, 300])
def test_the_edge_of_the_window_is_counted_however_long_it_is(pattern: str, window: int) -> None:
    recognizer, bits = recognizer_of(pattern, window=window)
    for roots in recognizer.push(batch_of("".join(random.Random(window).choices("ABC", k=500)), bits)):
        numbers = recognizer.counts(roots)
        assert recognizer.total(roots) == sum(numbers)
        for number, root, oldest in zip(numbers, roots.root.tolist(), roots.oldest.tolist(), strict=True):
            assert number == plain_counts(recognizer.runs.arena, oldest)[root]
    assert max(numbers) < FITS
    assert (recognizer.runs.counter.steps > 2 * SHORT * len(numbers)) == (window == 300)
