"""An engine in a process of its own: told over a pipe how many events to take, asked for answers and seconds.

The process gets a folder with the events (`benchmarks.peers.events.save`), the name of a query and its text.
It loads the events, and says ``{"version": …}``. For each line ``N FILE`` it then takes the first N events,
and says ``{"wall": …, "cpu": …, "answers": …, "sum": …}``: seconds, those of all its threads, how many
answers there are, and the sum of all positions in them. Unless FILE is ``-``, it also writes each answer
there, as a line of positions.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

START = 300.0
"""Seconds that an engine may take to start and to load the events."""

Answers = list[tuple[int, ...]]
"""The positions of each answer, in order; all sorted."""


class PeerProblem(Exception):
    """An engine refused a query or died; the message is its own."""


class TooLong(Exception):
    """An engine took longer than it was given; its process is gone."""


class Run(NamedTuple):
    """One run over some events."""

    wall: float
    cpu: float
    """Seconds of all its threads together."""
    answers: int
    sum: int | None


def _known() -> list[str]:
    known = os.environ.get("PYTHONPATH")
    return [known] if known else []


class Session:
    """An engine with its events and one query; `run` as often as wanted."""

    def __init__(self, command: Sequence[str], folder: Path, clock: str = "wall") -> None:
        self._clock = clock
        self._folder = folder
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *_known()])},
        )
        self.version = str(self._within(START, self._read)["version"])

    def run(self, events: int, longest: float) -> Run:
        """Counts the answers over the first `events` events; `TooLong` after `longest` seconds."""
        said = self._within(longest, lambda: self._ask(f"{events} -"))
        return Run(said["wall"], said["cpu"], said["answers"], said["sum"])

    def answers(self, events: int, longest: float) -> Answers:
        """The answers over the first `events` events."""
        path = self._folder / "answers"
        said = self._within(longest, lambda: self._ask(f"{events} {path}"))
        lines = path.read_text(encoding="utf-8").splitlines()
        answers = sorted(tuple(sorted(map(int, line.split()))) for line in lines)
        path.unlink()
        if (said["answers"], said["sum"]) != (len(answers), sum(map(sum, answers))):
            raise PeerProblem(
                "the number of answers, or the sum of their positions, is not that of the answers"
            )
        return answers

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _within(self, longest: float, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        late, done = threading.Event(), threading.Event()
        begun = self._seconds()

        def watch() -> None:
            while not done.wait(0.1):
                if self._seconds() - begun > longest:
                    late.set()
                    self._process.kill()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return work()
        except PeerProblem:
            if late.is_set():
                raise TooLong from None
            raise
        finally:
            done.set()
            watcher.join()

    def _seconds(self) -> float:
        """The time by the clock of the session: of the wall, or of all threads of the process."""
        if self._clock == "wall":
            return time.perf_counter()
        try:
            said = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        except FileNotFoundError:
            return 0.0  # it has ended, and its last words are read
        user, system = said.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _ask(self, line: str) -> dict[str, Any]:
        pipe = self._process.stdin
        try:
            if pipe is not None:
                pipe.write(line + "\n")
        except BrokenPipeError:
            raise PeerProblem(self._last_words()) from None
        return self._read()

    def _read(self) -> dict[str, Any]:
        pipe = self._process.stdout
        line = pipe.readline() if pipe else ""
        if not line:
            raise PeerProblem(self._last_words())
        said: dict[str, Any] = json.loads(line)
        return said

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").rpartition('Exception in thread "main" ')[2]
        words = [line for line in said.strip().splitlines() if not line.startswith("\tat ")]
        return "\n".join(words[-25:]) or f"it ended with code {self._process.returncode}"
