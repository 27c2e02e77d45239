"""``python -m connectors.delta_rules PLACE JARS``: a stream whose rules are in a table of Delta."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import estero
from estero.queries.rules.rule_texts import version_of
from estero.spark import recognize
from spark import stopped_stream
from spark.streams import files, timed_events

NAME = "rules_in_delta"
HOW: dict[str, Any] = {"type": "type", "time": "ts", "keep": "9 seconds"}
PAIR = "SELECT a[n], b[n] WHERE A AS a ; B AS b {} WITHIN {} SECONDS"
SHARED, CHANGED = PAIR.format("PARTITION BY [k]", 40), PAIR.format("FILTER b[n > 90]", 3)
RULES = [
    {"shared": SHARED, "changed": PAIR.format("FILTER a[k < 9]", 3), "gone": PAIR.format("", 2)},
    {"shared": SHARED, "changed": CHANGED, "new": "SELECT a[n] WHERE A AS a : A WITHIN 8 SECONDS"},
    {"shared": SHARED, "changed": CHANGED},
]
"""The rules of each part of the stream."""
CHANGES = [
    f"DELETE FROM {NAME} WHERE name IN ('gone', 'changed')",
    f"INSERT INTO {NAME} VALUES ('changed', '{CHANGED}'), ('new', '{RULES[1]['new']}'), ('broken', 'SELECT')",
]
Found = list[tuple[str, str]]


def parts() -> list[pa.Table]:
    """The events, by the rules that see them."""
    table = timed_events()
    return [table.slice(0, 80), table.slice(80, 60), table.slice(140)]


def flow(place: Path, jars: str) -> Found:
    """The answers of the stream, with the versions of their rules.

    Between its first two parts the rules change while it runs. Then it fails as it writes what it has found
    with these; the rules change once more, and it is started anew.
    """
    spark = stopped_stream.session("delta", jars)
    found: dict[int, pa.Table] = {}
    failed = list[int]()

    def write(batch: Any, number: int) -> None:
        table = batch.toArrow()
        found[number] = table
        if not failed and version_of(RULES[1]) in table.column("version").to_pylist():
            failed.append(number)
            raise RuntimeError("killed")

    def started(**trigger: Any) -> Any:
        schema = "type STRING, ts TIMESTAMP, k BIGINT, n BIGINT"
        events = spark.readStream.schema(schema).parquet(f"{place}/events")
        rows = recognize(events, estero.rule_table(NAME), **HOW).writeStream.foreachBatch(write)
        return rows.option("checkpointLocation", f"{place}/state").trigger(**trigger).start()

    rows = spark.createDataFrame([*RULES[0].items()], "name STRING, query STRING").coalesce(1)
    table = rows.write.format("delta").option("path", f"{place}/rules")
    table.option("delta.checkpointInterval", "2").saveAsTable(NAME)
    first, second, third = parts()
    files(first, place / "events", [])
    query = started(processingTime="0 seconds")
    query.processAllAvailable()
    for change in CHANGES:
        spark.sql(change)
    query.processAllAvailable()  # no event is seen with rules that are changed by halves
    files(second, place / "events", [], first=1)
    try:
        query.processAllAvailable()
    except Exception as error:
        if "killed" not in str(error):
            raise
    spark.sql(f"DELETE FROM {NAME} WHERE name IN ('new', 'broken')")
    files(third, place / "events", [], first=2)
    started(availableNow=True).awaitTermination()
    assert failed, "the stream did not fail"
    return [row for number in sorted(found) for row in _told(found[number])]


def right() -> Found:
    """What a recognizer finds whose rules change as they do."""
    recognizer = estero.rules(RULES[0]).recognizer(timed_events().schema, **HOW)
    told: Found = []
    for rules, part in zip(RULES, parts(), strict=True):
        for name in set(recognizer.names) - set(rules):
            recognizer.remove(name)
        for name, text in rules.items():
            if name not in recognizer.names:
                recognizer.add(name, text, replay=True)
            elif rules is RULES[1] and name == "changed":
                recognizer.replace(name, text, replay=True)
        pushed = recognizer.push(part).to_arrow()
        passed = recognizer.advance(part.column("ts")[-1].as_py()).to_arrow()
        rows = pa.concat_tables([pushed, passed])
        versions = pa.array([version_of(rules)] * rows.num_rows, pa.string())
        told += _told(rows.append_column("version", versions))
    return told


def _told(table: pa.Table) -> Found:
    """The rows, each with its version behind it."""
    rows = table.drop_columns("version").to_pylist()
    versions = table.column("version").to_pylist()
    return sorted((repr(tuple(row.values())), version) for row, version in zip(rows, versions, strict=True))


if __name__ == "__main__":
    json.dump(flow(Path(sys.argv[1]), sys.argv[2]), sys.stdout)
