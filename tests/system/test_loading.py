"""What is loaded, and so waited for, where nothing asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

QUERY = "SELECT * WHERE A AS a ; B+ ; C AS c FILTER a.n = c.n WITHIN 12 EVENTS"


def loaded(program: str) -> set[str]:
    """The modules that a new process has after a program."""
    program += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
    return set(done.stdout.split())


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.arrow"
    table = pa.table({"type": ["A", "B", "C"], "n": [1, None, 1], "m": [0.5, None, 0.5]})
    with pa.OSFile(str(file), "wb") as opened, pa.ipc.new_file(opened, table.schema) as writer:
        writer.write_table(table)
    return file


@pytest.mark.parametrize(
    "query", ["SELECT * WHERE A ; B+ ; C", QUERY, QUERY.replace("n", "m"), "SELECT MAX * WHERE A ; B+ ; C"]
)
def test_a_query_over_a_table_does_not_load_pandas(events: Path, query: str) -> None:
    asked = f"""
import estero, pyarrow
table = pyarrow.ipc.open_file({str(events)!r}).read_all()
assert estero.query({query!r}).run(table, type="type").to_arrow().num_rows == 1
"""
    assert "pandas" in loaded("import pandas")
    assert "pandas" not in loaded(asked)


def test_a_query_loads_no_plan_that_cannot_serve_it(events: Path) -> None:
    run = f"""
import estero, pyarrow
table = pyarrow.ipc.open_file({str(events)!r}).read_all()
estero.query("SELECT * WHERE A ; B ; C").run(table, type="type").to_arrow()
"""
    others = {
        "estero.plan.joins",
        "estero.plan.chains",
        "estero.queries.conjunctive_statement",
        "estero.engine.runs.joined.run_chain",
        "estero.engine.runs.aged.run_aged",
        "estero.events.files.text_layout",
    }
    assert not others & loaded(run)


def test_a_query_and_its_explanation_load_no_theory(events: Path) -> None:
    run = f"""
import estero, pyarrow
table = pyarrow.ipc.open_file({str(events)!r}).read_all()
query = estero.query({QUERY!r})
assert query.run(table, type="type").to_arrow().num_rows == 1
assert "CEA" in str(query.explain(table, type="type"))
query.recognizer(table.schema, type="type").push(table)
"""
    theory = "estero.theory.equivalence"
    assert theory in loaded("import estero; estero.equivalent")
    assert not [name for name in loaded(run) if name.startswith("estero.theory")]


def test_workers_of_spark_load_no_sql() -> None:
    modules = "estero.spark.work, estero.spark.streams.stages, estero.recognize.recognition"
    found = loaded(f"import {modules}, estero.plan.opening")
    assert not {"sqlglot", "duckdb", "lark", "pandas", "pyspark"} & found
