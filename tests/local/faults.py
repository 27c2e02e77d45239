"""``python -m local.faults``: kills a stream at random moments while its rules change, and compares answers.

A process runs a stream out of files, with dead letters among the events and rules that are added, changed,
broken and removed from batch to batch. It is killed (SIGKILL) a drawn time after it has begun, and another
one goes on from its checkpoint; when all is read, the next stream begins, until there were so many kills.
Each stream has to have the answers of one that was not killed, each once. Moments are drawn from ``--seed``;
what happens in them depends on the machine.

    python -m local.faults --kills 100 --seed 1 --to json --to kafka --to postgresql
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import estero
from local.streams import BROKEN, LAYOUT, RULES, events, lines, often, put_lines, read_lines, told

EVENTS = 500
BATCH = 17
CHANGES: dict[int, dict[str, str | None]] = {
    0: {**RULES},
    3: {"large": None},
    5: {"new": "SELECT * WHERE B AS b FILTER b[v > 30]"},
    9: {"pairs": "SELECT * WHERE"},
    12: {"pairs": RULES["pairs"], "small": "SELECT * WHERE C AS y FILTER y[v < 10]"},
    16: {"new": None, "silent": "SELECT * WHERE A ; NOT(B) FOR 3 SECONDS PARTITION BY [user]"},
    22: {"large": RULES["large"]},
}
"""From these batches on, rules are others; None: they are removed."""


def rules_at(batch: int) -> dict[str, str]:
    """The rules that the directory has before a batch."""
    rules: dict[str, str | None] = {}
    for first, changed in CHANGES.items():
        rules |= changed if first <= batch else {}
    return {name: text for name, text in rules.items() if text is not None}


def write_rules(directory: Path, batch: int) -> None:
    """Has a directory have these rules."""
    rules = rules_at(batch)
    for file in directory.glob("*.ceql"):
        if file.stem not in rules:
            file.unlink()
    for name, text in rules.items():
        file = directory / f"{name}.ceql"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def prepared(directory: Path) -> None:
    """The events and the first rules of a stream."""
    (directory / "rules").mkdir(parents=True)
    write_rules(directory / "rules", 0)
    texts = lines(events(EVENTS))
    for number in range(3):
        put_lines(directory / "in", number, _third(texts, number))


def _third(texts: list[str], number: int) -> list[str]:
    size = -(-len(texts) // 3)
    return texts[number * size : (number + 1) * size]


def run_stream(directory: Path, sink: str) -> None:
    """Runs the stream from its checkpoint to its end, with rules by the number of the batch."""
    stream = estero.live(
        directory / "rules",
        f"json:{directory}/in",
        sink,
        checkpoint=directory / "state",
        dead_letters=f"json:{directory}/dead",
        batch=BATCH,
        checkpoint_every=0.2,
        **LAYOUT,
    )
    stream._settings = often(stream._settings)
    look: Callable[[], None] = stream._look_at_rules

    def with_rules() -> None:
        write_rules(directory / "rules", stream._number + 1)
        look()

    stream._look_at_rules = with_rules  # type: ignore[method-assign]
    with stream:
        stream.run(until_caught_up=True)


def begun(directory: Path, sink: str) -> int:
    """Runs the stream in a process of its own; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        run_stream(directory, sink)
        status = 0
    except Exception:  # noqa: BLE001 (whatever it is, it is shown)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended(process: int, seconds: float | None = None) -> bool:
    """Waits for a process, and kills it after so many seconds; whether it has come to its end."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        done, status = os.waitpid(process, 0 if until is None else os.WNOHANG)
        if done:
            break
        if until is not None and time.monotonic() >= until:
            os.kill(process, signal.SIGKILL)
            until = None
        else:
            time.sleep(0.0005)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        raise SystemExit("the stream has failed: see above")
    return True


@dataclass
class Target:
    """A kind of sink: the address for the stream of a number, and its rows."""

    address: Callable[[int, Path], str]
    rows: Callable[[int, Path], list[dict[str, Any]]]


@contextmanager
def target(kind: str) -> Iterator[Target]:
    """A sink with what it needs."""
    if kind == "json":
        yield Target(
            lambda _number, place: f"json:{place}/out", lambda _number, place: read_lines(place / "out")
        )
        return
    from connectors.servers import PASSWORD, kafka, postgresql, run_sql
    from connectors.topics import make_topic, receive

    if kind == "postgresql":
        os.environ["PGPASSWORD"] = PASSWORD
        with postgresql() as server:
            yield Target(
                lambda number, _place: f"postgresql://estero@{server}/weather/answers_{number}",
                lambda number, _place: [
                    json.loads(row) for row in run_sql(server, f"SELECT to_json(a) FROM answers_{number} a")
                ],
            )
        return
    with tempfile.TemporaryDirectory() as name, kafka(Path(name)) as broker:

        def address(number: int, _place: Path) -> str:
            make_topic(broker, f"answers-{number}", 1)
            return f"kafka://{broker}/answers-{number}"

        yield Target(address, lambda number, _place: receive(broker, f"answers-{number}"))


def check(rows: list[dict[str, Any]], directory: Path, expected: list[str]) -> None:
    """Ends the program where a stream has not given what it should."""
    if told(rows) != expected:
        raise SystemExit(f"{len(rows):,} answers are not the {len(expected):,} expected ones: {directory}")
    if len({row["answer_id"] for row in rows}) != len(rows):
        raise SystemExit("an answer came twice")
    if sorted(row["text"] for row in read_lines(directory / "dead")) != sorted(BROKEN):
        raise SystemExit("dead letters are missing, or came twice")


def kill_streams(kills: int, seed: int, kind: str, directory: Path) -> tuple[int, int]:
    """Kills streams so often; how often, and how many streams there were."""
    draw = random.Random(seed)
    with target(kind) as sink:
        prepared(directory / "whole")
        first = time.monotonic()
        ended(begun(directory / "whole", sink.address(0, directory / "whole")))
        longest = time.monotonic() - first
        whole = sink.rows(0, directory / "whole")
        expected = told(whole)
        check(whole, directory / "whole", expected)
        done = streams = 0
        while done < kills:
            streams += 1
            place = directory / str(streams)
            prepared(place)
            address = sink.address(streams, place)
            while not ended(begun(place, address), draw.uniform(0, longest) if done < kills else None):
                done += 1
            check(sink.rows(streams, place), place, expected)
            sys.stderr.write(f"{kind}: stream {streams} has each answer once; {done} kills so far\n")
    return done, streams


def main() -> None:
    """Kills streams to all sinks that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m local.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="of each sink")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", action="append", choices=("json", "kafka", "postgresql"))
    given = parser.parse_args()
    logging.getLogger("estero.live").setLevel(logging.CRITICAL)
    for kind in given.to or ["json"]:
        with ExitStack() as things:
            directory = Path(things.enter_context(tempfile.TemporaryDirectory()))
            kills, streams = kill_streams(given.kills, given.seed, kind, directory)
            sys.stdout.write(f"{kind}: {kills} kills of {streams} streams, and each answer came once\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
