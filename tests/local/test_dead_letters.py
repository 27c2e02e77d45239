"""What comes and cannot be read as an event."""

from __future__ import annotations

from pathlib import Path

import pytest

import estero
from local.streams import (
    LAYOUT,
    QUERY,
    KilledError,
    abandon,
    events,
    expected,
    killed_at,
    put,
    read_lines,
    stream,
    told,
)

EVENTS = events(60)


def test_without_an_address_dead_letters_are_counted_and_logged_with_their_fields(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(b'{"kind": "A"}\n\xff\n[1]\n' + b"[" * 100_000 + b"\n")
    with stream(tmp_path, estero.query(QUERY)) as running:
        running.step()
        assert running.metrics()["dead"] == 4
    reasons = [record.__dict__["reason"] for record in caplog.records]
    assert reasons[:2] == ["this is not UTF-8: invalid start byte at byte 0", "this is JSON, but no object"]
    assert reasons[2].startswith("this is not JSON: maximum recursion depth exceeded")
    assert [record.__dict__["letters"] for record in caplog.records] == [4, 4, 4]


def test_dead_letters_before_the_first_event_are_kept_and_counted_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_text("nothing\n{}\n")
    query = estero.query(QUERY)

    def opened() -> estero.LiveStream:
        given = {"schema": None, "dead_letters": f"json:{tmp_path}/dead", "checkpoint_every": 3600}
        return stream(tmp_path, query, **given)

    running = opened()
    assert running.step()
    put(tmp_path / "in", 1, EVENTS)
    running._reached = killed_at(4)
    with pytest.raises(KilledError):
        running.run(until_caught_up=True)
    abandon(running)
    with opened() as running:
        running.run(until_caught_up=True)
        numbers = running.metrics()
    assert (numbers["events"], numbers["dead"]) == (len(EVENTS) + 2, 2)
    assert [row["text"] for row in read_lines(tmp_path / "dead")] == ["nothing", "{}"]
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)


def test_bytes_that_are_no_text_are_kept_as_base64(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(b"\xff\xfe\n")
    with stream(tmp_path, estero.query(QUERY), dead_letters=f"json:{tmp_path}/dead") as running:
        running.step()
    (letter,) = read_lines(tmp_path / "dead")
    assert (letter["text"], letter["base64"]) == (None, "//4=")
    assert letter["place"].endswith("0.jsonl:1")


def test_a_file_that_is_no_parquet_is_a_dead_letter(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.parquet").write_bytes(b"nothing")
    with estero.live(
        estero.query(QUERY), f"parquet:{tmp_path}/in", f"json:{tmp_path}/out", **LAYOUT,
        dead_letters=f"json:{tmp_path}/dead",
    ) as running:  # fmt: skip
        running.run(until_caught_up=True)
    (letter,) = read_lines(tmp_path / "dead")
    assert letter["reason"].startswith("this file cannot be read")
