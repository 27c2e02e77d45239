"""Partial matches on the command line: the rows that a recognizer gives, in this process and on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import estero
from estero.cli.commands import app
from estero.testing import events

QUERY = """
    SELECT visit[user], pay[user], count(pay) AS paid WHERE visit ; basket ; pay
    PARTITION BY user WITHIN 1 HOUR
"""
SHOP = events("""
    visit(user=1)@0m visit(user=2)@1m basket(user=1)@2m visit(user=3)@3m pay(user=1)@5m basket(user=2)@6m
    visit(user=4)@3h
""")
STEPS = [(1, 3, True), (2, 2, False), (3, 1, False)]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    pq.write_table(SHOP, tmp_path / "shop.parquet")
    (tmp_path / "shop.ceql").write_text(QUERY)
    return tmp_path


def rows(shop: Path, *options: str) -> list[dict[str, Any]]:
    """What `estero run --partials` writes."""
    asked = [shop / "shop.ceql", "--events", shop / "shop.parquet", "--type", "type", "--time", "time"]
    result = CliRunner().invoke(app, ["run", *map(str, asked), "--format", "jsonl", "--partials", *options])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def steps(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((each["user"], each["steps"], each["complete"]) for each in found)


def test_they_are_given_in_this_process(shop: Path) -> None:
    found = rows(shop, "--engine", "duckdb")
    assert steps(found) == STEPS
    assert sorted(len(each["labels"]["visit"]) for each in found) == [1, 1, 1]
    assert [each["paid"] for each in found if each["complete"]] == [1]
    assert [each["expired_time"] is None for each in found] == [each["complete"] for each in found]


def test_their_lines_may_have_positions_or_be_those_of_events(shop: Path) -> None:
    placed = rows(shop, "--positions")
    assert sorted((each["start"], each["steps"], each["labels"]["pay"]) for each in placed) == [
        (0, 3, [4]),
        (1, 2, []),
        (3, 1, []),
    ]
    marked = rows(shop, "--rows", "events")
    assert sorted((each["user"], each["label"]) for each in marked) == [
        (1, "pay"),
        (1, "visit"),
        (2, "visit"),
        (3, "visit"),
    ]


@pytest.mark.spark
def test_they_are_given_on_spark(shop: Path) -> None:
    assert steps(rows(shop, "--engine", "spark")) == STEPS


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["type", "event.kind"])
def test_a_stream_gives_them_too(shop: Path, kind: str) -> None:
    """Also where the type is a field of a struct, and its checkpoint is for streams with them alone."""
    (shop / "events").mkdir()
    table = SHOP
    if kind != "type":
        inside = pa.StructArray.from_arrays([SHOP["type"].combine_chunks()], ["kind"])
        table = SHOP.drop_columns("type").append_column("event", inside)
    pq.write_table(table, shop / "events" / "shop.parquet")
    asked = ["--from", f"parquet:{shop}/events", "--to", f"json:{shop}/found", "--trigger", "available-now"]
    asked += ["--type", kind, "--time", "time", "--checkpoint", f"{shop}/state"]
    asked += ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    result = CliRunner().invoke(app, ["stream", str(shop / "shop.ceql"), *asked, "--partials"])
    assert result.exit_code == 0, result.output
    lines = [line for file in (shop / "found").glob("*.json") for line in file.read_text().splitlines()]
    assert steps(list(map(json.loads, lines))) == STEPS
    other = CliRunner().invoke(app, ["stream", str(shop / "shop.ceql"), *asked])
    assert other.exit_code != 0
    assert "this checkpoint has another kind of rows" in other.output


def test_a_run_gives_what_a_recognizer_gives() -> None:
    query = estero.query(QUERY)
    answer = query.run(SHOP, type="type", time="time", partials=True)
    recognizer = query.recognizer(SHOP.schema, type="type", time="time", partials=True)
    pushed = [*recognizer.push(SHOP).to_dicts(), *recognizer.close().to_dicts()]
    assert answer.schema == recognizer.schema
    assert sorted(map(repr, answer.to_dicts())) == sorted(map(repr, pushed))
    assert answer.count() == len(pushed) == 3
    assert [each.end for each in answer] == sorted(each["end"] for each in pushed)
    assert answer.undecided() == 0
    with pytest.raises(ValueError, match="ask the answer without partials"):
        answer.funnel()
    later = query.run(SHOP, type="type", time="time", partials=True, until="end")
    assert steps(later.to_dicts()) == [*STEPS, (4, 1, False)]


def test_a_query_without_levels_is_refused_at_once() -> None:
    with pytest.raises(estero.QueryError, match="WITHIN"):
        estero.query("SELECT * WHERE visit ; pay").run(SHOP, type="type", time="time", partials=True)
