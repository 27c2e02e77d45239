"""Directories that name columns, ``year=2024``, read by Spark with the types of the in-process engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from estero.classify.sql_texts import quoted
from estero.events.files.partitions import Partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
_TYPES = {"BIGINT": "bigint", "DATE": "date", "VARCHAR": "string"}


@contextmanager
def finding(spark: SparkSession, partitions: Partitions | None) -> Iterator[Callable[[], DataFrameReader]]:
    """A maker of readers that add the columns of `partitions`, as strings, while the block runs."""
    if partitions is None:
        yield lambda: spark.read
        return
    root = f"file://{Path(partitions.root).absolute()}"
    before = spark.conf.get(_INFERENCE)
    spark.conf.set(_INFERENCE, "false")
    try:
        yield lambda: spark.read.option("basePath", root)
    finally:
        spark.conf.set(_INFERENCE, before or "true")


def typed(frame: DataFrame, partitions: Partitions | None) -> DataFrame:
    """The frame with the columns of `partitions` in their types."""
    if partitions is None:
        return frame
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    types = {column.name: _TYPES[column.type] for column in partitions.columns if column.type != "VARCHAR"}
    columns = {name: F.col(quoted(name, mark="`")) for name in frame.columns}
    return frame.select(
        *(
            column.cast(types[name]).alias(name) if name in types else column
            for name, column in columns.items()
        )
    )
