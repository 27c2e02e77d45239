"""The numbers of a running stream over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import estero
from local.streams import RULES, events, of_rule, put, stream
from repository import REPOSITORY

EVENTS = events(60)


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
    pairs = len(of_rule("pairs", RULES, EVENTS))
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
