"""Recognition through Spark Connect, in a process of its own: prints what is found, as JSON.

A process has either Spark Connect or a JVM of its own, so the tests start this one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import estero
import estero.spark
from estero.errors import DataError
from estero.spark import collect, count, recognize, register
from estero.spark.sessions.java import find_java_home

HOW: dict[str, Any] = {"type": "type", "time": "t"}
AFTER = "SELECT a, b WHERE A AS a ; B AS b"
ROWS = [("AB"[n % 2], n // 2, 7 if n % 5 else n % 3) for n in range(200)]
TASKS = [
    (AFTER, None),
    (f"{AFTER} PARTITION BY [k]", None),
    (f"{AFTER} PARTITION BY [k] WITHIN 9 [t]", 4),
    (f"{AFTER.replace(';', ':')} PARTITION BY [k] WITHIN 9 [t]", 4),
    (f"{AFTER} WITHIN 9 [t]", 3),
    (f"{AFTER} WITHIN 9 EVENTS", 3),
]
"""Queries whose work is shared among tasks in different ways, and among how many."""
ROW_PATTERN = """SELECT k, n FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY t, type
    MEASURES count(*) AS n PATTERN (a b) DEFINE a AS type = 'A', b AS type = 'B') ORDER BY k, n"""


def main() -> None:
    """Runs everything and prints it."""
    os.environ |= {
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "PYTHONPATH": str(Path(estero.__file__).parent.parent),
    }
    config = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.remote("local[2]")
    for name, value in config.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    df = spark.createDataFrame(ROWS, "type string, t bigint, k bigint")
    rows = [recognize(df, query, **HOW, partitions=tasks).count() for query, tasks in TASKS]
    counts = [count(df, query, **HOW, partitions=tasks) for query, tasks in TASKS[::2]]
    df.createOrReplaceTempView("events")
    register(spark)
    call = f"recognize(TABLE(events), '{TASKS[1][0]}', type => 'type', time => 't')"
    sql = spark.sql(f"SELECT * FROM {call}").count()
    matched = estero.spark.sql(spark, ROW_PATTERN).toArrow().to_pylist()
    timeless = spark.createDataFrame([("A", None)], "type string, t bigint")
    try:
        count(timeless, AFTER, **HOW)
        said = ""
    except DataError as error:
        said = str(error)
    collected = collect(recognize(df, TASKS[1][0], **HOW)).count()
    found = {"rows": rows, "counts": counts, "sql": sql, "collected": collected, "said": said}
    found["matched"] = matched
    sys.stdout.write(json.dumps(found) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
