"""The memory that the state of a running stream may take."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import estero
from local.streams import LAYOUT, KilledError, abandon, events, expected, killed_at, put, read_lines, told

QUERY = "SELECT * WHERE A ; B ; C PARTITION BY [user]"
EVENTS = [row | {"user": place // 12} for place, row in enumerate(events(400))]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "estero.live")


def opener(directory: Path, **options: Any) -> Callable[[], estero.LiveStream]:
    def opened() -> estero.LiveStream:
        given = {
            "checkpoint": directory / "state",
            "checkpoint_every": 3600,
            "batch": 20,
            **LAYOUT,
            **options,
        }
        return estero.live(estero.query(QUERY), f"json:{directory}/in", f"json:{directory}/out", **given)

    return opened


def test_a_stream_fails_at_its_limit(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    with pytest.raises(estero.LimitExceeded), opener(tmp_path, memory_limit="3 KB")() as stream:
        stream.run(until_caught_up=True)


@pytest.mark.parametrize("kills", [[], [60], [100, 30], [141, 7, 7, 7]])
def test_what_is_shed_is_shed_again_after_a_failure(tmp_path: Path, kills: list[int]) -> None:
    put(tmp_path / "in", 0, EVENTS)
    opened = opener(tmp_path, memory_limit="6 KB", memory_policy="shed")
    for step in kills:
        stream = opened()
        stream._reached = killed_at(step)
        with suppress(KilledError):
            stream.run(until_caught_up=True)
        abandon(stream)
    with opened() as stream:
        stream.run(until_caught_up=True)
        assert stream.metrics()["shed_partitions"] > 5
    rows, whole = read_lines(tmp_path / "out"), expected(estero.query(QUERY), EVENTS)
    assert len({row["answer_id"] for row in rows}) == len(rows) > len(whole) // 2
    assert set(told(rows)) <= set(whole)


def test_shedding_that_was_noted_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "in", 0, EVENTS)
    opened = opener(tmp_path, memory_limit="6 KB", memory_policy="shed")
    stream = opened()

    def reached(step: str) -> None:
        if step == "shedding noted":
            raise KilledError(step)

    stream._reached = reached
    with pytest.raises(KilledError):
        stream.run(until_caught_up=True)
    abandon(stream)
    with opened() as stream:
        monkeypatch.setattr(stream._source, "poll", lambda _most, _seconds: None)
        stream.step()
        assert stream.metrics()["shed_partitions"] > 0
