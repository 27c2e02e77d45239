"""`estero.live`: what a stream does batch by batch, without a broker or a database."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero import DataError
from estero.local import door
from estero.local.sinks.console import Console
from estero.local.sources.alignment import Alignment
from estero.local.sources.lines import StandardInput
from local.streams import (
    LAYOUT,
    QUERY,
    RULES,
    KilledError,
    abandon,
    events,
    expected,
    killed_at,
    read_lines,
    run_with_kills,
    told,
)
from repository import REPOSITORY

EVENTS = events(60)
Batches = list[list[dict[str, Any]]]


def put(directory: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """Has a file with events appear."""
    directory.mkdir(exist_ok=True)
    new = directory / f".{number}.new"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows))
    new.rename(directory / f"{number}.jsonl")


def stream(directory: Path, asked: Any, **options: Any) -> estero.LiveStream:
    given = {"checkpoint": directory / "state", "checkpoint_every": 0, **LAYOUT, **options}
    return estero.live(asked, f"json:{directory}/in", f"json:{directory}/out", **given)


# --------------------------------------------------------------------------------- rules that change


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    directory = tmp_path / "rules"
    directory.mkdir()
    for name, text in RULES.items():
        (directory / f"{name}.ceql").write_text(text)
    return directory


def test_rules_that_are_added_removed_and_replaced_count_from_then_on(
    tmp_path: Path, rules: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules, version=True) as running:
        running._settings = _often(running._settings)
        assert running.step()
        first = running.metrics()["version"]
        (rules / "small.ceql").unlink()
        (rules / "large.ceql").write_text("SELECT * WHERE C AS y FILTER y[v > 50]")
        (rules / "new.ceql").write_text("SELECT * WHERE B")
        (rules / "broken.ceql").write_text("SELECT * WHERE")
        put(tmp_path / "in", 1, EVENTS[20:])
        for _ in range(3):
            running.step()
        second = running.metrics()["version"]
    assert "the rule broken is refused" in caplog.text
    rows = read_lines(tmp_path / "out")
    assert {row["version"] for row in rows} == {first, second}
    assert first != second
    assert told([row for row in rows if row["rule"] == "pairs"]) == _of("pairs", RULES, EVENTS)
    early = [row for row in rows if row["version"] == first]
    assert told(early) == expected(estero.rules(RULES), EVENTS[:20])
    late = {row["rule"]: row for row in rows if row["version"] == second}
    assert set(late) == {"pairs", "large", "new"}
    assert sum(row["rule"] == "new" for row in rows) == sum(event["kind"] == "B" for event in EVENTS[20:])


def test_a_stream_goes_on_with_the_rules_that_it_had_and_then_with_those_of_the_directory(
    tmp_path: Path, rules: Path
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
    (rules / "small.ceql").unlink()
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
        assert running.metrics()["rules"] == 2
    rows = read_lines(tmp_path / "out")
    assert told([row for row in rows if row["rule"] == "pairs"]) == _of("pairs", RULES, EVENTS)
    assert {row["rule"] for row in rows if row["end"] >= 20} <= {"pairs", "large"}


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_rules_that_changed_before_a_failure_are_repeated_as_they_changed(tmp_path: Path, steps: int) -> None:
    def rows(directory: Path, *, killed: bool) -> list[str]:
        directory.mkdir()
        put(directory / "in", 0, EVENTS)
        (directory / "rules").mkdir()
        for name, text in RULES.items():
            (directory / "rules" / f"{name}.ceql").write_text(text)

        def opened() -> estero.LiveStream:
            running = stream(directory, directory / "rules", batch=9, checkpoint_every=3600)
            running._settings = _often(running._settings)
            return running

        running = opened()
        for step in range(1, 5):
            running.step()
            if step == 1:
                (directory / "rules" / "small.ceql").unlink()
                (directory / "rules" / "large.ceql").write_text("SELECT * WHERE C AS y FILTER y[v > 50]")
            if step == 2:
                (directory / "rules" / "new.ceql").write_text("SELECT * WHERE B")
            if killed and step == steps:
                abandon(running)
                running = opened()
        (directory / "rules" / "large.ceql").unlink()
        running.run(until_caught_up=True)
        running.close()
        return told(read_lines(directory / "out"))

    whole = rows(tmp_path / "whole", killed=False)
    assert rows(tmp_path / "killed", killed=True) == whole
    assert whole != expected(estero.rules(RULES), EVENTS)


def test_a_rule_that_becomes_broken_counts_as_it_was(tmp_path: Path, rules: Path) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running._settings = _often(running._settings)
        running.step()
        (rules / "pairs.ceql").write_text("SELECT * WHERE A ;")
        put(tmp_path / "in", 1, EVENTS[20:])
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(estero.rules(RULES), EVENTS)


def test_rules_in_other_languages_go_on_from_a_checkpoint(tmp_path: Path, rules: Path) -> None:
    (rules / "elastic.eql").write_text("B where v > 5")
    (rules / "sigma.yml").write_text(
        "{title: t, name: named, logsource: {category: c}, detection: {s: {kind: b}, condition: s}}"
    )
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
        assert running.metrics()["rules"] == len(RULES) + 1
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
    ends = [row["end"] for row in read_lines(tmp_path / "out") if row["rule"] == "elastic"]
    assert ends == [
        place for place, event in enumerate(EVENTS) if event["kind"] == "B" and int(str(event["v"])) > 5
    ]


def test_several_rules_of_a_file_in_sigma_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    rule = (
        "{title: t%s, logsource: {product: windows, service: system}, detection: {s: {k: %s}, condition: s}}"
    )
    counted = "{type: event_count, rules: [one], timespan: 1h, condition: {gte: 2}}"
    several = [rule % (", name: named", "b"), rule % (", name: one", "a"), rule % ("", "c"), rule % ("", "d")]
    several.append(f"{{title: t, name: many, correlation: {counted}}}")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "file.yml").write_text("\n---\n".join(several))
    events = [
        {"at": f"2026-01-01T00:00:{second:02}Z", "Channel": "System", "k": letter}
        for second, letter in enumerate("abcda")
    ]
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "checkpoint_every": 0, "time": "at"}
    for number, rows in enumerate((events[:1], events[1:])):
        put(tmp_path / "in", number, rows)
        with estero.live(
            tmp_path / "rules", f"json:{tmp_path}/in", f"json:{tmp_path}/out", **options
        ) as running:
            running.run(until_caught_up=True)
    alerts = {(row["rule"], row["start"], row["end"]) for row in read_lines(tmp_path / "out")}
    assert alerts == {("named", 1, 1), ("file", 2, 2), ("file-2", 3, 3)}  # many is open


def test_a_rule_that_became_broken_meanwhile_goes_on_as_the_checkpoint_has_it(
    tmp_path: Path, rules: Path
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
    (rules / "pairs.ceql").write_text("SELECT * WHERE A ;")
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(estero.rules(RULES), EVENTS)


def test_a_directory_without_a_rule_that_can_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    put(tmp_path / "in", 0, EVENTS)
    with (
        pytest.raises(DataError, match="there is no rule that can be used"),
        stream(tmp_path, tmp_path / "rules") as one,
    ):
        one.step()


def _often(settings: Any) -> Any:
    """Looks at rules before each batch."""
    from dataclasses import replace

    return replace(settings, look_every=0.0)


def _of(name: str, rules: dict[str, str], rows: list[dict[str, Any]]) -> list[str]:
    return [text for text in expected(estero.rules(rules), rows) if f'"rule": "{name}"' in text]


# ------------------------------------------------------------------------------------- checkpoints


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


# --------------------------------------------------------------------------- what cannot be read


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


# ------------------------------------------------------------------------------ without a checkpoint


def test_the_console_has_lines_as_run_has_them(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query, output = estero.query(QUERY), io.BytesIO()
    with estero.live(query, f"json:{tmp_path}/in", "console", **LAYOUT) as running:
        running._sinks[0] = Console(output)
        running.run(until_caught_up=True)
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert told([row | row.pop("labels") for row in rows]) == expected(query, EVENTS)


# -------------------------------------------------------------------------------------- webhook


class Server(HTTPServer):
    """Refuses the first requests with a status, and keeps the others."""

    def __init__(self, refusals: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refusals = refusals
        self.taken: list[tuple[str, dict[str, Any]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refusals:
            self.send_response(self.server.refusals.pop(0))
        else:
            self.server.taken.append((self.headers["Idempotency-Key"], body))
            self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None: ...


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Server]:
    pytest.importorskip("tenacity", reason="estero[webhook] is not installed")
    server = Server(list(request.param))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook is asked again at once."""
    from estero.local.sinks import webhook

    monkeypatch.setattr(webhook, "PAUSE", 0.0)


