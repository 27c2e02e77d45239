"""Questions end: by a wish, by their time, by their memory; and the next one is answered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import estero
from estero import demo
from estero.studio import worker as workers
from estero.studio.opening import Opening
from estero.studio.worker import Worker
from studio.stream import BILLIONS
from waiting import FAR_OFF

SLOW = f"{BILLIONS} FILTER a.value + b.value + c.value + d.value < -99"
"""Which lists billions of complex events, to sift them."""


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(Opening())
    assert "error" not in worker.ask({"kind": "hello"})[0]
    yield worker
    worker.close()


def after(worker: Worker) -> dict[str, Any]:
    return worker.ask({"kind": "run", "text": demo.QUERY})[0]


def test_a_question_is_cancelled_and_the_next_one_answered(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.2)
    replies: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: replies.append(worker.ask({"kind": "run", "text": SLOW})[0]))
    asking.start()
    while not worker.is_asked:
        asking.join(0.01)
    worker.cancel()
    asking.join(FAR_OFF)
    assert [reply["error"] for reply in replies] == ["cancelled"]
    assert after(worker)["count"] == "45"


def test_a_question_that_heeds_no_wish_is_ended_with_its_process(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.2)
    replies: list[dict[str, Any]] = []
    message = {"kind": "check", "text": f"SELECT * WHERE {' ; '.join(['Wind'] * 100_000)}"}
    asking = threading.Thread(target=lambda: replies.append(worker.ask(message)[0]))
    asking.start()
    while not worker.is_asked:
        asking.join(0.01)
    worker.cancel()
    asking.join(FAR_OFF)
    assert [reply["error"] for reply in replies] == ["cancelled"]
    assert after(worker)["count"] == "45"


def test_what_waits_is_cancelled_by_its_id_and_nothing_else_is(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.2)
    replies: dict[str, dict[str, Any]] = {}

    def ask(name: str, text: str) -> threading.Thread:
        message = {"kind": "run", "text": text, "id": name}
        asking = threading.Thread(target=lambda: replies.update({name: worker.ask(message)[0]}))
        asking.start()
        while not (worker.is_asked and (name == "slow" or worker.waiting)):
            asking.join(0.01)
        return asking

    threads = [ask("slow", SLOW), ask("superseded", SLOW)]
    worker.cancel(["superseded", "unheard-of"])
    assert worker.is_asked
    worker.cancel(["slow"])
    for asking in threads:
        asking.join(FAR_OFF)
    assert {name: reply["error"] for name, reply in replies.items()} == {
        "slow": "cancelled",
        "superseded": "cancelled",
    }
    assert after(worker)["count"] == "45"


def test_to_cancel_nothing_does_nothing(worker: Worker) -> None:
    worker.cancel()
    assert after(worker)["count"] == "45"


def test_a_question_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.2)
    worker = Worker(Opening(seconds=0.5))
    worker.ask({"kind": "hello"})
    assert worker.ask({"kind": "run", "text": SLOW})[0]["error"].startswith(
        "this takes longer than 0.5 seconds"
    )
    assert worker.ask({"kind": "check", "text": "SELECT"})[0]["errors"]
    worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited where the system tells it: on Linux")
def test_a_question_has_its_memory() -> None:
    worker = Worker(Opening(), memory=64 << 20)
    worker.ask({"kind": "hello"})
    wide = "SELECT * WHERE Wind+ AS a ; Humidity+ AS b FILTER sum(a.value) + sum(b.value) < -99"
    reply = worker.ask({"kind": "run", "text": wide})[0]
    assert "memory" in reply["error"]
    assert worker.ask({"kind": "check", "text": demo.QUERY})[0]["errors"] == []
    worker.close()


def test_events_that_cannot_be_read_are_told() -> None:
    worker = Worker(Opening(estero.scan("no-such-file.parquet")))
    reply, _ = worker.ask({"kind": "hello"})
    assert "no-such-file.parquet" in reply["error"]
    worker.close()


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise BlockingIOError("no more processes")

    worker = Worker(Opening())
    monkeypatch.setattr(worker._context.Process, "start", start)
    assert "the question ended its process" in worker.ask({"kind": "hello"})[0]["error"]
    worker.close()
