"""CONSUME BY PARTITION where runs wait by keys: each partition forgets by itself, whoever decides when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import chain_steps, pcea_runs
from estero.engine.batch import EventBatch
from estero.engine.cursor import CONSUME_PARTITION, CONSUME_PARTITION_ASKED
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns

Letters = list[tuple[str, int, int]]
"""A type, a partition and a value for each event."""

LETTERS: st.SearchStrategy[Letters] = st.lists(
    st.tuples(st.sampled_from("AAB"), st.integers(0, 3), st.integers(0, 4)), max_size=50
)
ROOMS = st.sampled_from((1, 4096))
ASKED = st.sampled_from((CONSUME_PARTITION, CONSUME_PARTITION_ASKED))


def batch_of(letters: Letters) -> EventBatch:
    """Column 0 of keys and values is the partition and the value; a disequality is of key column 1."""
    columns = np.array([[partition, value] for _, partition, value in letters], np.int64).reshape(-1, 2)
    keys = np.repeat(columns.view(np.uint64)[:, :, None], 2, axis=2)
    bits = np.array([1 << "AB".index(letter) for letter, _, _ in letters], np.uint64)
    there = np.ones(columns.shape, np.bool_)
    values = columns[:, [1, 1]]
    return EventBatch(
        np.arange(len(letters)),
        bits.reshape(-1, 1),
        keys,
        there,
        values,
        there,
        np.ascontiguousarray(keys[:, 0]),
    )


def expected(letters: Letters, window: int | None, *, rising: bool) -> list[tuple[int, int]]:
    """(end, complex events) where some end: pairs of one partition that rise, or that differ."""
    waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
    found = []
    for event, (letter, partition, value) in enumerate(letters):
        if letter == "A":
            waiting[partition].append((event, value))
            continue
        inside = [each for at, each in waiting[partition] if window is None or event - at <= window]
        count = sum(each < value if rising else each != value for each in inside)
        if count:
            found.append((event, count))
            waiting[partition] = []
    return found


def counted(
    recognizer: Recognizer[PceaRuns] | Recognizer[ChainRuns], batch: EventBatch, *, asked: bool = False
) -> Iterator[tuple[int, int]]:
    """(end, complex events); decides that all of them are answers, where it is `asked`."""
    for roots in recognizer.push(batch):
        ends, counts = recognizer.counts_by_end(roots)
        yield from zip(ends.tolist(), counts, strict=True)
        if asked:
            recognizer.consume()


def rising(consume: int, capacity: int, window: int | None) -> Recognizer[PceaRuns]:
    return Recognizer(PceaRuns(pcea_runs.rising(2).tables, window, consume=consume, capacity=capacity))


def differing(consume: int, capacity: int) -> Recognizer[ChainRuns]:
    return Recognizer(ChainRuns(chain_steps.sequence(2, [(1, 1)]).tables, consume=consume, capacity=capacity))


@given(LETTERS, ASKED, ROOMS, st.none() | st.integers(0, 20))
def test_runs_that_wait_in_order_are_forgotten_by_partitions(
    letters: Letters, consume: int, capacity: int, window: int | None
) -> None:
    asked = consume == CONSUME_PARTITION_ASKED
    found = list(counted(rising(consume, capacity, window), batch_of(letters), asked=asked))
    assert found == expected(letters, window, rising=True)


@given(LETTERS, ASKED, ROOMS)
def test_runs_that_wait_in_lists_are_forgotten_by_partitions(
    letters: Letters, consume: int, capacity: int
) -> None:
    asked = consume == CONSUME_PARTITION_ASKED
    found = list(counted(differing(consume, capacity), batch_of(letters), asked=asked))
    assert found == expected(letters, None, rising=False)


@given(LETTERS, st.integers(0, 50), st.booleans())
def test_what_is_forgotten_stays_so_through_a_snapshot(letters: Letters, cut: int, in_order: bool) -> None:
    def recognizer() -> Recognizer[PceaRuns] | Recognizer[ChainRuns]:
        return rising(CONSUME_PARTITION, 1, 20) if in_order else differing(CONSUME_PARTITION, 1)

    before, after = recognizer(), recognizer()
    found = list(counted(before, batch_of(letters[:cut])))
    after.resume(before.snapshot())
    shift = cut - after.seen
    rest = batch_of(letters[cut:])
    found += [(end + shift, count) for end, count in counted(after, rest._replace(stamps=rest.stamps + cut))]
    assert found == expected(letters, 20 if in_order else None, rising=in_order)


@pytest.mark.parametrize("capacity", [1, 64])
def test_many_partitions_fit(capacity: int) -> None:
    letters = [
        (letter, partition, value) for partition in range(500) for letter, value in (("A", 0), ("B", 1))
    ]
    found = list(counted(rising(CONSUME_PARTITION, capacity, None), batch_of([*letters, *letters])))
    assert found == [(event, 1) for event in range(1, 2_000, 2)]


@pytest.mark.parametrize("recognizer", [rising(CONSUME_PARTITION, 1, 5), differing(CONSUME_PARTITION, 1)])
def test_events_without_partitions_are_refused(
    recognizer: Recognizer[PceaRuns] | Recognizer[ChainRuns],
) -> None:
    batch = batch_of([("A", 0, 0), ("B", 0, 1)])._replace(partition=np.empty((0, 2), np.uint64))
    with pytest.raises(ValueError, match="2 events have 0 partition keys, and partitions forget"):
        list(recognizer.push(batch))
