"""Counts of a tally against the compact set, whose own counts are compared with enumeration elsewhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.streams import batch_of, recognizer_of
from estero.engine.recognizer import Recognizer
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.tally import long_counts, tally
from estero.engine.tally.sliding_count import look_ahead
from estero.engine.tally.tally import Tally
from estero.engine.walk.counter import FITS

PATTERNS = (
    *("A", "A ; B", "A ; B ; C", "A ; B? ; C", "A ; (A OR B) ; C", "(A ; B) OR (B ; C)", "A OR (A ; A ; B)"),
    *("A ; B+ ; C", "(A OR B)+ ; C", "(A ; B)+", "A+", "A : B+ ; (C OR A)"),
)
BATCHES = st.lists(st.text("ABCx", min_size=1, max_size=25), min_size=1, max_size=4)
WINDOWS = st.one_of(st.none(), st.integers(0, 30))
Found = tuple[np.ndarray, list[int]]


def of(recognizer: Recognizer[CeaRuns]) -> Tally:
    found = recognizer.runs.tally
    assert found is not None
    return found


def ended(
    recognizer: Recognizer[CeaRuns],
    batches: list[str],
    bits: dict[str, int],
    keys: list[int] | None,
    stamps: list[int] | None,
) -> Iterator[Found]:
    """The ends in each batch and how many complex events each has, by the compact set."""
    first = 0
    for letters in batches:
        last = first + len(letters)
        batch = batch_of(letters, bits, first=first, keys=None if keys is None else keys[first:last])
        if stamps is not None:
            batch = batch._replace(stamps=np.array(stamps[first:last]))
        for roots in recognizer.push(batch):
            yield recognizer.counts_by_end(roots)
        first = last


@given(
    st.sampled_from(PATTERNS),
    BATCHES,
    WINDOWS,
    st.lists(st.integers(0, 2), min_size=100, max_size=100),
    st.data(),
)
def test_a_tally_counts_what_is_in_the_compact_set(
    pattern: str, batches: list[str], window: int | None, steps: list[int], data: st.DataObject
) -> None:
    keyed = data.draw(st.booleans())
    keys = data.draw(st.lists(st.integers(0, 2), min_size=100, max_size=100)) if keyed else None
    recognizer, bits = recognizer_of(pattern, window=window, counting=True, keyed=keyed)
    for ends, counts in ended(recognizer, batches, bits, keys, np.cumsum(steps).tolist()):
        before = of(recognizer).before(ends)
        assert [before(number) for number in range(ends.size + 1)] == np.cumsum([0, *counts]).tolist()


@given(st.sampled_from(PATTERNS), BATCHES, WINDOWS, st.booleans(), st.integers(1, 9))
def test_ends_that_are_due_are_counted_later(
    pattern: str, batches: list[str], window: int | None, keyed: bool, fewest: int
) -> None:
    keys = [place % 3 for place in range(100)] if keyed else None
    recognizer, bits = recognizer_of(pattern, window=window, counting=True, keyed=keyed)
    total = expected = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tally, "_FEWEST", fewest)
        for ends, counts in ended(recognizer, batches, bits, keys, None):
            total += of(recognizer).add(int(ends[0]), int(ends[-1]) + 1)
            expected += sum(counts)
        assert total + of(recognizer).rest() == expected
        assert of(recognizer).rest() == 0


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("window", [None, 300, 400])
@pytest.mark.parametrize("pattern", ["A ; B+ ; C", "A+", "(A OR B)+ ; C", "(A ; B)+"])
def test_numbers_beyond_words_are_exact(pattern: str, window: int | None, keyed: bool) -> None:
    draw = random.Random(7)
    batches = ["".join(draw.choices("ABCx", (3, 5, 1, 1), k=length)) for length in (200, 3, 400)]
    keys = [int(draw.random() < 0.2) for _ in range(700)] if keyed else None
    stamps = np.cumsum([draw.choice((0, 0, 1, 4)) for _ in range(700)]).tolist()
    recognizer, bits = recognizer_of(pattern, window=window, counting=True, keyed=keyed)
    largest = 0
    for ends, counts in ended(recognizer, batches, bits, keys, stamps):
        before, total = of(recognizer).before(ends), 0
        for number, count in enumerate(counts):
            if number % 50 == 0:
                assert before(number) == total
            total += count
        assert before(ends.size) == total
        largest = max(largest, total)
    assert largest.bit_length() > 63


@pytest.mark.parametrize("window", [300, 700])
@pytest.mark.parametrize("pattern", ["A ; B+ ; C", "(A OR B)+ ; C"])
@pytest.mark.long
def test_numbers_get_long_and_short_again_from_batch_to_batch(pattern: str, window: int) -> None:
    draw = random.Random(window)
    letters = "".join(
        letter
        for weights in ((3, 5, 1, 1), (0, 0, 1, 9), (3, 5, 1, 1))
        for letter in draw.choices("ABCx", weights, k=900)
    )
    cuts = [0, *sorted(draw.sample(range(1, len(letters)), 14)), len(letters)]
    batches = [letters[first:last] for first, last in pairwise(cuts)]
    recognizer, bits = recognizer_of(pattern, window=window, counting=True)
    kinds = []
    for ends, counts in ended(recognizer, batches, bits, None, None):
        before = of(recognizer).before(ends)
        for number in {0, 1, ends.size // 2, draw.randrange(ends.size), ends.size - 1, ends.size}:
            assert before(number) == sum(counts[:number])
        kinds.append(sum(counts) >= FITS)
    assert [kind for kind, _ in groupby(kinds)][-3:] == [True, False, True]
    again, _ = recognizer_of(pattern, window=window, counting=True)
    total = sum(
        of(again).add(int(ends[0]), int(ends[-1]) + 1) - sum(counts)
        for ends, counts in ended(again, batches, bits, None, None)
    )
    assert total + of(again).rest() == 0


def blocks_in_words(letters: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many blocks are looked at for the total."""
    looked = 0

    def counted(*given: object) -> None:
        nonlocal looked
        looked += 1
        look_ahead(*given)

    recognizer, bits = recognizer_of("A ; B+ ; C", window=2_000, counting=True)
    ends = [roots.event for roots in recognizer.push(batch_of(letters, bits))]
    with monkeypatch.context() as patched:
        patched.setattr(long_counts, "look_ahead", counted)
        assert of(recognizer).before(ends[-1])(ends[-1].size) >= FITS
    return looked


@pytest.mark.long
def test_a_few_long_numbers_do_not_make_all_blocks_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(3)
    letters = "".join(draw.choices("ABC", k=20_000))
    burst = letters[:3_000] + "B" * 200 + letters[3_200:]
    assert blocks_in_words(burst, monkeypatch) < 1.1 * blocks_in_words(letters, monkeypatch)


@pytest.mark.long
def test_blocks_get_longer_again_behind_many_long_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(3)
    letters = "".join(draw.choices("ABC", k=20_000))
    long = "".join(draw.choices("ABC", (1, 20, 1), k=1_000))
    behind = blocks_in_words(letters[:3_000] + long + letters[4_000:], monkeypatch)
    assert behind < 1.25 * blocks_in_words(letters, monkeypatch)
