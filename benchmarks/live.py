"""``python -m benchmarks.live``: the local engine between two topics of a Kafka broker on this machine.

First the answers of a small stream through Kafka are compared with those of one run over its events. Then it
times, for 10 and for 1,000 rules, how many events a second are read from a topic that is full, and how
long an answer takes at a steady rate: from the time that an event has when it is sent to that at which its
answer is read, committed, from the other topic. The engine is a process of its own then. Beside it
stands what the broker takes alone: an event that is sent and read, and one that a process without an engine
sends on to a second topic, with transactions and without. Prints the figures, and writes them as JSON to
``--out``.

The broker is that of the tests (`make connectors`), unless ``--broker HOST:PORT`` says another one.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import estero

SCHEMA = "name STRING, time TIMESTAMP, price DOUBLE, user BIGINT"
LAYOUT: dict[str, Any] = {"schema": SCHEMA, "time": "time"}
USERS = 50
CHECKED = 20_000
BEGUN = 4_000
"""Bytes that a state has with its recognizer, and without one has not."""
BEGIN = 1_767_225_600_000_000
SENDER: dict[str, Any] = {
    "linger.ms": 0,
    "max.in.flight.requests.per.connection": 5,
    "socket.nagle.disable": True,
}
"""What sends events at a steady rate: as many requests at a time as Kafka's own client has.

librdkafka would have a request for each event on its way at once: two thousand a second, behind which events
queue up in the broker for 0.1 to 1 s where other work takes its core.
"""


class Wrong(Exception):
    """An answer is not what it must be: nothing is timed."""


def rules_of(number: int) -> dict[str, str]:
    """Rules of three steps, each with names of its own."""
    return {
        f"r{rule}": f"""
            SELECT * WHERE Event AS a ; Event AS b ; Event AS c
            FILTER a[name = 'n{3 * rule}' AND price > 97] AND b[name = 'n{3 * rule + 1}' AND price > 97]
            AND c[name = 'n{3 * rule + 2}' AND price > 97]
            PARTITION BY [user] WITHIN 1 SECOND
        """
        for rule in range(number)
    }


def rows_of(events: int, rules: int) -> list[dict[str, Any]]:
    """Events 100 µs apart; ten in a hundred have a name that no rule asks for."""
    draw = np.random.default_rng(events)
    names = draw.integers(0, max(1, round(3.3 * rules)), events).tolist()
    prices, users = draw.integers(0, 100, events).tolist(), draw.integers(0, USERS, events).tolist()
    return [
        {"name": f"n{name}", "time": _text(BEGIN + 100 * place), "price": float(price), "user": user}
        for place, (name, price, user) in enumerate(zip(names, prices, users, strict=True))
    ]


def _text(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat()


def make_topic(broker: str, topic: str) -> None:
    """Makes a topic with one partition."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client = AdminClient({"bootstrap.servers": broker})
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def send(broker: str, topic: str, rows: list[dict[str, Any]]) -> None:
    """Fills a topic."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": broker, "linger.ms": 20, "queue.buffering.max.messages": 10_000_000}
    )
    for row in rows:
        producer.produce(topic, json.dumps(row))
    producer.flush()


def run(broker: str, rules: int, events: int, directory: Path, topic: str) -> dict[str, Any]:
    """Reads a full topic; seconds behind the first batch, by stage and in all."""
    make_topic(broker, f"{topic}-answers")
    source, sink = f"kafka://{broker}/{topic}", f"kafka://{broker}/{topic}-answers"
    asked = estero.rules(rules_of(rules))
    with estero.live(asked, source, sink, checkpoint=directory / topic, **LAYOUT) as stream:
        while not stream.step(0.1):
            pass
        first = stream.metrics()
        begun, worked, served = time.perf_counter(), time.process_time(), broker_seconds()
        stream.run(until_caught_up=True)
        spent, worked = time.perf_counter() - begun, time.process_time() - worked
        served = broker_seconds() - served
        now = stream.metrics()
    if now["events"] != events:
        raise Wrong(f"{now['events']:,} events were read of {events:,}")
    seconds = {stage: round(now["seconds"][stage] - first["seconds"][stage], 3) for stage in now["seconds"]}
    read = events - first["events"]
    speed = {
        "events a second": round(read / spent),
        "events a second of CPU": round(read / worked),
        "CPU of the broker for a million events, s": round(served / max(1, read) * 1e6, 2),
    }
    return {"rules": rules, "events": events, **speed, "answers": now["answers"], "seconds": seconds}


def broker_seconds() -> float:
    """Seconds of CPU of the programs that this one has started: the broker's; 0 where nobody knows."""
    return sum(seconds for _, (parent, seconds) in _processes().items() if parent == os.getpid())


