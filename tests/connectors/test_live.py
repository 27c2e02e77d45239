"""The local engine with a broker and a database: each answer once, wherever the process is killed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import estero
from connectors.servers import PASSWORD, kafka, postgresql, run_sql, spark_jars
from connectors.topics import make_topic, receive
from estero import DataError, LiveStream
from local.streams import BROKEN, LAYOUT, QUERY, RULES, events, expected, lines, run_with_kills, told
from repository import REPOSITORY

pytest.importorskip("confluent_kafka", reason="estero[kafka] is not installed")

EVENTS = events(60)
LAST = [{"kind": "Z", "time": "2027-01-01T00:00:00Z", "user": user, "v": 0} for user in range(2)]
"""Events behind which nothing is held back any more."""


KILL_ITSELF = """
import os, signal, sys
from estero import DataError, LiveStream
from estero.cli import main
batches = 0
whole = LiveStream._process
def process(stream, raw):
    global batches
    batches += 1
    whole(stream, raw)
    if batches == {batches}:
        os.kill(os.getpid(), signal.SIGKILL)
LiveStream._process = process
stream = LiveStream.__init__
def small(self, *given):
    stream(self, *given)
    object.__setattr__(self._settings, "most", 9)
LiveStream.__init__ = small
main()
"""
"""A program that is the command, with small batches, and kills itself behind one of them."""


def environment() -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": paths}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    spark_jars()
    with kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgresql() as server:
        yield server


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "estero.live")


def send(broker: str, topic: str, texts: Sequence[tuple[int, str | None]]) -> None:
    """Puts texts into partitions, a second after one another."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker})
    for second, (partition, text) in enumerate(texts, 1):
        producer.produce(topic, text, partition=partition, timestamp=second * 1000)
    assert producer.flush(30) == 0


def _user(text: str) -> int:
    return int(json.loads(text).get("user", 0)) if text.startswith("{") else 0


@pytest.fixture(scope="module")
def readings(broker: str) -> str:
    """The address of a topic with two partitions, which has broken messages and one without a value."""
    make_topic(broker, "readings", 2)
    texts: list[tuple[int, str | None]] = [(_user(text) % 2, text) for text in lines(EVENTS)]
    ends = [(user, json.dumps(row)) for user, row in enumerate(LAST)]
    send(broker, "readings", [*texts, (1, None), *ends])
    return f"kafka://{broker}/readings"


def opened(directory: Path, asked: Any, source: str, sink: str, **options: Any) -> LiveStream:
    given = {**LAYOUT, "lateness": "1 day", "batch": 13, "checkpoint_every": 0, **options}
    return estero.live(asked, source, sink, checkpoint=directory / "state", **given)


@pytest.mark.parametrize("kills", [[step] for step in range(0, 72, 4)] + [[9, 9], [40, 3, 0]])
def test_a_topic_has_each_answer_once_wherever_the_stream_is_killed(
    tmp_path: Path, broker: str, readings: str, kills: list[int]
) -> None:
    name = "answers-" + "-".join(map(str, kills))
    make_topic(broker, name, 1)
    query = estero.query(QUERY)
    run_with_kills(
        lambda: opened(
            tmp_path,
            query,
            readings,
            f"kafka://{broker}/{name}",
            dead_letters=f"kafka://{broker}/{name}-dead",
        ),
        kills,
    )
    rows = receive(broker, name)
    assert told(rows) == expected(query, EVENTS)
    assert len({row["answer_id"] for row in rows}) == len(rows)
    assert sorted(row["text"] for row in receive(broker, f"{name}-dead")) == sorted(BROKEN)


@pytest.mark.parametrize("kills", [[], [24], [40, 5]])
def test_without_transactions_an_answer_that_comes_twice_has_its_id(
    tmp_path: Path, broker: str, readings: str, kills: list[int]
) -> None:
    name = "sooner-" + "-".join(map(str, kills))
    make_topic(broker, name, 1)
    sink = f"kafka://{broker}/{name}?transactions=false&key=user"
    query = estero.query(QUERY)
    run_with_kills(lambda: opened(tmp_path, query, readings, sink), kills)
    rows = {row["answer_id"]: row for row in receive(broker, name)}
    assert told(rows.values()) == expected(query, EVENTS)


