"""`estero.live`: what a stream does batch by batch, without a broker or a database."""

from __future__ import annotations

import io
import json
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
from estero.local.sinks.console import Console
from estero.local.sources.alignment import Alignment
from local.streams import LAYOUT, QUERY, RULES, events, expected, read_lines, told
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
