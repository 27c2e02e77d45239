"""What is loaded where a plan has crossed to another process, as to a worker of Spark: what recognizes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import estero
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout

QUERIES = {
    "automaton": "SELECT * WHERE A AS a ; B AS b FILTER a[k > 0] WITHIN 3 EVENTS",
    "registers": "SELECT * WHERE A AS a ; B+ ; C AS c FILTER a.k = c.k WITHIN 12 EVENTS",
}

WORKER = """
import pickle, sys
import pyarrow as pa
import estero.spark.work
plan, schema, batch = pickle.load(open(sys.argv[1], "rb"))
from estero.recognize.recognition import Recognition
with pa.ipc.open_stream(batch) as batches:
    print(sum(1 for _ in Recognition(plan, schema).push(batches.read_next_batch())) > 0)
print([name for name in ("duckdb", "sqlglot", "lark", "pandas", "estero.plan.draft") if name in sys.modules])
"""


@pytest.mark.parametrize("name", QUERIES)
def test_a_worker_loads_neither_sql_nor_what_plans_are_made_with(tmp_path: Path, name: str) -> None:
    events = pa.table({"kind": ["A", "B", "C"], "k": [1, 1, 1]})
    with (
        pa.OSFile(str(tmp_path / "events.arrow"), "wb") as file,
        pa.ipc.new_file(file, events.schema) as writer,
    ):
        writer.write_table(events)
    source = open_source(str(tmp_path / "events.arrow"), EventLayout.of("kind", None))
    plan = estero.query(QUERIES[name]).plan(source.layout)
    schema = source.classified_schema(plan.classification)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in source.read(plan.classification):
            writer.write_batch(batch)
    (tmp_path / "work").write_bytes(pickle.dumps((plan, schema, sink.getvalue().to_pybytes())))
    program = [sys.executable, "-c", WORKER, str(tmp_path / "work")]
    ran = subprocess.run(program, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n[]\n"
