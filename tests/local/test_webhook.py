"""Answers that are posted to a webhook."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import estero
from estero import DataError
from local.streams import LAYOUT, QUERY, events, expected, put, run_with_kills, told

EVENTS = events(60)


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