def posted(tmp_path: Path, hook: Server) -> estero.LiveStream:
    put(tmp_path / "in", 0, EVENTS)
    return estero.live(
        estero.query(QUERY),
        f"json:{tmp_path}/in",
        f"http://127.0.0.1:{hook.server_port}/hook?secret=1",
        **LAYOUT,
    )


@pytest.mark.parametrize("hook", [(503, 429)], indirect=True)
def test_a_webhook_that_is_busy_gets_each_answer_with_its_id(tmp_path: Path, hook: Server) -> None:
    with posted(tmp_path, hook) as running:
        running.run(until_caught_up=True)
    assert told(body for _, body in hook.taken) == expected(estero.query(QUERY), EVENTS)
    assert all(key == body["answer_id"] for key, body in hook.taken)


@pytest.mark.parametrize("hook", [(410,)], indirect=True)
def test_a_webhook_that_refuses_ends_the_stream_without_its_secret(tmp_path: Path, hook: Server) -> None:
    with (
        pytest.raises(DataError, match="answers with the status 410") as error,
        posted(tmp_path, hook) as running,
    ):
        running.run(until_caught_up=True)
    assert "secret" not in str(error.value)
    assert running.metrics()["failed"]


@pytest.mark.parametrize("hook", [(503,) * 100], indirect=True)
def test_a_stream_that_waits_for_a_webhook_can_be_stopped(tmp_path: Path, hook: Server) -> None:
    with posted(tmp_path, hook) as running:
        running.stop()
        with pytest.raises(DataError, match="status 503"):
            running.step()
    assert len(hook.refusals) == 99


