"""What the tests of this room share: events as DataFrames, and answers in the form of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from estero.answers.answer import Answer
from estero.language.tree.query import QueryTree
from estero.plan.plan import Plan
from estero.reference.queries import Event, is_answer
from estero.spark.batch.batch import recognize_frame
from estero.spark.work import Work
from laws.evaluators import by_end, planned
from strategies.patterns import TICK, from_table, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]


def parquet_frame(spark: SparkSession, table: pa.Table, place: Path) -> DataFrame:
    """The table in a Parquet file with many row groups, scanned by Spark."""
    pa.parquet.write_table(table, place, row_group_size=max(1, table.num_rows // 10))
    return spark.read.parquet(place.as_uri())


def answer_batches(
    found: DataFrame, plan: Plan, events: DataFrame, *, positions: bool
) -> list[pa.RecordBatch]:
    """The rows that Spark found, as batches of the answer's own schema (which names the labels)."""
    schema = Work.of(events.schema, plan, positions=positions).answer
    table = found.toArrow()
    columns = [table.column(field.name).cast(field.type) for field in schema]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays(columns, schema=schema).to_batches()
    return batches


def as_the_reference_says(
    spark: SparkSession, tree: QueryTree, stream: Sequence[Event], seed: int, **how: Any
) -> bool:
    """Whether Spark finds, of events that arrive in any order, what the reference semantics say.

    `how` is what `recognize_frame` takes besides.
    """
    arrived = list(stream)
    random.Random(seed).shuffle(arrived)
    in_stream_order = sorted(arrived, key=lambda event: event.time or 0)
    table = to_table(arrived)
    plan = planned(tree, table).plan
    df = spark.createDataFrame(table)
    found = recognize_frame(df, plan, positions=True, **how)
    answer = by_end(answer_batches(found, plan, df, positions=True))
    return is_answer(tree, from_table(to_table(in_stream_order)), answer, tick=TICK)


def as_in_process(spark: SparkSession, tree: QueryTree, stream: Sequence[Event], **how: Any) -> bool:
    """Whether Spark finds the rows that one process finds, positions apart."""
    table = to_table(stream)
    run = planned(tree, table)
    df = spark.createDataFrame(table)
    found = answer_batches(recognize_frame(df, run.plan, **how), run.plan, df, positions=False)
    rows = [row for batch in found for row in batch.to_pylist()]
    return in_any_order(rows) == in_any_order(without_positions(Answer(run).to_arrow().to_pylist()))


def without_positions(rows: Sequence[Row]) -> list[Row]:
    """Rows of the public table as they are where nobody asked for positions."""
    return [_without_positions(row) for row in rows]


def _without_positions(row: Row) -> Row:
    kept = {name: value for name, value in row.items() if name not in ("start", "end")}
    return {name: _events_without_positions(value) for name, value in kept.items()}


def _events_without_positions(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{name: item for name, item in event.items() if name != "position"} for event in value]


def with_events(row: Row, events: Sequence[Row], shown: Sequence[str]) -> Row:
    """A row of the common table of rules with these columns of its events in the place of positions."""
    kept = {name: value for name, value in row.items() if name not in ("start", "end", "positions")}
    labels = [
        (label, [{name: events[place][name] for name in shown} for place in places])
        for label, places in row["positions"]
    ]
    return {**kept, "events": labels}


def in_any_order(rows: Sequence[Row]) -> list[str]:
    """Rows for comparison as a multiset; `repr` because NaN is not equal to itself."""
    return sorted(map(repr, rows))
