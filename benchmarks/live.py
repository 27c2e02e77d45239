"""``python -m benchmarks.live``: the local engine between two topics of a Kafka broker on this machine.

First the answers of a small stream through Kafka are compared with those of one run over its events. Then it
times, for 10 and for 1,000 rules, how many events a second are read from a topic that is full, and how
long an answer takes at a steady rate: from the time that an event has when it is sent to that at which its
answer is read, committed, from the other topic. The engine is a process of its own then. Prints the figures,
and writes them as JSON to ``--out``.

The broker is that of the tests (`make connectors`), unless ``--broker HOST:PORT`` says another one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
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
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parts = file.read_text().rpartition(")")[2].split()
            ticks += (int(parts[11]) + int(parts[12])) * (int(parts[1]) == os.getpid())
    return ticks / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.0


def check(broker: str, directory: Path) -> int:
    """Compares the answers that come through Kafka with those of one run; how many there are."""
    rows = rows_of(CHECKED, 1)
    make_topic(broker, "checked")
    send(broker, "checked", rows)
    told = run(broker, 10, CHECKED, directory, "checked")["answers"]
    columns: Mapping[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    times = pa.array(columns["time"]).cast(pa.timestamp("us", "UTC"))
    expected = estero.rules(rules_of(10)).run(pa.table({**columns, "time": times}), time="time").count()
    if (
        not expected
        or told != expected
        or len(list(answers(broker, "checked-answers", expected))) != expected
    ):
        raise Wrong(f"{told:,} answers, not {expected:,}")
    return expected


def answers(broker: str, topic: str, number: int) -> Iterator[tuple[float, dict[str, Any]]]:
    """So many answers of a topic, with the times at which they were read."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "read", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while number:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            yield time.time(), json.loads(message.value() or b"")
            number -= 1
    consumer.close()


def latency(
    broker: str, rules: int, rate: int, seconds: int, directory: Path, *, whole: bool
) -> dict[str, Any]:
    """Milliseconds from an event to its answer: each hundredth of a second three events complete a rule."""
    from threading import Thread

    from confluent_kafka import Producer

    topic = f"rate-{rules}-{whole}"
    make_topic(broker, topic)
    make_topic(broker, f"{topic}-answers")
    (directory / topic).mkdir()
    for name, text in rules_of(rules).items():
        (directory / topic / f"{name}.ceql").write_text(text)
    options = [
        *("stream", str(directory / topic), "--engine", "local", "--from", f"kafka://{broker}/{topic}"),
        *(
            "--to",
            f"kafka://{broker}/{topic}-answers?transactions={str(whole).lower()}",
            "--checkpoint",
            str(directory / f"{topic}-state"),
        ),
        *("--schema", SCHEMA, "--time", "time"),
    ]
    process = subprocess.Popen([sys.executable, "-c", "from estero.cli import main; main()", *options])
    number = seconds * 100
    waits: list[float] = []

    def read() -> None:
        for at, row in answers(broker, f"{topic}-answers", number):
            waits.append((at - datetime.fromisoformat(row["end_time"]).timestamp()) * 1000)

    producer = Producer({"bootstrap.servers": broker, "linger.ms": 0})

    def put(name: str, price: float, user: int) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        producer.produce(topic, json.dumps({"name": name, "time": now, "price": price, "user": user}))
        producer.poll(0)

    reader = Thread(target=read)
    reader.start()
    state = directory / f"{topic}-state" / "state"
    while process.poll() is None and not (state.exists() and state.stat().st_size > BEGUN):
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
    process.terminate()
    process.wait()
    settled = waits[len(waits) // 5 :]
    figures = {f"p{p}": round(float(np.percentile(settled, p)), 1) for p in (10, 50, 99)}
    return {
        "rules": rules,
        "events a second": rate,
        "answers": number,
        **{f"ms {k}": v for k, v in figures.items()},
    }


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--broker", help="HOST:PORT of a broker; default: one is started")
    parser.add_argument("--events", type=int, default=600_000)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=10)
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
            for rules in given.rules:
                make_topic(broker, f"full-{rules}")
                send(broker, f"full-{rules}", rows_of(given.events, rules))
                results.append(run(broker, rules, given.events, directory, f"full-{rules}"))
                print(results[-1])
                for whole in (True, False):
                    rate, seconds = given.rate, given.seconds
                    results.append(latency(broker, rules, rate, seconds, directory, whole=whole))
                    print(results[-1])
    if given.out is not None:
        machine = {"cores": os.cpu_count(), "python": sys.version.split()[0], "pyarrow": pa.__version__}
        given.out.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
