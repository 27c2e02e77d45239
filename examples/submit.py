"""A job for ``spark-submit``: a query over Parquet files, its complex events as Parquet files.

    spark-submit --master spark://host:7077 examples/submit.py \
        --events events/ --query query.ceql --type kind --time ts --out matches/

The session is the one that spark-submit starts; docs/cluster.md says how its executors get Estero. They read
and write the events, so the paths have to be ones that all of them see.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from estero.spark import recognize


def main() -> None:
    """Runs the query of a file over the events of a directory."""
    words = argparse.ArgumentParser(description="Complex event recognition as a job on a cluster.")
    words.add_argument("--events", required=True, help="Parquet files")
    words.add_argument("--query", required=True, type=Path, help="a file with a query, on the driver")
    words.add_argument("--type", help="the column with the event type")
    words.add_argument("--time", help="the time column")
    words.add_argument("--out", required=True, help="where the complex events go, as Parquet files")
    asked = words.parse_args()
    spark = SparkSession.builder.appName("estero").getOrCreate()
    events = spark.read.parquet(asked.events)
    matches = recognize(events, asked.query.read_text(), type=asked.type, time=asked.time)
    matches.write.mode("overwrite").parquet(asked.out)
    spark.stop()


if __name__ == "__main__":
    main()