def test_a_key_that_is_no_column_is_an_error(tmp_path: Path, broker: str, readings: str) -> None:
    sink = f"kafka://{broker}/keyed?key=nobody"
    refused = pytest.raises(DataError, match="there is no column 'nobody' to use as the key")
    with refused, opened(tmp_path, estero.query(QUERY), readings, sink) as running:
        running.step()


@pytest.mark.parametrize("kills", [[step] for step in (6, 12, 26, 44)] + [[24, 5]])
def test_a_table_has_each_answer_once_wherever_the_stream_is_killed(
    tmp_path: Path,
    broker: str,
    database: str,
    readings: str,
    kills: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("psycopg", reason="estero[postgresql] is not installed")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    name = "answers_" + "_".join(map(str, kills))
    sink = f"postgresql://estero@{database}/weather/{name}"
    rules = estero.rules(RULES)
    run_with_kills(lambda: opened(tmp_path, rules, readings, sink, version=True), kills)
    rows = [json.loads(text) for text in run_sql(database, f"SELECT to_json({name}) FROM {name}")]
    assert told(rows) == expected(rules, EVENTS)
    assert len({row["answer_id"] for row in rows}) == len(rows)
    assert {row["version"] for row in rows} == {rows[0]["version"]}


def test_a_stream_that_is_really_killed_goes_on(tmp_path: Path, broker: str, readings: str) -> None:
    make_topic(broker, "killed", 1)
    (tmp_path / "query.ceql").write_text(QUERY)
    options = [
        *(
            "stream",
            "query.ceql",
            "--engine",
            "local",
            "--from",
            readings,
            "--to",
            f"kafka://{broker}/killed",
        ),
        *("--checkpoint", "state", "--checkpoint-interval", "1ms", "--trigger", "available-now"),
        *("--schema", LAYOUT["schema"], "--type", "kind", "--time", "time", "--lateness", "1 day"),
    ]

    def run(killed_behind: int) -> subprocess.CompletedProcess[str]:
        program = KILL_ITSELF.format(batches=killed_behind)
        command = [sys.executable, "-c", program, *options]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )

    for batches in (1, 3):
        assert run(batches).returncode == -signal.SIGKILL
    done = run(-1)
    assert done.returncode == 0, done.stderr
    assert told(receive(broker, "killed")) == expected(estero.query(QUERY), EVENTS)


def test_a_broker_that_is_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    """It is stopped and goes on: no time passes on the stream meanwhile, and no event is lost."""
    spark_jars()
    (tmp_path / "kafka").mkdir()
    query = estero.query(QUERY)
    with kafka(tmp_path / "kafka") as broker:
        (process,) = _children(str(tmp_path))
        make_topic(broker, "away", 1)
        make_topic(broker, "away-answers", 1)
        send(broker, "away", [(0, json.dumps(event)) for event in EVENTS[:30]])
        source, sink = f"kafka://{broker}/away", f"kafka://{broker}/away-answers"
        with opened(tmp_path, query, source, sink, lateness=None) as running:
            running.run(until_caught_up=True)
            assert running._source.is_silent()
            os.kill(process, signal.SIGSTOP)
            try:
                assert not running.step(0.1)
                assert not running._source.is_silent()
            finally:
                os.kill(process, signal.SIGCONT)
            send(broker, "away", [(0, json.dumps(event)) for event in EVENTS[30:]])
            while running.metrics()["events"] < len(EVENTS):
                running.step(1)
        assert told(receive(broker, "away-answers")) == expected(query, EVENTS)


def _children(word: str) -> list[int]:
    """The processes that this one has started with that word in their commands."""
    numbers = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            is_child = int(file.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if is_child and word in (file.parent / "cmdline").read_text():
                numbers.append(int(file.parent.name))
    return numbers
