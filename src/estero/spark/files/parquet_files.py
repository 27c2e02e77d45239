"""Parquet files as a DataFrame, including timestamps in nanoseconds, which Spark's own reader refuses.

pandas and Arrow write such files. Spark's timestamps are in microseconds, so a finer time is an error if it
is needed, and no time is truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from estero.classify.column_names import COLUMN
from estero.errors import DataError
from estero.events.files.partitions import Partitions
from estero.spark.failures import ILLEGAL_NANOSECONDS, NANOS_AS_INTEGERS
from estero.spark.files.partitions import finding, typed
from estero.spark.frames import positional

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FINER = "estero: a time has nanoseconds, and those of Spark end at microseconds: round it first"
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def parquet_frame(
    spark: SparkSession, files: Sequence[str], places: Sequence[str], partitions: Partitions | None = None
) -> DataFrame:
    """The rows of Parquet files; `places` are the paths of `files` for Spark.

    The columns of `partitions` come last, except those that the files have as well. Raises `DataError` for
    nanoseconds inside other values.
    """
    from pyspark.errors import AnalysisException

    with finding(spark, partitions) as reader:
        try:
            return typed(reader().parquet(*places), partitions)
        except AnalysisException as error:
            if ILLEGAL_NANOSECONDS not in str(error):
                raise
        return typed(_with_nanoseconds(spark, files[0], places, partitions), partitions)


def _with_nanoseconds(
    spark: SparkSession, file: str, places: Sequence[str], partitions: Partitions | None
) -> DataFrame:
    """The same for files with nanoseconds; another session finds the types of the other columns."""
    from pyspark.sql.types import LongType

    beside = spark.newSession()
    beside.conf.set(NANOS_AS_INTEGERS, "true")
    with finding(beside, partitions) as reader:
        schema = reader().parquet(*places).schema
    kinds = {field.name: field.type for field in pq.read_schema(file)}
    texts = []
    for place, field in enumerate(schema.fields):
        kind = kinds.get(field.name)
        if isinstance(field.dataType, LongType) and kind is not None and pa.types.is_timestamp(kind):
            texts.append(_instant(f"{COLUMN}{place}", zoned=kind.tz is not None))
        else:
            _check_inside(kind, field.name, file)
            texts.append(f"{COLUMN}{place}")
    with finding(spark, partitions) as reader:
        read = reader().schema(schema).parquet(*places)
    return positional(read).selectExpr(*texts).toDF(*schema.names)


def _instant(nanoseconds: str, *, zoned: bool) -> str:
    """SQL of Spark's timestamp for nanoseconds since 1970."""
    finer = f"CAST(raise_error('{_FINER}') AS BIGINT)"
    micros = f"IF(pmod({nanoseconds}, 1000L) = 0L, {nanoseconds} div 1000L, {finer})"
    return f"timestamp_micros({micros})" if zoned else f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"


def _check_inside(kind: pa.DataType | None, column: str, file: str) -> None:
    if kind is not None and pa.types.is_nested(kind) and "timestamp[ns" in str(kind):
        raise DataError(
            "holds timestamps in nanoseconds inside other values, which Spark does not read",
            file=file,
            column=column,
            hint="write the file with coerce_timestamps='us', an option of pandas and pyarrow",
        )