def seconds_of(process: int) -> float:
    """Seconds of CPU of a process, in all its threads; 0 where nobody knows."""
    return _processes().get(process, (0, 0.0))[1]


def _processes() -> dict[int, tuple[int, float]]:
    """The parent of each process, and its seconds of CPU in all threads."""
    known = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parts = file.read_text().rpartition(")")[2].split()
            seconds = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
            known[int(file.parent.name)] = int(parts[1]), seconds
    return known


def check(broker: str, directory: Path) -> int:
    """Compares the answers that come through Kafka with those of one run; how many there are."""
    rows = rows_of(CHECKED, 1)
    make_topic(broker, "checked")
    send(broker, "checked", rows)
    told = run(broker, 10, CHECKED, directory, "checked")["answers"]
    columns: Mapping[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    times = pa.array(columns["time"]).cast(pa.timestamp("us", "UTC"))
    expected = estero.rules(rules_of(10)).run(pa.table({**columns, "time": times}), time="time").count()
    if not expected or told != expected or len(list(read(broker, "checked-answers", expected))) != expected:
        raise Wrong(f"{told:,} answers, not {expected:,}")
    return expected


def read(
    broker: str, topic: str, number: int, is_wanted: Callable[[dict[str, Any]], bool] = bool
) -> Iterator[tuple[float, dict[str, Any]]]:
    """So many rows of a topic that are wanted, with the times at which they were read."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "read", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while number:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            at, row = time.time(), json.loads(message.value() or b"")
            if is_wanted(row):
                yield at, row
                number -= 1
    consumer.close()


def waits(
    broker: str, source: str, sink: str, rules: int, rate: int, number: int, ready: Callable[[], bool]
) -> dict[str, float]:
    """Milliseconds from an event to what it brings: each hundredth of a second three events complete a rule.

    They are those from just before the last event is given to the client to when its answer was read.
    """
    from threading import Thread

    from confluent_kafka import Producer

    took: list[float] = []

    def receive() -> None:
        for at, row in read(broker, sink, number, ends_a_rule):
            sent = row["end_time"] if "end_time" in row else row["time"]
            took.append((at - datetime.fromisoformat(sent).timestamp()) * 1000)

    producer = Producer({"bootstrap.servers": broker, **SENDER})

    def put(name: str, price: float, user: int) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        producer.produce(source, json.dumps({"name": name, "time": now, "price": price, "user": user}))
        producer.poll(0)

    reader = Thread(target=receive)
    reader.start()
    while not ready():
        time.sleep(0.5)
    between = max(1, rate // 100 - 3)
    begun = time.perf_counter()
    for tick in range(number):
        for place in range(between):
            put(f"other{place}", 1.0, place % USERS)
        for step in range(3):
            put(f"n{3 * (tick % rules) + step}", 99.0, USERS + tick)
        wait = begun + (tick + 1) / 100 - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
    producer.flush()
    reader.join()
    settled = took[len(took) // 5 :]
    return {f"ms p{p}": round(float(np.percentile(settled, p)), 1) for p in (10, 50, 90, 99)}


def ends_a_rule(row: Mapping[str, Any]) -> bool:
    """Whether a row is an answer, or the last event of one."""
    return "end_time" in row or (row["price"] == 99.0 and int(row["name"][1:]) % 3 == 2)


def crossing(broker: str, rate: int, number: int) -> dict[str, Any]:
    """The broker alone: an event is sent and read, and nothing is done with it."""
    make_topic(broker, "crossed")
    return {"crossing": "one", **waits(broker, "crossed", "crossed", 10, rate, number, lambda: True)}


def relayed(broker: str, rate: int, number: int, *, whole: bool) -> dict[str, Any]:
    """The broker twice: a process without an engine sends what it reads to the other topic."""
    topic = f"relayed-{whole}"
    make_topic(broker, topic)
    make_topic(broker, f"{topic}-on")
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.relay", broker, topic, f"{topic}-on", str(whole)]
    )
    try:
        figures = waits(broker, topic, f"{topic}-on", 10, rate, number, lambda: True)
    finally:
        process.terminate()
        process.wait()
    return {"crossing": "two, in transactions" if whole else "two", **figures}


def latency(
    broker: str, rules: int, rate: int, number: int, directory: Path, *, whole: bool
) -> dict[str, Any]:
    """Milliseconds from an event to its answer by the engine, and what a batch takes of these."""
    topic = f"rate-{rules}-{whole}"
    make_topic(broker, topic)
    make_topic(broker, f"{topic}-answers")
    (directory / topic).mkdir()
    for name, text in rules_of(rules).items():
        (directory / topic / f"{name}.ceql").write_text(text)
    metrics = f"127.0.0.1:{free_port()}"
    sink = f"kafka://{broker}/{topic}-answers?transactions={str(whole).lower()}"
    options = [
        *("stream", str(directory / topic), "--engine", "local", "--from", f"kafka://{broker}/{topic}"),
        *("--to", sink, "--checkpoint", str(directory / f"{topic}-state"), "--serve", metrics),
        *("--schema", SCHEMA, "--time", "time"),
    ]
    process = subprocess.Popen([sys.executable, "-c", "from estero.cli import main; main()", *options])
    state = directory / f"{topic}-state" / "state"
    begun = 0.0

    def is_ready() -> bool:
        nonlocal begun
        if process.poll() is None and not (state.exists() and state.stat().st_size > BEGUN):
            return False
        begun = seconds_of(process.pid)
        return True

    try:
        figures = waits(broker, topic, f"{topic}-answers", rules, rate, number, is_ready)
        spent = seconds_of(process.pid) - begun
        figures |= of_batches(metrics)
        figures["CPU of all threads, ms a batch"] = round(spent / figures["batches"] * 1000, 2)
    finally:
        process.terminate()
        process.wait()
    transactions = "yes" if whole else "no"
    return {"rules": rules, "events a second": rate, "transactions": transactions, **figures}


def of_batches(server: str) -> dict[str, float]:
    """What the engine says of its batches: how many there were, and the milliseconds of each stage."""
    with urllib.request.urlopen(f"http://{server}/metrics") as page:
        lines = page.read().decode().splitlines()
    said = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    batches = float(said["estero_batches_total"])
    stages = {
        f"{stage}, ms a batch": round(
            float(said[f'estero_stage_seconds_total{{stage="{stage}"}}']) / batches * 1000, 2
        )
        for stage in ("decode", "recognize", "write", "checkpoint")
    }
    return {"batches": batches, **stages}


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def measures(
    broker: str, rules: Sequence[int], events: int, rate: int, number: int, directory: Path
) -> Iterator[dict[str, Any]]:
    """All figures: the broker alone, then for each number of rules how fast, and how soon."""
    if number:
        yield crossing(broker, rate, number)
        for whole in (False, True):
            yield relayed(broker, rate, number, whole=whole)
    for many in rules:
        if events:
            topic = f"full-{many}"
            make_topic(broker, topic)
            send(broker, topic, rows_of(events, many))
            yield run(broker, many, events, directory, topic)
        if number:
            for whole in (False, True):
                yield latency(broker, many, rate, number, directory, whole=whole)


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--broker", help="HOST:PORT of a broker; default: one is started")
    parser.add_argument("--events", type=int, default=600_000, help="of a full topic; 0: no speed")
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=10, help="at the rate; 0: no latency")
    parser.add_argument("--rules", type=int, nargs="*", default=[10, 1_000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from connectors.servers import kafka

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "broker").mkdir()
        with kafka(directory / "broker") if given.broker is None else nullcontext(given.broker) as broker:
            print(f"{check(broker, directory):,} answers are those of one run")
            results = []
            rate, number = given.rate, given.seconds * 100
            for figures in measures(broker, given.rules, given.events, rate, number, directory):
                results.append(figures)
                print(figures, flush=True)
    if given.out is not None:
        machine = {"cores": os.cpu_count(), "python": sys.version.split()[0], "pyarrow": pa.__version__}
        given.out.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
