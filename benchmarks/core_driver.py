"""CORE's own engine behind a line protocol, for the interpreter that has `pycer` and NumPy.

Reads one JSON request per line on standard input, answers each with one JSON line on standard output:

- ``{"op": "load", "path": npz, "stream": …, "types": …, "columns": …}`` builds CORE's event objects.
- ``{"op": "run", "query": text, "events": n, "answers": …}`` runs a query over the first n of them.

It imports nothing of the project, so any Python with `pycer` can run it. What is timed: ``engine`` is
from the first event handed over until every answer is written, events being objects of CORE already;
``construction`` is the time it took to make those objects, told apart. CORE hands its answers over as
text, one line per complex event, and writes that text while it enumerates.
"""

from __future__ import annotations

import collections
import importlib.metadata
import json
import os
import re
import statistics
import sys
import time
from typing import Any

import numpy as np
import pycer  # type: ignore[import-not-found]

ATTRIBUTE_WINDOW = re.compile(r"\bWITHIN\s+(\d+)\s*\[", re.IGNORECASE)
MEMBER = re.compile(r"\(id: \d+ attributes: \[(\d+) ")


def in_dialect(query: str) -> str:
    """The query as CORE reads it: its attribute windows are exclusive, so they are one tick longer."""
    return ATTRIBUTE_WINDOW.sub(lambda window: f"WITHIN {int(window[1]) + 1} [", query)


class Peer:
    """Events of one stream as CORE's objects, and runs of queries over them."""

    def __init__(self) -> None:
        self.declaration = ""
        self.events: list[Any] = []
        self.construction = 0.0
        self.idle = statistics.median(self._idle() for _ in range(3))

    def _idle(self) -> float:
        """The time that CORE takes to shut down when it has nothing to do; about 0.1 s of waiting."""
        server = pycer.PyOfflineServer()
        server.declare_stream("CREATE STREAM S { EVENT E { id:int } }")
        server.add_query("SELECT * FROM S WHERE E AS a WITHIN 1 EVENTS")
        begun = time.perf_counter()
        server.get_output()
        return time.perf_counter() - begun

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Builds the events: the first attribute is the position, then the columns of the stream."""
        columns: list[list[str]] = request["columns"]
        attributes = ", ".join(["id:int", *(f"{name}:{kind}" for name, kind in columns)])
        types = ", ".join(f"EVENT {name} {{ {attributes} }}" for name in request["types"])
        self.declaration = f"CREATE STREAM {request['stream']} {{ {types} }}"
        with np.load(request["path"], allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
        begun = time.perf_counter()
        kinds = data["type"].tolist()
        values = [self._values(data, name, kind) for name, kind in columns]
        integer, event = pycer.PyIntValue, pycer.PyEvent
        self.events = [
            event(kind, [integer(position), *row])
            for position, (kind, *row) in enumerate(zip(kinds, *values, strict=True))
        ]
        self.construction = time.perf_counter() - begun
        return {"events": len(self.events), "construction": self.construction}

    def _values(self, data: dict[str, Any], name: str, kind: str) -> list[Any]:
        """One column as values of CORE; equal strings are one object, as its own readers do not."""
        if kind == "string":
            words = [pycer.PyStringValue(str(word)) for word in data[f"{name}_words"]]
            return [words[code] for code in data[name].tolist()]
        make = pycer.PyIntValue if kind == "int" else pycer.PyDoubleValue
        return [make(value) for value in data[name].tolist()]

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """One run of a query; `answers` says how much of the answer goes back: none, counts or sets."""
        server = pycer.PyOfflineServer()
        server.declare_stream(self.declaration)
        server.add_query(in_dialect(request["query"]))
        events = self.events[: request["events"]]
        begun = time.perf_counter()
        server.send_events(events)
        handed = time.perf_counter()
        text = server.get_output()
        done = time.perf_counter()
        lines = text.count("\n")
        answer: dict[str, Any] = {
            "events": len(events),
            "engine": max(done - begun - self.idle, 1e-9),
            "handing": handed - begun,
            "outputs": lines,
            "bytes": len(text),
        }
        if request.get("answers") == "counts":
            answer["counts"] = self._counts(text)
        if request.get("answers") == "sets":
            answer["sets"] = self._sets(text)
        return answer

    def _counts(self, text: str) -> list[list[int]]:
        """How many answers end where; the last event of a line is the one that completed it."""
        ends = collections.Counter(
            int(line[line.rindex("[") + 1 :].split(" ", 1)[0]) for line in text.splitlines()
        )
        return [[end, count] for end, count in sorted(ends.items())]

    def _sets(self, text: str) -> list[list[int]]:
        """The marked positions of each answer, in order; all sorted.

        The two numbers that CORE prints before them are not read: times, where the window is one of time.
        """
        return sorted(sorted(int(number) for number in MEMBER.findall(line)) for line in text.splitlines())


def main() -> None:
    """Serves requests until the input ends. CORE logs to standard output, so that is moved away first."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer = Peer()
    hello = {
        "pycer": importlib.metadata.version("pycer"),
        "python": sys.version.split()[0],
        "idle": peer.idle,
    }
    print(json.dumps(hello), file=replies)
    operations = {"load": peer.load, "run": peer.run}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = operations[request["op"]](request)
        except Exception as problem:  # noqa: BLE001 - the peer's own exceptions share no base; the message is the answer
            reply = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main()
