"""The metrics of a running stream for Prometheus, and its health, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from estero.errors import DataError, require
from estero.local.stream import LiveStream

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

COUNTERS: Final = {
    "events": ("events", "Events that were read, or could not be."),
    "late_events": ("late", "Events that came too late, and were left out."),
    "dead_letters": ("dead", "What came and could not be read as an event."),
    "shed_partitions": ("shed_partitions", "Partitions that were given up, since the state took too much."),
    "skipped_events": ("skipped", "Events of the stream that the past has already."),
    "batches": ("batches", "Batches of events."),
    "checkpoints": ("checkpoints", "States that were written by this process."),
}
"""Metrics that only grow, each with the number of the stream that it shows."""
GAUGES: Final = {
    "held_back_events": ("held_back", "Events that wait for earlier ones."),
    "state_bytes": ("state_bytes", "Bytes of the last state of the recognizer."),
    "rules": ("rules", "Rules that count."),
}
"""Metrics that go up and down."""

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Numbers:
    """A collector that reads the metrics of a stream at each request."""

    def __init__(self, stream: LiveStream) -> None:
        self._stream = stream

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self._stream.metrics()
        for name, (key, about) in COUNTERS.items():
            yield CounterMetricFamily(f"estero_{name}", about, value=now[key])
        for name, (key, about) in GAUGES.items():
            yield GaugeMetricFamily(f"estero_{name}", about, value=now[key])
        answers = CounterMetricFamily("estero_answers", "Complex events, by rule.", labels=["rule"])
        for rule, number in now["answers_by_rule"].items():
            answers.add_metric([rule], number)
        yield answers
        seconds = CounterMetricFamily(
            "estero_stage_seconds", "Seconds, by stage of a batch.", labels=["stage"]
        )
        for stage, spent in now["seconds"].items():
            seconds.add_metric([stage], spent)
        yield seconds


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Logs nothing, because metrics are requested every few seconds."""


@contextmanager
def serving(stream: LiveStream, host: str, port: int) -> Iterator[int]:
    """Serves ``/metrics`` and ``/health`` of a stream within the block; returns the port, a free one for 0.

    Raises `DataError` if the port cannot be opened, and `MissingPackage` without prometheus-client.
    """
    require("metrics", "--serve")
    try:
        server = make_server(host, port, _app(stream), server_class=_Server, handler_class=_Silent)
    except OSError as error:
        raise DataError(f"nothing can be served at {host}:{port}: {error.strerror or error}") from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _app(stream: LiveStream) -> App:
    from prometheus_client import CollectorRegistry, make_wsgi_app

    registry = CollectorRegistry(auto_describe=False)
    numbers: Collector = _Numbers(stream)
    registry.register(numbers)
    metrics = make_wsgi_app(registry)

    def app(asked: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if asked["PATH_INFO"] == "/metrics":
            shown: Iterable[bytes] = metrics(asked, start)
            return shown
        if asked["PATH_INFO"] != "/health":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics or /health\n"]
        now = stream.metrics()
        start(
            "503 Service Unavailable" if now["failed"] else "200 OK", [("Content-Type", "application/json")]
        )
        health = {"healthy": not now["failed"], "batches": now["batches"], "version": now["version"]}
        return [json.dumps(health).encode() + b"\n"]

    return app
