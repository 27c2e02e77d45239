"""Partial matches on Spark whose events share a key by equalities: beside one ordered task that has all.

    python -m benchmarks.partials_by_keys [events] [keys]

`a ; b ; c FILTER x.k = y.k AND y.k = z.k` in ``local[2]``, from Parquet to rows written nowhere. Over
3,000 events the rows of both ways must be those of this process. Seconds by the clock, the best of two.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import estero
from benchmarks.partials import CHECKED, stream
from benchmarks.spark_batch import seconds, thrown_away
from estero.language.tree.schema import EventLayout
from estero.plan.levels import partials_plan
from estero.plan.shared_by_levels import with_shared_key
from estero.spark import local_session
from estero.spark.batch.batch import recognize_frame
from estero.spark.work import layout_of_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW_OF_KEYS = 10
"""So many events of a key are in a window."""
QUERY = (
    "SELECT x[time], y[time], z[time] WHERE a AS x ; b AS y ; c AS z FILTER x.k = y.k AND y.k = z.k "
    "WITHIN {} [time]"
)


def rows_of(df: DataFrame, window: int, *, by_keys: bool) -> DataFrame:
    """The complex events and partial matches of a frame, in one of the ways."""
    layout = layout_of_schema(df.schema, EventLayout.of(type="type", time="time"))
    plan = partials_plan(estero.query(QUERY.format(window)).plan(layout).tree, layout, as_written=True)
    return recognize_frame(df, with_shared_key(plan, layout) if by_keys else plan)


def rows(given: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """How often there is a row with such times, and so many steps."""
    return Counter((row["start_time"], row["end_time"], row["steps"]) for row in given)


def check(spark: SparkSession, keys: int) -> None:
    """Raises AssertionError unless both ways give the rows of this process."""
    table, window = stream(CHECKED, keys), 300
    asked = estero.query(QUERY.format(window)).run(table, type="type", time="time", partials=True)
    wanted = rows(asked.to_arrow().to_pylist())
    for by_keys in (False, True):
        given = rows_of(spark.createDataFrame(table), window, by_keys=by_keys).collect()
        if rows(row.asDict() for row in given) != wanted or len({steps for *_, steps in wanted}) != len(
            "abc"
        ):
            raise AssertionError(f"other rows, by keys: {by_keys}")


def main(events: int, keys: int) -> None:
    """Prints a line for each way."""
    spark = local_session("local[2]")
    check(spark, 20)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "events.parquet")
        pq.write_table(stream(events, keys), file)
        df, window = spark.read.parquet(file), WINDOW_OF_KEYS * keys
        print(f"{events:,} events, {keys:,} keys, {rows_of(df, window, by_keys=True).count():,} rows")
        for by_keys in (False, True):
            taken = min(seconds(partial(thrown_away, rows_of(df, window, by_keys=by_keys))) for _ in range(2))
            print(f"{'tasks share k' if by_keys else 'one ordered task'}: {taken:.1f} s")


if __name__ == "__main__":
    given = [int(float(number)) for number in sys.argv[1:]]
    main(*(*given, *(2_000_000, 10_000)[len(given) :]))
