"""What fails around a stream: disks that are full, directories that are none; and how it goes on."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import estero
from estero import DataError
from local.streams import QUERY, abandon, events, expected, put, read_lines, stream, told

EVENTS = events(60)
FULL = "No space left on device"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "estero.live")


class Disk:
    """Has room for so many calls of a function of `os`, and then for a part of what is written."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, calls: int) -> None:
        self._calls, self._whole = calls, getattr(os, name)
        patch.setattr(os, name, self)

    def __call__(self, descriptor: int, *content: bytes) -> Any:
        self._calls -= 1
        if self._calls >= 0:
            return self._whole(descriptor, *content)
        if self._calls == -1 and content:
            return self._whole(descriptor, content[0][:7])
        raise OSError(errno.ENOSPC, FULL)


@pytest.mark.parametrize("every", [0, 3600])
@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_stream_whose_disk_was_full_goes_on_with_each_answer_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, calls: int, every: int
) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query(QUERY)
    running = stream(tmp_path, query, batch=20, checkpoint_every=every)
    with monkeypatch.context() as patch:
        Disk(patch, call, calls)
        try:
            running.run(until_caught_up=True)
            running.close()
        except DataError as error:
            assert f"cannot be written: {FULL}" in str(error)  # noqa: PT017 (some have what they need)
        abandon(running)
    with stream(tmp_path, query, batch=20) as again:
        again.run(until_caught_up=True)
    rows = read_lines(tmp_path / "out")
    assert told(rows) == expected(query, EVENTS)
    assert len({row["answer_id"] for row in rows}) == len(rows)


def test_a_checkpoint_where_no_directory_can_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="the checkpoint cannot be written: Not a directory"):
        stream(tmp_path, estero.query(QUERY), checkpoint=tmp_path / "file" / "state")


def test_a_poisonous_event_stops_nothing(tmp_path: Path) -> None:
    """Deep, long and broken events are dead letters; the others are those of a stream without them."""
    put(tmp_path / "in", 0, EVENTS[:30])
    deep, digits = b"[" * 100_000 + b"]" * 100_000, b"9" * 100_000
    poison = [deep, b"\x00", b'{"kind": {}}', b"\xc3("]
    poison += [b'{"v": ' + digits + b"}", b'{"time": "' + digits + b'"}']
    (tmp_path / "in" / "5.jsonl").write_bytes(b"\n".join(poison) + b"\n")
    query = estero.query(QUERY)
    with stream(tmp_path, query, dead_letters=f"json:{tmp_path}/dead") as running:
        running.run(until_caught_up=True)
        put(tmp_path / "in", 6, EVENTS[30:])
        running.run(until_caught_up=True)
        assert running.metrics()["dead"] == len(poison)
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)
    assert len(read_lines(tmp_path / "dead")) == len(poison)
