"""From a batch of past events to a stream: nothing is missing, and nothing is there twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError
from estero.spark import recognize
from spark.frames import in_any_order, with_events, without_positions
from spark.streams import files
from spark.test_rules_on_streams import LAYOUT, RULES, SCHEMA, events, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONGEST = "SELECT LONGEST a, b WHERE A AS a ; B+ AS b PARTITION BY n WITHIN 9 SECONDS"
"""What is given for a start is decided by what comes after it."""
QUERIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a query": (estero.query(LONGEST), {"partitions": 3, "lateness": "2 seconds"}),
    "rules": (estero.rules(RULES), {"positions": False, "partitions": 3, "order": ["id"]}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_goes_on_where_the_past_ends(spark: SparkSession, tmp_path: Path, name: str) -> None:
    query, how = QUERIES[name]
    table = events()
    last = table.column("t")[-1].as_py() + 100
    end = pa.Table.from_pylist([{"kind": "D", "t": last, "n": 9, "m": 9, "x": 9, "id": 9}], table.schema)
    past, live = table.slice(0, 70), pa.concat_tables([table.slice(70), end])
    files(past, tmp_path / "past", [40])
    files(live, tmp_path / "live", [20])
    history = spark.read.schema(SCHEMA).parquet(str(tmp_path / "past"))
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "live"))
    with pytest.raises(DataError, match=r"^there is no state at .*state"):
        recognize(stream, query, **LAYOUT, **how, state=tmp_path / "state")
    before = recognize(history, query, **LAYOUT, **how, state=tmp_path / "state").toArrow()
    after = run(recognize(stream, query, **LAYOUT, **how, state=tmp_path / "state"), tmp_path / "checkpoint")
    everything = pa.concat_tables([table, end])
    if name == "rules":
        right = query.run(everything, **LAYOUT, until=last).to_arrow().to_pylist()
        expected = [with_events(row, everything.to_pylist(), ("t", "id")) for row in right]
    else:
        expected = without_positions(query.run(everything, **LAYOUT).to_arrow().to_pylist())
    assert before.num_rows
    assert after.num_rows
    found = pa.concat_tables([before, after]).to_pylist()
    assert in_any_order(found) == in_any_order(expected)
    with pytest.raises(DataError, match=r"^the state cannot be written to .*state"):
        recognize(history, query, **LAYOUT, **how, state=tmp_path / "state")
