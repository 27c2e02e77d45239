"""The other side of `core_driver`: CORE in its own interpreter, asked over a pipe."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Workload

DRIVER = Path(__file__).with_name("core_driver.py")


class CoreProblem(Exception):
    """CORE refused a query or died; the message is its own."""


class CorePeer:
    """CORE's engine in another Python; one stream is loaded at a time, and kept as CORE's objects."""

    def __init__(self, python: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="core-")
        self._process = subprocess.Popen(
            [str(python.absolute()), str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            cwd=self._folder.name,
        )
        self.versions = self._read()

    def load(self, workload: Workload, events: int, rows: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Makes CORE's objects of the first `events` events, or these `rows`; says how long that took."""
        path = Path(self._folder.name) / "events.npz"
        workload.save_codes(path, events, rows)
        return self._ask(
            op="load",
            path=str(path),
            stream=workload.stream,
            types=workload.types,
            columns=[[column.name, column.kind] for column in workload.columns],
        )

    def run(self, query: str, events: int, answers: str = "none") -> dict[str, Any]:
        """One run over the first `events` events; `answers` is what comes back: none, counts or sets."""
        return self._ask(op="run", query=query, events=events, answers=answers)

    def close(self) -> None:
        """Ends the interpreter."""
        self._process.communicate()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        pipe = self._process.stdin
        if pipe is None:
            raise CoreProblem("the driver of CORE has no standard input")
        pipe.write(json.dumps(request) + "\n")
        reply = self._read()
        if "error" in reply:
            raise CoreProblem(f"CORE: {reply['error']}")
        return reply

    def _read(self) -> dict[str, Any]:
        pipe = self._process.stdout
        line = pipe.readline() if pipe else ""
        if not line:
            raise CoreProblem("CORE's interpreter ended without an answer; does it have pycer and numpy?")
        reply: dict[str, Any] = json.loads(line)
        return reply
