"""A stream that is killed between any two steps has, started again, the answers of one run."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import estero
from estero import LiveStream
from estero.local import door
from estero.local.sources.lines import StandardInput
from local.streams import (
    BROKEN,
    LAYOUT,
    QUERY,
    RULES,
    events,
    expected,
    frame,
    lines,
    read_lines,
    run_with_kills,
    told,
)

EVENTS = events(90)
PARTS = ((0, 20), (20, 63), (63, 90))
RARELY = 3_600.0


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "estero.live")


def appear(file: Path, number: int) -> None:
    """Gives a file its place among the others."""
    os.utime(file, ns=(number, number))


def lines_in_files(directory: Path) -> str:
    texts = lines(EVENTS)
    (directory / "in").mkdir()
    for number, (start, end) in enumerate(((0, 20), (20, 63), (63, None))):
        file = directory / "in" / f"{number}.jsonl"
        file.write_text("\n".join(texts[start:end]) + "\n")
        appear(file, number)
    return f"json:{directory}/in"


def tables_in_files(directory: Path, form: str) -> str:
    (directory / "in").mkdir()
    write = {"parquet": pyarrow.parquet.write_table, "csv": pyarrow.csv.write_csv}[form]
    for number, (start, end) in enumerate(PARTS):
        file = directory / "in" / f"{number}.{form}"
        write(frame(EVENTS[start:end]), file)
        appear(file, number)
    return f"{form}:{directory}/in"


def opener(directory: Path, asked: Any, source: str, **options: Any) -> Callable[[], LiveStream]:
    def opened() -> LiveStream:
        return estero.live(
            asked,
            source,
            f"json:{directory}/out",
            checkpoint=directory / "state",
            dead_letters=f"json:{directory}/dead",
            **{**LAYOUT, "batch": 17, "checkpoint_every": 0, **options},
        )

    return opened


def check(directory: Path, asked: estero.Query | estero.RuleSet) -> None:
    rows = read_lines(directory / "out")
    assert told(rows) == expected(asked, EVENTS)
    assert len({row["answer_id"] for row in rows}) == len(rows)


@pytest.mark.parametrize("kills", [[step] for step in range(0, 60, 4)] + [[7, 3], [30, 0, 5, 12]])
def test_files_have_each_answer_and_each_dead_letter_once(tmp_path: Path, kills: list[int]) -> None:
    query = estero.query(QUERY)
    run_with_kills(opener(tmp_path, query, lines_in_files(tmp_path)), kills)
    check(tmp_path, query)
    assert [row["text"] for row in read_lines(tmp_path / "dead")] == list(BROKEN)


@pytest.mark.parametrize("kills", [[20], [45, 20]])
def test_the_journal_repeats_what_is_behind_the_last_state(tmp_path: Path, kills: list[int]) -> None:
    rules = estero.rules(RULES)
    run_with_kills(opener(tmp_path, rules, lines_in_files(tmp_path), checkpoint_every=RARELY), kills)
    check(tmp_path, rules)


@pytest.mark.parametrize("every", [0, RARELY])
@pytest.mark.parametrize("kills", [[4], [7, 9], [12]])
def test_lines_that_cannot_be_read_again_come_from_the_journal(
    tmp_path: Path, kills: list[int], every: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.write(writing, ("\n".join(lines(EVENTS)) + "\n").encode())
    os.close(writing)
    monkeypatch.setattr(door, "opened_source", lambda _address: StandardInput(reading))
    query = estero.query(QUERY)
    run_with_kills(opener(tmp_path, query, "stdin", checkpoint_every=every), kills)
    os.close(reading)
    check(tmp_path, query)
    assert [row["text"] for row in read_lines(tmp_path / "dead")] == list(BROKEN)


@pytest.mark.parametrize(("kills", "last"), [([2], 1), ([19], 35), ([24], 35), ([31, 8], 63), ([50], 90)])
def test_the_past_and_the_stream_have_no_gap_and_no_double(
    tmp_path: Path, kills: list[int], last: int
) -> None:
    past = frame(EVENTS[:last])
    pyarrow.parquet.write_table(past.take(pa.array(range(last - 1, -1, -1))), tmp_path / "past.parquet")
    query = estero.query(QUERY)
    source = lines_in_files(tmp_path)
    run_with_kills(opener(tmp_path, query, source, backfill=tmp_path / "past.parquet"), kills)
    check(tmp_path, query)


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("schema", [LAYOUT["schema"], None])
def test_tables_are_read_in_parts(tmp_path: Path, form: str, schema: str | None) -> None:
    query = estero.query(QUERY)
    source = tables_in_files(tmp_path, form)
    run_with_kills(opener(tmp_path, query, source, schema=schema, checkpoint_every=RARELY), [33, 6])
    check(tmp_path, query)
