"""A set of rules on a stream: the answers of this process, cut into micro-batches and begun again anywhere."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import estero
from estero.queries.rules.rule_directory import version_of
from estero.recognize.rules import dispatch
from estero.spark import recognize
from estero.spark.batch import rules as in_batches
from estero.spark.failures import readable
from spark.streams import files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}
SCHEMA = "kind STRING, t BIGINT, n BIGINT, m BIGINT, x BIGINT"
KEYED = "SELECT * WHERE A AS a ; B AS b FILTER b[x > {}] PARTITION BY n WITHIN 9 SECONDS"
RULES = {
    "low": KEYED.format(1),
    "joined": "SELECT * WHERE A AS a ; B AS b FILTER a.n = b.m WITHIN 8 SECONDS",
    "high": KEYED.format(5),
    "short": "SELECT MAX * WHERE A AS a ; B AS b WITHIN 4 SECONDS",
    "long": "SELECT * WHERE A AS a ; C AS c WITHIN 7 SECONDS",
    "few": "SELECT * WHERE A AS a ; C AS c WITHIN 5 EVENTS",
    "direct": "SELECT * WHERE A AS a : B AS b PARTITION BY n",
    "absent": "SELECT * WHERE B AS b ; NOT(C) FOR 2 SECONDS PARTITION BY n",
}


def events(number: int = 120, seed: int = 1) -> pa.Table:
    """Events in order, of which many have the time of the one before."""
    draw = random.Random(seed)
    time, rows = 0, []
    for _ in range(number):
        time += draw.choice([0, 1, 1, 3])
        numbers = {"n": draw.randrange(3), "m": draw.randrange(3), "x": draw.randrange(9)}
        rows.append({"kind": draw.choice("ABCD"), "t": time, **numbers})
    return pa.Table.from_pylist(rows)


def stream(spark: SparkSession, place: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(place.as_uri())


def run(found: DataFrame, checkpoint: Path) -> pa.Table:
    """The rows of a stream until its source has no more files."""
    tables: list[pa.Table] = []
    sink = found.writeStream.foreachBatch(lambda batch, _: tables.append(batch.toArrow()))
    query = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return pa.concat_tables(tables)


def as_rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize("dispatched", [False, True])
def test_rows_are_those_of_this_process_stopped_between_micro_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dispatched: bool
) -> None:
    if dispatched:
        monkeypatch.setattr(dispatch, "FEWEST", 1)
        monkeypatch.setattr(in_batches, "MANY", 1)
    table, rules = events(), estero.rules(RULES)
    last = table.column("t")[-1].as_py()
    files(table.slice(0, 70), tmp_path / "in", [25])
    parts = [run(recognize(stream(spark, tmp_path / "in"), rules, **LAYOUT), tmp_path / "state")]
    files(table.slice(70), tmp_path / "in", [20], first=10)
    parts.append(run(recognize(stream(spark, tmp_path / "in"), rules, **LAYOUT), tmp_path / "state"))
    right = rules.run(table, **LAYOUT, until=last)
    assert min(right.counts().values()) > 0
    assert all(part.num_rows for part in parts)
    found = pa.concat_tables(parts)
    assert found.schema.names == right.schema.names
    assert as_rows(found) == as_rows(right.to_arrow())


def write(directory: Path, **rules: str) -> None:
    directory.mkdir(exist_ok=True)
    for name, text in rules.items():
        (directory / f"{name}.ceql").write_text(text, encoding="utf-8")


def test_rules_in_a_directory_come_change_and_go_while_the_stream_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, place = events(), tmp_path / "in"
    cuts = [0, 40, 80, table.num_rows]
    parts = [table.slice(first, last - first) for first, last in itertools.pairwise(cuts)]
    rules = {name: RULES[name] for name in ("low", "joined", "absent")}
    later = {"joined": RULES["joined"], "few": RULES["few"], "absent": RULES["long"]}
    write(tmp_path / "rules", **rules)
    rows = []
    for number, part in enumerate(parts):
        if number == 1:
            (tmp_path / "rules" / "low.ceql").unlink()
            write(tmp_path / "rules", **later, broken="SELECT * WHERE (", unfit="SELECT * WHERE A FILTER A[zz > 1]")
        files(part, place, [25], first=10 * number)
        found = recognize(stream(spark, place), tmp_path / "rules", **LAYOUT)
        rows.append(run(found, tmp_path / "state"))
    recognizer = estero.rules(rules).recognizer(table.schema, **LAYOUT)
    right = []
    for number, part in enumerate(parts):
        if number == 1:
            recognizer.remove("low")
            recognizer.replace("absent", later["absent"])
            recognizer.add("few", later["few"])
        pushed = recognizer.push(part).to_arrow()
        passed = recognizer.advance(part.column("t")[-1].as_py()).to_arrow()
        right.append(pa.concat_tables([pushed, passed]))
    names = [set(part.column("rule").to_pylist()) for part in right]
    assert names == [set(rules), set(later), set(later)]
    assert [as_rows(part.drop_columns("version")) for part in rows] == [as_rows(part) for part in right]
    versions = [set(part.column("version").to_pylist()) for part in rows]
    assert versions == [{version_of(rules)}, {version_of(later)}, {version_of(later)}]
