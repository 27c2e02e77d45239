"""Kernels that are compiled ahead: whoever has them compiles nothing, and each is there once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import estero

SEVERAL_KINDS = {
    "run_pcea.advance_pcea": 4,
    "run_chain.advance_chain": 2,
    "paths.walk_paths": 2,
    "lists.walk_chains": 2,
    "products.walk_products": 2,
}
"""Kernels that leave out what is not asked for: an order, partitions that forget, a part of an answer."""

QUERIES = """
import sys

import numpy as np
import pyarrow as pa
from numba.core import event

import estero


class Compiled(event.Listener):
    def on_start(self, event):
        print(event.data["dispatcher"])

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
draw = np.random.default_rng(2)
size = 3_000
kinds = np.array(list("PQRS"))[draw.integers(0, 4, size)]
events = pa.table({"kind": kinds, "n": draw.integers(0, 20, size), "o": draw.integers(0, 20, size)})
for text in sys.stdin.read().splitlines():
    query = estero.query(text)
    answer = query.run(events, type="kind")
    answer.count()
    answer.limit(2_000).to_arrow()
    answer.sample(2, seed=1).to_arrow()
    recognizer = query.recognizer(events.schema, type="kind")
    recognizer.push(events.slice(0, 500)).count()
    estero.restore(query, recognizer.snapshot()).push(events.slice(500, 500)).limit(10).to_arrow()
"""

TEXTS = """\
SELECT * WHERE P ; Q ; R
SELECT p WHERE P AS p : Q PARTITION BY [n] WITHIN 9 EVENTS
SELECT * WHERE P ; (Q OR R)+ ; S WITHIN 7 EVENTS CONSUME BY ANY
SELECT * WHERE P ;[2 EVENTS .. 9 EVENTS] Q ;[NOT P] R PARTITION BY [n]
SELECT LAST * WHERE P ; Q+ ; R WITHIN 30 EVENTS
SELECT MAX * WHERE P+ ; S WITHIN 30 EVENTS
SELECT LONGEST * WHERE P ; Q+ ; R WITHIN 30 EVENTS
SELECT SHORTEST DISJOINT * WHERE P+ ; S PARTITION BY [n] WITHIN 30 EVENTS LIMIT 1
SELECT * WHERE P AS p ; Q+ ; R AS r FILTER p.n > r.n WITHIN 9 EVENTS
SELECT LAST * WHERE P AS p ; Q AS q FILTER p.n = q.n WITHIN 9 EVENTS
SELECT * WHERE P AS p ; Q AS q ; R AS r FILTER p.n != q.n AND q.o = r.o
SELECT * WHERE P AS p ; Q AS q FILTER p.n = q.n AND p.o >= q.o WITHIN 99 EVENTS
SELECT * WHERE P+ AS p ; S FILTER decreasing(p.n) WITHIN 20 EVENTS
SELECT * WHERE P AS p ALL Q AS q ALL R AS r FILTER p.n = q.n AND q.n = r.n WITHIN 99 EVENTS
SELECT * WHERE P AS p ; Q AS q FILTER p.n < q.n PARTITION BY [o] WITHIN 9 EVENTS CONSUME BY PARTITION
"""


def _ran(*arguments: str, given: str = "", **variables: str) -> str:
    """What a program prints that imports Estero from here."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "ESTERO_COMPILE": "first", **variables}
    program = [sys.executable, *arguments]
    ran = subprocess.run(program, input=given, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_queries_of_all_plans_compile_nothing_that_is_not_there(tmp_path: Path) -> None:
    directory = tmp_path / "kernels"
    _ran("-c", "from estero.cli import main; main()", "warm", "--to", str(directory))
    kernels = [file.name.split("-")[0] for file in directory.rglob("*.nbc")]
    kinds = {name: count for name, count in Counter(kernels).items() if count > 1}
    assert kinds == SEVERAL_KINDS
    assert _ran("-c", QUERIES, given=TEXTS, ESTERO_CACHE=str(directory)) == ""
    assert len(list(directory.rglob("*.nbc"))) == len(kernels)


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        estero.warm(tmp_path / "file" / "kernels")


def test_processes_that_compile_nothing_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(RuntimeError, match="19 of 19 parts were not compiled"):
        estero.warm(tmp_path)
