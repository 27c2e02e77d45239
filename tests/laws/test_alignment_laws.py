"""Partitions that are read side by side: nothing is lost, each keeps its order, none runs ahead."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estero.local.sources.alignment import Alignment

TIMES = st.lists(st.integers(0, 9), max_size=6)


def taken(partitions: list[list[int]], turns: list[int], most: int) -> list[tuple[int, int, int]]:
    """What is taken, as partition, place and time: a message a turn of some partition, then all others."""
    names = [("t", number) for number in range(len(partitions))]
    aligned: Alignment[tuple[int, int, int]] = Alignment(lambda message: message[2])
    read = [0] * len(partitions)
    out = []

    def add(number: int) -> None:
        if read[number] < len(partitions[number]):
            aligned.add(names[number], (number, read[number], partitions[number][read[number]]))
            read[number] += 1

    for turn in turns:
        add(turn % len(partitions))
        ends = [
            name for name, place, times in zip(names, read, partitions, strict=True) if place == len(times)
        ]
        out += aligned.take(names, ends, most)
    for number, times in enumerate(partitions):
        for _ in times:
            add(number)
    while len(aligned):
        out += aligned.take(names, names, most)
    return out


@given(st.lists(TIMES, min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=20), st.integers(1, 4))
def test_each_message_is_taken_once_in_the_order_of_its_partition(
    partitions: list[list[int]], turns: list[int], most: int
) -> None:
    out = taken(partitions, turns, most)
    for number, times in enumerate(partitions):
        own = [(place, time) for other, place, time in out if other == number]
        assert own == list(enumerate(times))


@given(
    st.lists(TIMES.map(sorted), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), max_size=20),
    st.integers(1, 4),
)
def test_partitions_in_order_of_time_are_one_stream_in_order_of_time(
    partitions: list[list[int]], turns: list[int], most: int
) -> None:
    times = [time for _, _, time in taken(partitions, turns, most)]
    assert times == sorted(times)
