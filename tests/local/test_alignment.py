"""Partitions of a topic that are read side by side."""

from __future__ import annotations

from estero.local.sources.alignment import Alignment


def test_partitions_are_read_side_by_side() -> None:
    aligned: Alignment[int] = Alignment(lambda time: time)
    one, two = ("t", 0), ("t", 1)
    for time in (1, 5, 9):
        aligned.add(one, time)
    assert aligned.take([one, two], [], 10) == []
    aligned.add(two, 4)
    assert aligned.take([one, two], [], 10) == [1, 4]
    assert aligned.take([one, two], [two], 1) == [5]
    assert aligned.take([one, two], [one, two], 10) == [9]
    assert len(aligned) == 0


def test_messages_of_a_partition_keep_their_order_when_their_times_go_back() -> None:
    aligned: Alignment[int] = Alignment(lambda time: time)
    for time in (7, 3, 8):
        aligned.add(("t", 0), time)
    assert aligned.take([("t", 0)], [], 10) == [7, 3, 8]
    assert aligned.crowded(1) == set()
