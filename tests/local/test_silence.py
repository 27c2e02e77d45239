"""Streams on which no event comes: time passes there, too, and decides what it would have decided anyway."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero import DataError, LiveStream
from local.streams import LAYOUT, KilledError, abandon, expected, killed_at, read_lines, told

ABSENCE = "SELECT * WHERE A ; NOT(B) FOR 5 SECONDS PARTITION BY [user]"
QUERIES = (
    ABSENCE,
    "SELECT LONGEST * WHERE A ; B+ PARTITION BY [user] WITHIN 5 SECONDS",
    "SELECT * WHERE A ; B ; NOT(C) FOR 3 SECONDS WITHIN 30 SECONDS",
)
AFTER = 2.0
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
Row = dict[str, Any]


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def event(kind: str, seconds: float, user: int = 0) -> Row:
    return {"kind": kind, "time": (NOON + timedelta(seconds=seconds)).isoformat(), "user": user, "v": 0}


def put(directory: Path, number: int, rows: list[Row]) -> None:
    (directory / "in").mkdir(exist_ok=True)
    new = directory / "in" / f".{number}.new"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows))
    new.rename(directory / "in" / f"{number:03}.jsonl")


def opened(directory: Path, clock: Clock, query: str = ABSENCE, **options: Any) -> LiveStream:
    given = {**LAYOUT, "idle_after": AFTER, "checkpoint_every": 0, **options}
    stream = estero.live(
        estero.query(query),
        f"json:{directory}/in",
        f"json:{directory}/out",
        checkpoint=directory / "state",
        **given,
    )
    stream._clock = clock
    return stream


def test_an_absence_is_decided_while_no_event_comes(tmp_path: Path) -> None:
    clock = Clock()
    put(tmp_path, 0, [event("A", 0)])
    with opened(tmp_path, clock) as stream:
        assert stream.step()
        clock.now += AFTER + 5
        assert not stream.step()
        clock.now += 1.5
        assert stream.step()
        (row,) = read_lines(tmp_path / "out")
        assert row["start_time"].startswith("2026-03-02T12:00:00")
        clock.now += 3600
        assert not stream.step()
        assert stream.metrics()["batches"] == 2


def test_events_that_are_earlier_than_the_clock_says_are_late(tmp_path: Path) -> None:
    clock = Clock()
    put(tmp_path, 0, [event("A", 0)])
    with opened(tmp_path, clock) as stream:
        stream.step()
        clock.now += AFTER + 8
        stream.step()
        put(tmp_path, 1, [event("B", 3), event("A", 9)])
        stream.step()
        assert stream.metrics()["late"] == 1
    assert len(read_lines(tmp_path / "out")) == 1


def test_a_clock_that_stands_or_goes_back_moves_nothing(tmp_path: Path) -> None:
    clock = Clock()
    put(tmp_path, 0, [event("A", 0)])
    with opened(tmp_path, clock) as stream:
        stream.step()
        for now in (clock.now, clock.now - 10_000, clock.now + AFTER):
            clock.now = now
            assert not stream.step()
        put(tmp_path, 1, [event("B", 1)])
        stream.step()
        assert stream.metrics()["late"] == 0


def test_the_clock_counts_only_while_somebody_could_hear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    put(tmp_path, 0, [event("A", 0)])
    with opened(tmp_path, clock) as stream:
        stream.step()
        monkeypatch.setattr(stream._source, "is_silent", lambda: False)
        clock.now += 3600
        assert not stream.step()
        monkeypatch.undo()
        assert not stream.step()
        clock.now += AFTER + 6
        assert stream.step()


def play(directory: Path, query: str, actions: list[Row | float], kills: list[int]) -> list[str]:
    """The answers of a stream that is killed and started again, which then waits as long once more."""
    clock, left = Clock(), list(kills)

    def begun() -> LiveStream:
        stream = opened(directory, clock, query, checkpoint_every=3600)
        if left:
            stream._reached = killed_at(left.pop(0))
        return stream

    stream = begun()
    for number, action in enumerate(actions):
        if isinstance(action, dict):
            put(directory, number, [action])
        while True:
            try:
                stream.step()  # goes on from the checkpoint, where it was killed
                clock.now += 0 if isinstance(action, dict) else action
                while stream.step():
                    pass
            except KilledError:
                abandon(stream)
                stream = begun()
            else:
                break
    stream._reached = lambda _step: None
    stream.close()
    rows = read_lines(directory / "out")
    assert len({row["answer_id"] for row in rows}) == len(rows)
    return told(rows)


STORY: list[Row | float] = [
    event("A", 0), 9.0, event("A", 20, 1), event("B", 21, 1), 1.0, event("A", 22, 1), 30.0, event("B", 60, 1),
    event("A", 61), event("B", 63), 10.0, event("Z", 500),
]  # fmt: skip


@pytest.mark.parametrize("kills", [[step] for step in range(0, 90, 9)] + [[3, 3, 3], [20, 11, 7]])
def test_a_stream_that_is_killed_in_its_silence_has_each_answer_once(
    tmp_path: Path, kills: list[int]
) -> None:
    rows = [action for action in STORY if isinstance(action, dict)]
    assert play(tmp_path, ABSENCE, STORY, kills) == expected(estero.query(ABSENCE), rows)


MOVES = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 1), st.floats(0, 12), st.floats(0, 4)), max_size=8
)


@given(query=st.sampled_from(QUERIES), moves=MOVES)
def test_silence_changes_when_answers_come_and_never_which(query: str, moves: list[Any]) -> None:
    """Unless an event is late: here each comes behind the time that the clock has reached."""
    actions: list[Row | float] = [event(kind, 0, 2) for kind in "CBA"]
    time = 0.0
    for kind, user, silence, more in moves:
        time = round(time + max(0.0, silence - AFTER) + more, 3) + 0.001
        actions += [silence, event(kind, time, user)]
    actions.append(event("Z", time + 1000))
    rows = [action for action in actions if isinstance(action, dict)]
    with tempfile.TemporaryDirectory() as directory:
        assert play(Path(directory), query, actions, []) == expected(estero.query(query), rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"idle_after": 0.0, "time": "t"}, "idle_after is more than 0 and at most 86,400 seconds, not 0.0"),
        ({"idle_after": 1.0}, "without a time column no time passes on a stream"),
    ],
)
def test_a_silence_that_has_no_meaning_is_refused(given: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estero.live(estero.query(ABSENCE), "stdin", **given)


def test_times_without_a_unit_do_not_pass_by_the_clock(tmp_path: Path) -> None:
    put(tmp_path, 0, [{"kind": "A", "time": 1}])
    query = estero.query("SELECT * WHERE A ; B WITHIN 5 [time]")
    given: Row = {"idle_after": 1.0, "schema": "kind STRING, time BIGINT", "type": "kind", "time": "time"}
    refused = pytest.raises(DataError, match="how long a tick is")
    with refused, estero.live(query, f"json:{tmp_path}/in", **given) as one:
        one.step()
