"""The memory that the state of a running stream may take."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import estero
from local.streams import LAYOUT, KilledError, abandon, events, killed_at, read_lines, told
from local.test_live import put

QUERY = "SELECT * WHERE A ; B ; C PARTITION BY [user]"
EVENTS = [row | {"user": place // 4 * 7 % 90} for place, row in enumerate(events(400))]


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
    with pytest.raises(estero.LimitExceeded), opener(tmp_path, memory_limit="3 KB")() as stream:  # noqa: PT012
        stream.run(until_caught_up=True)


def shedding(directory: Path, kills: list[int]) -> tuple[list[str], int]:
    directory.mkdir()
    put(directory / "in", 0, EVENTS)
    opened = opener(directory, memory_limit="6 KB", memory_policy="shed")
    for step in kills:
        stream = opened()
        stream._reached = killed_at(step)
        try:
            stream.run(until_caught_up=True)
        except KilledError:
            pass
        abandon(stream)
    with opened() as stream:
        stream.run(until_caught_up=True)
        numbers = stream.metrics()
    return told(read_lines(directory / "out")), numbers["shed"]


def test_what_was_shed_is_shed_again_after_a_failure(tmp_path: Path) -> None:
    whole, shed = shedding(tmp_path / "whole", [])
    assert shed > 20
    for number, kills in enumerate([[60], [100, 30], [141]]):
        assert shedding(tmp_path / str(number), kills) == (whole, shed)
