"""Kernels that another process compiles: one at a time, asked once, and found on disk when it has ended."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from numba.core import types

from estero.engine.compiled import background
from estero.engine.compiled.background import LOCK, Background, Wanted, compile_all

fcntl = pytest.importorskip("fcntl")

PUSHED = """
import logging
import sys

import numpy as np
import pyarrow as pa

import estero
from estero.engine.patience import patience
from estero.engine.runs.run_cea import advance

logging.basicConfig(level=logging.WARNING)
draw = np.random.default_rng(2)
events = pa.table({"kind": np.array(list("ABC"))[draw.integers(0, 3, 400)]})
recognizer = estero.query("SELECT * WHERE A ; B ; C WITHIN 9 EVENTS").recognizer(events.schema, type="kind")
if "tired" in sys.argv:
    patience._spent = 0.5
found = sum(recognizer.push(events.slice(first, 100)).count() for first in range(0, 400, 100))
numba = "numba" in sys.modules
hits = sum(advance.compiled.stats.cache_hits.values()) if numba else 0
print(found, numba, hits)
"""


def _pushed(directory: Path, *arguments: str) -> tuple[str, str, str]:
    """What a program finds, whether it loads Numba, and whether it finds a kernel on disk."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "ESTERO_CACHE": str(directory), "ESTERO_COMPILE": ""}
    program = [sys.executable, "-W", "error", "-c", PUSHED, *arguments]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    assert ran.stderr == ""
    found, numba, hits = ran.stdout.split()
    return found, numba, hits


def _wait_until_compiled(directory: Path) -> None:
    """Until the process has ended that holds the lock."""
    (lock,) = directory.rglob(LOCK)
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_what_another_process_has_compiled_is_found(tmp_path: Path) -> None:
    assert _pushed(tmp_path)[1:] == ("False", "0")
    assert [each for each in tmp_path.iterdir() if each.suffix != ".json"] == []  # but the parser's
    first = _pushed(tmp_path, "tired")
    assert first[1:] == ("True", "0")
    _wait_until_compiled(tmp_path)
    assert any(file.name.startswith("run_cea.advance") for file in tmp_path.rglob("*.nbc"))
    assert _pushed(tmp_path, "tired") == (first[0], "True", "1")


class Started:
    """Stands in for the process: has the lock until it ends, and reads what it is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Path | None) -> None:
        self.times = 0
        monkeypatch.setattr(background, "_started", self._start)
        monkeypatch.setattr(background, "directory", lambda: place)

    def _start(self, lock: io.FileIO) -> int:
        self.times += 1
        self.lock = os.fdopen(os.dup(lock.fileno()), "rb")
        return os.getpid()  # no child of this process: 0 would be waited for as any of them

    def asked(self) -> list[Wanted]:
        found = []
        with self.lock, suppress(EOFError):
            while True:
                found.append(pickle.load(self.lock))
        return found


def test_one_process_is_asked_for_each_kernel_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started, asking = Started(monkeypatch, tmp_path / "kernels"), Background()
    wanted = [Wanted(_pushed.__module__, "_pushed", (each,)) for each in (types.int64, types.float64)]
    for number in (types.int64, types.int64, types.float64):
        asking.compile(_pushed, (number,))
    assert started.times == 1
    assert started.asked() == wanted
    asking.compile(_pushed, (types.float64,))
    assert started.times == 1
    Background().compile(_pushed, (types.float64,))
    assert started.times == 2
    assert started.asked() == wanted[1:]


def test_no_process_is_started_where_kernels_cannot_be_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for place in (None, tmp_path / "file" / "kernels"):
        started = Started(monkeypatch, place)
        Background().compile(_pushed, (types.int64,))
        assert started.times == 0


def test_no_process_is_started_by_a_program_that_is_not_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = Started(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    Background().compile(_pushed, (types.int64,))
    assert started.times == 0


def test_the_process_leaves_no_entry_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(background, "directory", lambda: tmp_path)
    monkeypatch.setattr(background, "module_command", lambda _: [sys.executable, "-I", "-S", "-c", ""])
    numbers: list[int] = []
    start = background._started

    def noted(lock: io.FileIO) -> int:
        numbers.append(start(lock))
        return numbers[-1]

    monkeypatch.setattr(background, "_started", noted)
    asking = Background()
    asking.compile(_pushed, (types.int64,))
    assert asking.ending is not None
    asking.ending.join()
    with pytest.raises(ChildProcessError):
        os.waitpid(numbers[0], os.WNOHANG)


def test_a_lock_that_is_a_link_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels, target = tmp_path / "kernels", tmp_path / "target"
    kernels.mkdir()
    target.write_bytes(b"before")
    (kernels / LOCK).symlink_to(target)
    started = Started(monkeypatch, kernels)
    Background().compile(_pushed, (types.int64,))
    assert started.times == 0
    assert target.read_bytes() == b"before"


def test_the_process_compiles_what_it_is_given() -> None:
    from estero.engine.masks import _of_two

    column, masks = types.Array(types.uint32, 1, "C", readonly=True), types.Array(types.int64, 1, "A")
    found, bits = types.Array(types.int64, 1, "C"), types.Array(types.int16, 1, "C")
    signature = (column, column, masks, masks, types.boolean, found, bits)
    assert signature not in _of_two.compiled.overloads
    compile_all(io.BytesIO(pickle.dumps(Wanted("estero.engine.masks", "_of_two", signature))))
    assert signature in _of_two.compiled.overloads
