"""A set of rules on a stream: the answers of this process, cut into micro-batches and stopped between."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError
from estero.events.scan import Scan
from estero.events.streams.stream_layout import layout_of
from estero.queries.rules.rule_texts import version_of
from estero.recognize.rules.conditions import dispatch
from estero.spark import recognize
from estero.spark.batch import rules as in_batches
from estero.spark.streams.bucket import FORMAT, refuse_other
from estero.spark.streams.kept import Kept
from estero.spark.streams.rule_source import Versions
from spark.frames import in_any_order, with_events
from spark.streams import files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}
SCHEMA = "kind STRING, t BIGINT, n BIGINT, m BIGINT, x BIGINT, id BIGINT"
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
    time, rows = 0, list[dict[str, Any]]()
    for _ in range(number):
        time += draw.choice([0, 1, 1, 3])
        numbers = {"n": draw.randrange(3), "m": draw.randrange(3), "x": draw.randrange(9)}
        rows.append({"kind": draw.choice("ABCD"), "t": time, **numbers, "id": 3 * len(rows)})
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


@pytest.mark.parametrize(
    ("dispatched", "how"), [(False, {}), (True, {"positions": False, "partitions": 3, "order": ["id"]})]
)
def test_rows_are_those_of_this_process_stopped_between_micro_batches(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    dispatched: bool,
    how: dict[str, Any],
) -> None:
    if dispatched:
        monkeypatch.setattr(dispatch, "FEWEST", 1)
        monkeypatch.setattr(in_batches, "MANY", 1)
    table, rules = events(), estero.rules(RULES)
    last = table.column("t")[-1].as_py()
    files(table.slice(0, 70), tmp_path / "in", [25])
    parts = [run(recognize(stream(spark, tmp_path / "in"), rules, **LAYOUT, **how), tmp_path / "state")]
    files(table.slice(70), tmp_path / "in", [20], first=10)
    parts.append(run(recognize(stream(spark, tmp_path / "in"), rules, **LAYOUT, **how), tmp_path / "state"))
    right = rules.run(table, **LAYOUT, until=last)
    assert min(right.counts().values()) > 0
    assert all(part.num_rows for part in parts)
    found = pa.concat_tables(parts)
    expected = right.to_arrow().to_pylist()
    if how:
        expected = [with_events(row, table.to_pylist(), ("t", "id")) for row in expected]
    assert found.schema.names == list(expected[0])
    assert in_any_order(found.to_pylist()) == in_any_order(expected)


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
    files(parts[0], place, [25])
    found = recognize(stream(spark, place), tmp_path / "rules", **LAYOUT)
    sink = found.writeStream.option("checkpointLocation", str(tmp_path / "state"))
    tables: list[pa.Table] = []
    query = sink.foreachBatch(lambda batch, _: tables.append(batch.toArrow())).start()
    query.processAllAvailable()
    rows = [pa.concat_tables(tables)]
    tables.clear()
    (tmp_path / "rules" / "low.ceql").unlink()
    broken = {"broken": "SELECT * WHERE (", "unfit": "SELECT * WHERE A FILTER A[zz > 1]"}
    write(tmp_path / "rules", **later, **broken)
    files(parts[1], place, [25], first=10)
    query.processAllAvailable()
    query.stop()
    rows.append(pa.concat_tables(tables))
    files(parts[2], place, [25], first=20)
    rows.append(run(recognize(stream(spark, place), tmp_path / "rules", **LAYOUT), tmp_path / "state"))
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


def test_rules_in_a_table_of_the_catalog_change_and_begin_with_a_replay(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, name = events(), "rules_that_change"
    parts = [table.slice(0, 70), table.slice(70)]
    first = {"joined": RULES["joined"], "long": RULES["long"]}
    later = {"joined": RULES["joined"], "low": RULES["low"], "direct": RULES["direct"]}
    rows = spark.createDataFrame([*first.items(), ("broken", "SELECT")], "name STRING, query STRING")
    rows.coalesce(1).write.option("path", str(tmp_path / "rules")).saveAsTable(name)
    how = {**LAYOUT, "keep": "9 seconds"}
    found = list[pa.Table]()
    for number, part in enumerate(parts):
        if number == 1:
            changed = spark.createDataFrame([*later.items()], "name STRING, query STRING")
            changed.coalesce(1).write.insertInto(name, overwrite=True)
        files(part, tmp_path / "in", [25], first=10 * number)
        stream_of_rules = recognize(stream(spark, tmp_path / "in"), estero.rule_table(name), **how)
        found.append(run(stream_of_rules, tmp_path / "state"))
    spark.sql(f"DROP TABLE {name}")
    recognizer = estero.rules(first).recognizer(table.schema, **how)
    right = list[pa.Table]()
    for number, part in enumerate(parts):
        if number == 1:
            recognizer.remove("long")
            recognizer.add("low", later["low"], replay=True)
            recognizer.add("direct", later["direct"])
        pushed = recognizer.push(part).to_arrow()
        passed = recognizer.advance(part.column("t")[-1].as_py()).to_arrow()
        right.append(pa.concat_tables([pushed, passed]))
    assert [as_rows(part.drop_columns("version")) for part in found] == [as_rows(part) for part in right]
    began = [row for row in right[1].to_pylist() if row["rule"] == "low" and row["start"] < 70]
    assert began, "some complex events began before their rule came"
    versions = [set(part.column("version").to_pylist()) for part in found]
    assert versions == [{version_of(first)}, {version_of(later)}]


def test_a_checkpoint_of_other_rules_is_refused_by_name() -> None:
    query, other = {"format": FORMAT, "query": "2 rules", "plan": "", "buckets": 1}, "an_other"
    header = json.dumps({**query, "rules": {"low": "one", "high": "two"}})
    refuse_other(header, header)
    for rules, said in (
        ({"low": "one"}, "the checkpoint has the rule 'high', and the set does not"),
        ({"low": "one", "high": other}, "the rule 'high' has another query than in the checkpoint"),
        ({"low": "one", "high": "two", "new": ""}, "the set has the rule 'new', and the checkpoint does not"),
    ):
        with pytest.raises(DataError, match=f"^{said}"):
            refuse_other(header, json.dumps({**query, "rules": rules}))


def test_rules_that_are_wrong_are_refused_in_the_log_and_a_changed_one_stays_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "rules"
    write(directory, low=RULES["low"], unfit="SELECT * WHERE A FILTER A[zz > 1]")
    layout = layout_of(Scan.of(events(1).schema, **LAYOUT))
    versions = Versions.read(Versions.options(directory, layout))
    first = versions.after({"version": "", "rules": ""})
    assert json.loads(first["rules"]) == {"low": RULES["low"]}
    assert first["version"] == version_of({"low": RULES["low"]})
    assert ["unfit" in record.message for record in caplog.records] == [True]
    write(directory, low="SELECT * WHERE A FILTER A[missing > 1]", high=RULES["high"])
    changed = versions.after(first)
    assert json.loads(changed["rules"]) == {"low": RULES["low"], "high": RULES["high"]}
    assert versions.after(changed) == changed
    shutil.rmtree(directory)
    assert versions.after(changed) == changed


def test_what_has_written_a_state_is_kept_once() -> None:
    kept = Kept(2)
    for number in range(3):
        assert kept.keep(bytes([number]), number) == bytes([number])
    assert [kept.taken(bytes([number])) for number in (0, 1, 2, 2)] == [None, 1, 2, None]
