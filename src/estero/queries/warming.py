"""Kernels ready on disk before they are needed: a few small queries use all of them (`estero.warm`).

Kernels are compiled where they are called first, each for the one kind of arguments that it has. So the list
of queries below has one for each kind of plan, and asks of each answer whatever can be asked. The queries are
shared out among processes, which tell how far they are in lines on standard output.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa

from estero.arguments import checked
from estero.engine.patience import VARIABLE
from estero.queries.query import Query
from estero.queries.texts import restore
from estero.system.private_files import make_folder
from estero.system.processes import module_command

MOST_PROCESSES = 4


class Use(NamedTuple):
    """A query that uses some kernels, on so many events; whether a funnel is asked for; the time column."""

    text: str
    events: int = 2_000
    funnel: bool = False
    time: str | None = None


_COMPARED = "A AS a ; B AS b FILTER"
_JOINED = "A AS a ALL B AS b FILTER a.k = b.k"
_FAR = "A AS a ; B+ ; C AS c FILTER a.k = c.k"
_CONSUMED = "PARTITION BY [m] WITHIN 40 EVENTS CONSUME BY PARTITION"

USES = (
    Use("SELECT * WHERE A ; B+ ; C WITHIN 60 EVENTS", 12_000, funnel=True),
    Use(f"SELECT * WHERE {_FAR} WITHIN 12 EVENTS", 6_000),
    Use("SELECT MAX * WHERE A ; B+ ; C WITHIN 60 EVENTS", 6_000),
    Use(f"SELECT * WHERE {_COMPARED} a.k < b.k WITHIN 60 EVENTS", 6_000),
    Use(f"SELECT * WHERE {_COMPARED} a.k = b.k AND a.m != b.m", 6_000),
    Use(f"SELECT * WHERE {_JOINED} WITHIN 60 EVENTS", 12_000),
    Use(f"SELECT * WHERE A ; B+ ; C {_CONSUMED}"),
    Use(f"SELECT * WHERE {_COMPARED} a.k < b.k {_CONSUMED}"),
    Use(f"SELECT * WHERE {_JOINED} {_CONSUMED}"),
    Use(f"SELECT * WHERE {_COMPARED} a.k != b.k PARTITION BY [m] CONSUME BY PARTITION"),
    Use(f"SELECT NEXT * WHERE {_FAR} PARTITION BY [m] WITHIN 40 EVENTS CONSUME BY PARTITION"),
    Use("SELECT NEXT * WHERE A ; B+ ; C WITHIN 60 EVENTS CONSUME BY ANY"),
    Use("SELECT LONGEST * WHERE A ; B+ ; C PARTITION BY [m] WITHIN 60 EVENTS", 6_000),
    Use("SELECT LONGEST DISJOINT * WHERE A ;[<= 9 EVENTS] B+ ; C PARTITION BY [m] WITHIN 60 EVENTS", 6_000),
    Use("SELECT * WHERE A ;[<= 60 EVENTS] B+[2 EVENTS .. 20 EVENTS, NOT C] ; C WITHIN 90 EVENTS", 6_000),
    Use("SELECT * WHERE A ; NOT(B) FOR 60 [at] PARTITION BY [m]", 6_000, time="at"),
    Use("SELECT * WHERE A ; B PARTITION BY [m] WITHIN 9 EVENTS LIMIT 2 PER 20 [at]", time="at"),
    Use("SELECT * WHERE A ; B+ ; C", 600),
    Use("SELECT * WHERE A AS a ; B FILTER a[s = 'x'] AND a[t = 'y'] WITHIN 9 EVENTS"),
)
"""The plans that most queries have first. Numbers of the last but one do not fit in words."""


@checked
def warm(
    to: str | os.PathLike[str] | None = None, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Compiles all kernels into the directory `to`, or to where they are kept now, as far as they lack.

    Whoever has that directory in the environment variable ``ESTERO_CACHE`` finds them there: a container, a
    job, the executors of a cluster, if their processor and their versions of Estero, Numba and Python are the
    same; others compile their own. `progress` is called with how many of how many parts are done. Raises
    OSError where the directory cannot be written, and RuntimeError where compiling fails.
    """
    environment = {**os.environ, VARIABLE: "first"}
    if to is not None:
        directory = Path(to).absolute()
        make_folder(directory)
        environment["ESTERO_CACHE"] = str(directory)
    count = min(MOST_PROCESSES, os.cpu_count() or 1)
    parts = [(number, count) for number in range(count)]
    processes = [_started(number, of, environment) for number, of in parts]
    said: SimpleQueue[str | None] = SimpleQueue()
    for process in processes:
        Thread(target=_listen, args=(process.stdout, said), daemon=True).start()
    done = listening = 0
    try:
        while listening < count:
            line = said.get()
            if line is None:
                listening += 1
                continue
            done += 1
            if progress is not None:
                progress(done, len(USES))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
    if done < len(USES):
        raise RuntimeError(f"{len(USES) - done} of {len(USES)} parts were not compiled")


def _started(number: int, of: int, environment: dict[str, str]) -> subprocess.Popen[str]:
    program = module_command("estero.queries.warming", str(number), str(of))
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment)


def _listen(lines: IO[str], said: SimpleQueue[str | None]) -> None:
    with lines:
        for line in lines:
            said.put(line)
    said.put(None)


def compile_for(use: Use) -> None:
    """Asks of a query whatever can be asked of one."""
    query, events = Query(use.text), _stream(use.events)
    answer = query.run(events, type="kind", time=use.time)
    for found in (answer.limit(300), answer.share(0, 2).limit(300), answer.sample(3, seed=1)):
        deque(found.batches(), maxlen=0)
    answer.count()
    if use.funnel:
        answer.funnel()
    first = events.slice(0, 200)
    recognizer = query.recognizer(events.schema, type="kind", time=use.time)
    deque(recognizer.push(first).limit(300).batches(), maxlen=0)
    deque(restore(query, recognizer.snapshot()).push(first).limit(300).batches(), maxlen=0)


def _stream(size: int) -> pa.Table:
    """Events of three kinds; strings are encoded, so that they are looked up."""
    draw = np.random.default_rng(1)
    columns = {
        name: pa.array(np.array(values)[draw.integers(0, len(values), size)]).dictionary_encode()
        for name, values in (("kind", ["A", "B", "C"]), ("s", ["x", "y"]), ("t", ["x", "y"]))
    }
    columns["at"] = pa.array(np.arange(size))
    return pa.table({**columns, "k": draw.integers(0, 9, size), "m": draw.integers(0, 5, size)})


def _main(arguments: Sequence[str]) -> None:
    """A process that compiles its share."""
    number, of = map(int, arguments)
    for use in USES[number::of]:
        compile_for(use)
        print("done", flush=True)  # noqa: T201 - to the process that waits


if __name__ == "__main__":
    _main(sys.argv[1:])
