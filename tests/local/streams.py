"""Streams that are killed between two steps and started again, and what they have to give in the end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import estero
from estero import LiveStream

SCHEMA = "kind STRING, time TIMESTAMP, user BIGINT, v BIGINT"
LAYOUT: dict[str, Any] = {"schema": SCHEMA, "type": "kind", "time": "time"}
QUERY = "SELECT * WHERE A ; B ; C PARTITION BY [user] WITHIN 20 SECONDS"
RULES = {
    "pairs": "SELECT * WHERE A ; B PARTITION BY [user] WITHIN 10 SECONDS",
    "large": "SELECT * WHERE A AS x ; C AS y FILTER x[v > 50] WITHIN 5 SECONDS",
    "small": "SELECT * WHERE A AS x ; C AS y FILTER x[v < 10] WITHIN 5 SECONDS",
}
BROKEN = (
    "nothing of JSON",
    '{"kind": "A", "v": 1}',
    '{"kind": "A", "time": "2026-01-01T00:00:00Z", "v": "one"}',
)


class KilledError(BaseException):
    """The process was killed, as it were."""


def events(number: int) -> list[dict[str, Any]]:
    """Events in order of time, of three kinds and users."""
    return [
        {
            "kind": "ABC"[i * 7 % 5 % 3],
            "time": f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z",
            "user": i * 5 % 7 % 3,
            "v": i * 37 % 101,
        }
        for i in range(number)
    ]


def lines(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The events as JSON, with lines between that are none."""
    texts = list(map(json.dumps, rows))
    for place, text in enumerate(BROKEN):
        texts.insert(5 + 11 * place, text)
    return texts


def frame(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """The events as a table."""
    columns = {name: [row[name] for row in rows] for name in ("kind", "time", "user", "v")}
    times = pa.array(columns["time"]).cast(pa.timestamp("us", "UTC"))
    return pa.table({**columns, "time": times})


def expected(asked: estero.Query | estero.RuleSet, rows: Sequence[dict[str, Any]]) -> list[str]:
    """The answers of one run over all events, in any order."""
    answers = asked.run(frame(rows), type="kind", time="time")
    return sorted(
        json.dumps(answer, default=_plain, sort_keys=True)
        for answer in answers.to_arrow().to_pylist(maps_as_pydicts="strict")
    )


def _plain(value: Any) -> str:
    return str(value.isoformat())


def told(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Answers out of a sink without what the live engine adds."""
    return sorted(
        json.dumps(
            {key: value for key, value in row.items() if key not in {"answer_id", "version"}}, sort_keys=True
        )
        for row in rows
    )


def read_lines(directory: Path) -> list[dict[str, Any]]:
    """The rows of the files of a directory."""
    return [
        json.loads(line)
        for file in sorted(directory.glob("part-*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def abandon(stream: LiveStream) -> None:
    """Lets go of what the system takes from a process that is killed, and of nothing else."""
    if stream._closed:
        return
    stream._source.close()
    for sink in stream._deliveries.sinks:
        sink.close()
    if stream._checkpoint is not None:
        stream._checkpoint.close()


def killed_at(step: int, told_steps: list[str] | None = None) -> Callable[[str], None]:
    """Raises at the step of that number; at the next one, if only reading was done.

    What was read from a pipe is lost if the process is killed right then.
    """
    left = step

    def reached(name: str) -> None:
        nonlocal left
        if told_steps is not None:
            told_steps.append(name)
        if left == 0 and name != "polled":
            raise KilledError(name)
        left -= left > 0 or name != "polled"

    return reached


def run_with_kills(opened: Callable[[], LiveStream], kills: Iterable[int]) -> list[str]:
    """Runs a stream to its end, killed at these steps, each counted from its last start; the steps."""
    steps: list[str] = []
    for step in kills:
        stream = opened()
        stream._reached = killed_at(step, steps)
        try:
            stream.run(until_caught_up=True)
            stream.close()
        except KilledError:
            abandon(stream)
    with opened() as stream:
        stream._reached = killed_at(-1, steps)
        stream.run(until_caught_up=True)
    return steps


def put(directory: Path, number: int, rows: Sequence[dict[str, Any]]) -> None:
    """Has a file with events appear."""
    put_lines(directory, number, list(map(json.dumps, rows)))


def put_lines(directory: Path, number: int, texts: Sequence[str]) -> None:
    """Has a file with lines appear, behind those of smaller numbers."""
    directory.mkdir(exist_ok=True)
    new = directory / f".{number}.new"
    new.write_text("".join(text + "\n" for text in texts))
    os.utime(new, ns=(number, number))
    new.rename(directory / f"{number}.jsonl")


def stream(directory: Path, asked: Any, **options: Any) -> LiveStream:
    """A stream from files to files, with a checkpoint behind each batch."""
    given = {"checkpoint": directory / "state", "checkpoint_every": 0, **LAYOUT, **options}
    return estero.live(asked, f"json:{directory}/in", f"json:{directory}/out", **given)


def often(settings: Any) -> Any:
    """Settings with which rules are looked at before each batch."""
    return replace(settings, look_every=0.0)


def of_rule(name: str, rules: dict[str, str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """The answers of one rule."""
    return [text for text in expected(estero.rules(rules), rows) if f'"rule": "{name}"' in text]
