"""Transactions that hold what several batches have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from threading import Event

import pytest

from estero import DataError
from estero.addresses import Address
from estero.local.sinks import group_commit
from estero.local.sinks.group_commit import GroupCommit
from estero.local.sinks.kafka import KafkaTopic


class Broker:
    """Has what was committed; a commit waits until it is let go, if it is held."""

    def __init__(self) -> None:
        self.committed: list[tuple[list[int], int]] = []
        self.begun, self.let_go = Event(), Event()
        self.let_go.set()
        self.failure: Exception | None = None

    def commit(self, items: Sequence[int], number: int) -> None:
        self.begun.set()
        self.let_go.wait()
        if self.failure is not None:
            raise self.failure
        self.committed.append((list(items), number))


def held() -> tuple[Broker, GroupCommit[int]]:
    """A broker that is at a first commit, which does not end yet."""
    broker = Broker()
    broker.let_go.clear()
    commits = GroupCommit(broker.commit, -1, 0.0)
    commits.put(0, [1])
    broker.begun.wait()
    return broker, commits


def test_what_comes_during_a_transaction_is_in_the_next_one_with_the_last_number() -> None:
    broker, commits = held()
    commits.put(1, [2, 3])
    commits.put(2, [])
    commits.put(3, [4])
    commits.put(4, [])
    assert commits.committed == -1
    broker.let_go.set()
    commits.wait()
    assert broker.committed == [([1], 0), ([2, 3, 4], 4)]
    assert commits.committed == 4
    commits.close()


def test_a_batch_without_rows_is_committed_behind_those_that_have_some() -> None:
    broker, commits = held()
    commits.put(1, [])
    assert commits.committed == -1
    broker.let_go.set()
    commits.wait()
    assert (broker.committed, commits.committed) == ([([1], 0)], 1)
    commits.put(2, [])
    assert commits.committed == 2
    commits.close()


def test_a_commit_that_fails_is_the_last_one_and_the_stream_hears_of_it() -> None:
    broker, commits = held()
    commits.put(1, [2])
    broker.failure = DataError("the broker is gone")
    broker.let_go.set()
    with pytest.raises(DataError, match="the broker is gone"):
        commits.wait()
    with pytest.raises(DataError, match="the broker is gone"):
        commits.put(2, [3])
    with pytest.raises(DataError, match="the broker is gone"):
        commits.check()
    assert (broker.committed, commits.committed) == ([], -1)
    commits.close()


def test_what_waits_when_it_is_closed_is_left_to_the_next_process() -> None:
    broker = Broker()
    commits = GroupCommit(broker.commit, 6, 3_600.0)
    commits.put(7, [1])
    commits.wait()
    commits.put(8, [2])
    commits.close()
    assert (broker.committed, commits.committed) == ([([1], 7)], 7)


def test_whoever_waits_does_not_wait_for_the_interval() -> None:
    broker = Broker()
    commits = GroupCommit(broker.commit, -1, 3_600.0)
    for number in range(3):
        commits.put(number, [number])
        commits.wait()
    assert broker.committed == [([0], 0), ([1], 1), ([2], 2)]
    commits.close()


def test_much_that_waits_does_not_wait_for_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "_MOST", 4)
    broker = Broker()
    commits = GroupCommit(broker.commit, -1, 3_600.0)
    for number in range(40):
        commits.put(number, [number])
    commits.wait()
    assert [item for items, _ in broker.committed for item in items] == list(range(40))
    commits.close()


@pytest.mark.parametrize("seed", range(5))
def test_items_are_committed_once_and_in_order_however_they_come(seed: int) -> None:
    draw = random.Random(seed)
    broker = Broker()
    commits = GroupCommit(broker.commit, -1, 0.0)
    for number in range(60):
        commits.put(number, [number] * draw.randrange(3))
        if draw.random() < 0.3:
            commits.wait()
            assert commits.committed == number
    commits.wait()
    commits.close()
    items = [item for items, _ in broker.committed for item in items]
    numbers = [number for _, number in broker.committed]
    assert items == sorted(items)
    assert numbers == sorted(set(numbers))
    for items, number in broker.committed:
        assert items[-1] <= number


@pytest.mark.parametrize("text", ["soon", "-1", "60001", "1.5"])
def test_an_interval_that_is_none_is_an_error(text: str) -> None:
    pytest.importorskip("confluent_kafka", reason="estero[kafka] is not installed")
    address = Address("kafka", "a:9092", "t", options={"commitIntervalMs": text})
    with pytest.raises(DataError, match="commitIntervalMs is from 0 to 60,000 milliseconds, not"):
        KafkaTopic(address)
