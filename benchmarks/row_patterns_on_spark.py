"""``python -m benchmarks.row_patterns_on_spark``: V shapes on Spark, beside a sort of the rows.

MATCH_RECOGNIZE finds them. The sort brings the same columns of the same rows to as many tasks by the same
keys, sorts them there, and throws them away, as it is done with what is found. Before anything is timed, the
number of matches and sums over them are compared with those of this process. Prints JSON; ``--out`` writes it
to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import estero
import estero.spark
from benchmarks.spark_batch import COLLECTOR, MEMORY
from estero.spark.row_patterns import time_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_OVER_SORT = 3.0
KEYS = 1_000
COLUMNS = ("symbol", "ts", "price")
SHAPES = {
    "V": ("strt down+ up+", "PAST LAST ROW"),
    "V, sharing a row": ("strt down+ up+", "TO LAST up"),
    "W": ("strt down+ up+ down_again+ up_again+", "PAST LAST ROW"),
}
SUMS = "count(*) AS matches, sum(n) AS days, sum(bottom) AS bottoms"


def statement(shape: str, selected: str = "*", *, by_time: bool = False) -> str:
    """The statement that finds a shape, of each symbol; or `by_time` of all trades, within a second."""
    pattern, skip = SHAPES[shape]
    define = "down AS price < PREV(price), up AS price > PREV(price)"
    if "again" in pattern:
        define += ", down_again AS price < PREV(price), up_again AS price > PREV(price)"
    partition, window = ("", "WITHIN INTERVAL '1' SECOND") if by_time else ("PARTITION BY symbol", "")
    return f"""SELECT {selected} FROM trades MATCH_RECOGNIZE (
        {partition} ORDER BY ts
        MEASURES FIRST(ts) AS since, LAST(down.price) AS bottom, LAST(ts) AS until, count(*) AS n
        AFTER MATCH SKIP {skip} PATTERN ({pattern}) {window} DEFINE {define})"""


def write_trades(rows: int, path: Path) -> None:
    """A trade for each millisecond: symbols and prices by a hash of its number."""
    duckdb.connect().execute(
        f"COPY (SELECT (hash(i * 7 + 1) % {KEYS})::BIGINT AS symbol, "
        "make_timestamp(1700000000000000 + i * 1000) AS ts, (hash(i * 13 + 5) % 1000)::INT AS price, "
        f"i AS volume FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)"
    )


def check(spark: SparkSession, trades: DataFrame, shape: str, path: Path, *, by_time: bool = False) -> int:
    """The number of matches; raises where Spark finds other ones than this process."""
    text = statement(shape, SUMS, by_time=by_time)
    expected = tuple(map(int, estero.sql(text, trades=path).to_arrow().to_pylist()[0].values()))
    (row,) = estero.spark.sql(spark, text, trades=trades).collect()
    if tuple(map(int, row)) != expected or not expected[0]:
        raise ValueError(f"{shape}: Spark finds {tuple(row)}, this process {expected}")
    return expected[0]


def thrown_away(df: DataFrame) -> None:
    """Computes all rows of a frame."""
    df.write.format("noop").mode("overwrite").save()


def sorted_only(trades: DataFrame) -> None:
    """Sorts the rows by key and time in their tasks."""
    rows = trades.select(*COLUMNS).repartition("symbol").sortWithinPartitions("symbol", "ts")
    thrown_away(rows)


def without_keys(spark: SparkSession, trades: DataFrame, fewest_tasks: int) -> None:
    """Finds V shapes of all trades: in ranges of time, if at least so many tasks run at once."""
    usual, time_ranges.FEWEST_TASKS = time_ranges.FEWEST_TASKS, fewest_tasks
    try:
        thrown_away(estero.spark.sql(spark, statement("V", by_time=True), trades=trades))
    finally:
        time_ranges.FEWEST_TASKS = usual


def best_of(repeats: int, works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The shortest time of each work in seconds; they take turns, and have all run once before."""
    best = dict.fromkeys(works, float("inf"))
    for turn in range(repeats + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            if turn:
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


def measured(rows: int, repeats: int) -> dict[str, Any]:
    """What the page says: seconds of each shape, beside the sort."""
    spark = estero.spark.local_session(
        "local[2]", java_options=COLLECTOR, config={"spark.driver.memory": MEMORY}
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trades.parquet"
        write_trades(rows, path)
        trades = spark.read.parquet(str(path))
        counts = {shape: check(spark, trades, shape, path) for shape in SHAPES}
        frames = {shape: estero.spark.sql(spark, statement(shape), trades=trades) for shape in SHAPES}
        works: dict[str, Callable[[], None]] = {"sort": lambda: sorted_only(trades)}
        works |= {shape: partial(thrown_away, df) for shape, df in frames.items()}
        counts["V without keys"] = check(spark, trades, "V", path, by_time=True)
        works["ranges"] = partial(without_keys, spark, trades, 2)
        works["one task"] = partial(without_keys, spark, trades, 1 << 30)
        seconds = best_of(repeats, works)
    shapes = {
        shape: {
            "matches": counts[shape],
            "seconds": round(seconds[shape], 2),
            "over the sort": round(seconds[shape] / seconds["sort"], 2),
        }
        for shape in SHAPES
    }
    apart = {
        "matches": counts["V without keys"],
        "ranges of time": round(seconds["ranges"], 2),
        "one ordered task": round(seconds["one task"], 2),
    }
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "pyspark": version("pyspark")}
    return {
        **machine,
        "rows": rows,
        "keys": KEYS,
        "sort": round(seconds["sort"], 2),
        "shapes": shapes,
        "V without keys": apart,
    }


def main() -> None:
    """Measures, and says whether the target is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_patterns_on_spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    said = parser.parse_args()
    results = measured(said.rows, said.repeats)
    text = json.dumps(results, indent=2)
    sys.stdout.write(text + "\n")
    if said.out is not None:
        said.out.write_text(text + "\n")
    worst = max(shape["over the sort"] for shape in results["shapes"].values())
    sys.stdout.write(f"at most {MOST_OVER_SORT} times the sort: {worst}\n")


if __name__ == "__main__":
    main()