@pytest.mark.parametrize("hook", [()], indirect=True)
def test_what_a_webhook_gets_twice_after_a_failure_has_the_same_id(tmp_path: Path, hook: Server) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query, url = estero.query(QUERY), f"http://127.0.0.1:{hook.server_port}/"

    def opened() -> estero.LiveStream:
        given = {"checkpoint": tmp_path / "state", "batch": 20, **LAYOUT}
        return estero.live(query, f"json:{tmp_path}/in", url, **given)

    run_with_kills(opened, [20, 16])
    bodies = {body["answer_id"]: body for _, body in hook.taken}
    assert len(hook.taken) > len(bodies)
    assert all(bodies[key] == body for key, body in hook.taken)
    assert told(bodies.values()) == expected(query, EVENTS)


# -------------------------------------------------------------------------------------- metrics


def test_metrics_are_served_and_the_dashboard_asks_for_those_only(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="estero[metrics] is not installed")
    from estero.local.serving import serving

    put(tmp_path / "in", 0, EVENTS)
    with stream(tmp_path, estero.rules(RULES)) as running, serving(running, "127.0.0.1", 0) as port:
        running.run(until_caught_up=True)
        text = _get(port, "/metrics")[1]
        status, health = _get(port, "/health")
        assert (status, json.loads(health)["healthy"]) == (200, True)
        assert _get(port, "/")[0] == 404
        running._failed = True
        assert _get(port, "/health")[0] == 503
        running._failed = False
    assert "estero_events_total 60.0" in text
    pairs = len(_of("pairs", RULES, EVENTS))
    assert f'estero_answers_total{{rule="pairs"}} {float(pairs)}' in text
    served = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    dashboard = (REPOSITORY / "docs" / "live-dashboard.json").read_text(encoding="utf-8")
    asked = {
        name
        for panel in json.loads(dashboard)["panels"]
        for target in panel["targets"]
        for name in _metrics_in(target["expr"])
    }
    assert asked
    assert asked <= served


def _metrics_in(expression: str) -> set[str]:
    import re

    return set(re.findall(r"estero_\w+", expression))


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


# --------------------------------------------------------------------------------- partitions of Kafka


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


# ------------------------------------------------------------------------------------- schemas


def test_a_schema_is_what_sql_says() -> None:
    from estero.local.schemas import schema_of

    assert schema_of(
        "a STRING, b BIGINT, c DOUBLE, d BOOLEAN, e TIMESTAMP, f TIMESTAMP_NTZ, g DATE"
    ) == pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.int64()),
            ("c", pa.float64()),
            ("d", pa.bool_()),
            ("e", pa.timestamp("us", "UTC")),
            ("f", pa.timestamp("us")),
            ("g", pa.date32()),
        ]
    )
    for text in ("", "a", "a ARRAY<INT>", "a INT) ; DROP TABLE b --"):
        with pytest.raises(DataError, match="schema"):
            schema_of(text)


def test_columns_that_nobody_names_are_those_of_the_first_events(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query(QUERY)
    with stream(tmp_path, query, schema=None) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)


# ------------------------------------------------------------------------------------- sources


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
            running._sinks[0] = Console(output)
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
        running._sinks[0] = Console(output)
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": 0}, "batch is from 1 to 1,000,000 events, not 0"),
        ({"checkpoint_every": -1.0}, "checkpoint_every is from 0 to 86,400 seconds, not -1.0"),
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
