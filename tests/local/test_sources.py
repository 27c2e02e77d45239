"""Files, lines and servers from which events come, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import estero
from estero import DataError
from estero.local import door
from estero.local.sinks.console import Console
from estero.local.sources.lines import StandardInput
from local.streams import LAYOUT, QUERY, events, expected, frame, put, read_lines, stream, told

EVENTS = events(60)


def test_the_console_has_lines_as_run_has_them(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query, output = estero.query(QUERY), io.BytesIO()
    with estero.live(query, f"json:{tmp_path}/in", "console", **LAYOUT) as running:
        running._deliveries.sinks[0] = Console(output)
        running.run(until_caught_up=True)
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert told([row | row.pop("labels") for row in rows]) == expected(query, EVENTS)


def test_lines_of_a_server_are_read_until_it_closes_the_connection() -> None:
    query, output = estero.query(QUERY), io.BytesIO()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("".join(json.dumps(row) + "\n" for row in EVENTS)[:-1].encode())

        thread = threading.Thread(target=serve)
        thread.start()
        with estero.live(query, f"tcp://127.0.0.1:{port}", **LAYOUT) as running:
            running._deliveries.sinks[0] = Console(output)
            running.run()
        thread.join()
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert told([row | row.pop("labels") for row in rows]) == expected(query, EVENTS)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    refused = pytest.raises(DataError, match="nobody answers: Connection refused")
    with refused, estero.live(estero.query(QUERY), f"tcp://127.0.0.1:{port}", **LAYOUT) as running:
        running.step()


def test_what_is_open_is_decided_where_a_stream_without_a_checkpoint_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.write(writing, "".join(json.dumps(row) + "\n" for row in EVENTS).encode())
    os.close(writing)
    monkeypatch.setattr(door, "opened_source", lambda _address: StandardInput(reading))
    query, output = estero.query(QUERY), io.BytesIO()
    with estero.live(query, "stdin", lateness="1 hour", **LAYOUT) as running:
        running._deliveries.sinks[0] = Console(output)
        running.run()
    os.close(reading)
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert told([row | row.pop("labels") for row in rows]) == expected(query, EVENTS)


def test_compressed_lines_and_files_that_are_not_whole_yet(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, [])
    (tmp_path / "in" / "_begun.jsonl").write_text("not whole")
    text = "".join(json.dumps(row) + "\n" for row in EVENTS).encode()
    (tmp_path / "in" / "0.jsonl.gz").write_bytes(gzip.compress(text))
    query = estero.query(QUERY)
    with stream(tmp_path, query) as running:
        running.run(until_caught_up=True)
        assert running.metrics()["dead"] == 0
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)


def test_the_past_has_to_have_the_columns_by_which_it_is_told_from_the_stream(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    put(tmp_path / "past", 0, [{"kind": "A", "time": "2025-01-01T00:00:00Z", "v": "one"}])
    past = tmp_path / "past" / "0.jsonl"
    with pytest.raises(DataError, match="the past has no column user"):  # noqa: SIM117 (one by one)
        with stream(tmp_path, estero.query(QUERY), backfill=past, order=["user"]) as running:
            running.step()
    with pytest.raises(ValueError, match="a backfill needs a time column"):
        estero.live(estero.query(QUERY), f"json:{tmp_path}/in", backfill=past)


@pytest.mark.parametrize("last", [1, 3, 4, 6])
def test_events_without_a_value_by_which_they_are_ordered_are_the_last_of_their_time(
    tmp_path: Path, last: int
) -> None:
    rows = [
        {"kind": kind, "time": f"2026-01-01T00:00:0{second}Z", "user": user, "v": place}
        for place, (kind, second, user) in enumerate(
            [("A", 0, 1), ("B", 0, 2), ("A", 0, None), ("B", 1, 1), ("A", 1, None), ("B", 2, 1)]
        )
    ]
    put(tmp_path / "in", 0, rows)
    pyarrow.parquet.write_table(frame(rows[:last]), tmp_path / "past.parquet")
    query = estero.query("SELECT * WHERE A ; B WITHIN 10 SECONDS")
    with stream(tmp_path, query, backfill=tmp_path / "past.parquet", order=["user"]) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(query, rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": 0}, "batch is from 1 to 1,000,000 events, not 0"),
        ({"checkpoint_every": -1.0}, "checkpoint_every is from 0 to 86,400 seconds, not -1.0"),
        ({"lateness": "-1 s", "time": "ts"}, "a lateness cannot be negative: -1 s"),
    ],
)
def test_numbers_out_of_range_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estero.live(estero.query(QUERY), "stdin", **given)


def test_a_column_that_the_engine_adds_is_not_another_one(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query("SELECT * WHERE A AS answer_id")
    refused = pytest.raises(DataError, match="answers have a column answer_id already")
    with refused, stream(tmp_path, query) as running:
        running.step()


def test_rows_that_differ_in_what_is_not_selected_have_ids_of_their_own(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query("SELECT b WHERE A AS a ; A ; B AS b WITHIN 20 SECONDS")
    with stream(tmp_path, query) as running:
        running.run(until_caught_up=True)
    rows = read_lines(tmp_path / "out")
    assert len({row["answer_id"] for row in rows}) == len(rows) > len({row["end"] for row in rows})
