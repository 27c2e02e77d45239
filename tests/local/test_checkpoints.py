"""Checkpoints that fit, and those that are damaged, older or of something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import estero
from estero import DataError
from local.streams import QUERY, abandon, events, expected, put, read_lines, stream, told

EVENTS = events(60)


def test_a_checkpoint_of_another_query_or_engine_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    with stream(tmp_path, estero.query(QUERY)) as running:
        running.step()
    with pytest.raises(DataError, match="this checkpoint has another query: SELECT"):
        stream(tmp_path, estero.query("SELECT * WHERE A"))
    note = json.loads((tmp_path / "state" / "estero.json").read_text())
    (tmp_path / "state" / "estero.json").write_text(json.dumps(note | {"engine": "spark"}))
    with pytest.raises(DataError, match="this checkpoint has another engine: spark"):
        stream(tmp_path, estero.query(QUERY))


def test_two_processes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    with stream(tmp_path, estero.query(QUERY)), pytest.raises(DataError, match="another process uses this"):
        stream(tmp_path, estero.query(QUERY))


@pytest.mark.parametrize("place", [3, 200, -1])
def test_a_damaged_state_is_refused(tmp_path: Path, place: int) -> None:
    put(tmp_path / "in", 0, EVENTS)
    with stream(tmp_path, estero.query(QUERY)) as running:
        running.step()
    state = bytearray((tmp_path / "state" / "state").read_bytes())
    state[place] ^= 1
    (tmp_path / "state" / "state").write_bytes(state)
    with (
        pytest.raises(DataError, match="this state of a stream cannot be read"),
        stream(tmp_path, estero.query(QUERY)) as running,
    ):
        running.step()


def test_a_journal_is_read_up_to_a_line_that_is_not_whole_and_refused_if_another_one_is_none(
    tmp_path: Path,
) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query(QUERY)
    running = stream(tmp_path, query, batch=20, checkpoint_every=3600)
    running.step()
    abandon(running)
    (journal,) = (tmp_path / "state").glob("journal-*")
    whole = journal.read_bytes()
    journal.write_bytes(b"[1]\n" + whole)
    refused = pytest.raises(DataError, match="this journal of a stream cannot be read")
    with refused, stream(tmp_path, query) as running:
        running.step()
    journal.write_bytes(whole + b'{"number": 1, "aft')
    with stream(tmp_path, query, batch=20) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)


def test_an_older_checkpoint_than_the_sink_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS[:30])
    with stream(tmp_path, estero.query(QUERY)) as running:
        running.step()
        kept = (tmp_path / "state" / "state").read_bytes()
    put(tmp_path / "in", 1, EVENTS[30:])
    with stream(tmp_path, estero.query(QUERY)) as running:
        running.run(until_caught_up=True)
    (tmp_path / "state" / "state").write_bytes(kept)
    with (
        pytest.raises(DataError, match="the sink has batch 1 of this stream"),
        stream(tmp_path, estero.query(QUERY)) as running,
    ):
        running.step()


def test_a_file_that_changed_behind_the_last_state_is_an_error(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query(QUERY)
    running = stream(tmp_path, query, batch=20, checkpoint_every=3600)
    running.step()
    running._checkpoint.close()  # type: ignore[union-attr]
    (tmp_path / "in" / "0.jsonl").write_text("")
    with (
        pytest.raises(DataError, match="this file has changed since it was read"),
        stream(tmp_path, query) as again,
    ):
        again.step()
