"""How many threads work: what is asked for, the environment, or the cores that there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.system import cores
from estero.system.cores import MOST, threads_to_use

EVENTS = estero.scan(pa.table({"type": ["A", "B"]}), type="type")


def test_what_is_asked_for_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTERO_THREADS", "5")
    assert threads_to_use(3) == 3
    assert threads_to_use(np.int64(3)) == 3
    assert threads_to_use() == 5


def test_else_there_are_as_many_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ESTERO_THREADS", raising=False)
    assert threads_to_use() == cores.cores() >= 1


def test_a_large_number_is_cut() -> None:
    assert threads_to_use(10**9) == MOST
    assert estero.query("SELECT * WHERE A ; B").run(EVENTS, threads=10**9).count() == 1


@pytest.mark.parametrize("asked", [0, -1])
def test_fewer_than_one_are_refused(asked: int) -> None:
    with pytest.raises(ValueError, match=f"threads is at least 1, not {asked}: for example 1"):
        estero.query("SELECT * WHERE A").run(EVENTS, threads=asked)


@pytest.mark.parametrize("asked", ["a", 1.5, True])
def test_what_is_no_number_is_refused(asked: object) -> None:
    with pytest.raises(TypeError, match="threads"):
        estero.query("SELECT * WHERE A").run(EVENTS, threads=asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "said"), [("two", "not 'two'"), ("0", "at least 1, not 0")])
def test_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.setenv("ESTERO_THREADS", text)
    with pytest.raises(ValueError, match=f"ESTERO_THREADS is .*{said}"):
        estero.query("SELECT * WHERE A").run(EVENTS)


@pytest.mark.parametrize(
    ("files", "number"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_quota_of_a_container_counts(tmp_path: Path, files: dict[str, str], number: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores._quota(tmp_path) == number
