"""Numbers of streams and recognizers as metrics of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import estero
from local.streams import LAYOUT, QUERY, RULES, events, frame, put

pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is not installed")
EVENTS = events(60)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    yield reader
    provider.shutdown()


def numbers(reader: Any) -> dict[tuple[str, str], float]:
    """The values of metrics by name and the last attribute."""
    shown = {}
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data is not None else []:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "estero"
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    assert point.attributes["stream"] == "tests"
                    others = [value for name, value in point.attributes.items() if name != "stream"]
                    shown[metric.name, "".join(others)] = point.value
    return shown


def test_a_running_stream_is_asked_as_often_as_metrics_are(tmp_path: Path, reader: Any) -> None:
    put(tmp_path / "in", 0, EVENTS[:30])
    with estero.live(estero.rules(RULES), f"json:{tmp_path}/in", f"json:{tmp_path}/out", **LAYOUT) as stream:
        estero.observe(stream, attributes={"stream": "tests"})
        stream.run(until_caught_up=True)
        first = numbers(reader)
        put(tmp_path / "in", 1, EVENTS[30:])
        stream.run(until_caught_up=True)
        second, now = numbers(reader), stream.metrics()
    assert (first["estero.events", ""], second["estero.events", ""]) == (30, 60)
    for rule, answers in now["answers_by_rule"].items():
        assert second["estero.rule.answers", rule] == answers
    assert second["estero.rules", ""] == 3
    assert second["estero.stage.time", "recognize"] == now["seconds"]["recognize"]


@pytest.mark.parametrize("asked", [estero.query(QUERY), estero.rules(RULES)])
def test_of_a_recognizer_it_is_what_was_updated_last(asked: Any, reader: Any) -> None:
    recognizer = asked.recognizer(frame(EVENTS).schema, type="kind", time="time")
    observer = estero.observe(recognizer, attributes={"stream": "tests"})
    recognizer.push(frame(EVENTS))
    assert numbers(reader) == {}
    observer.update()
    shown = numbers(reader)
    assert shown["estero.events", ""] == 60
    assert shown["estero.state.size", ""] == recognizer.metrics()["state_bytes"]
    assert shown["estero.partitions.shed", ""] == 0
