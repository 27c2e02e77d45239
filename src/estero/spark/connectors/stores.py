"""Places that only Spark reads, such as ``s3a://bucket/events.parquet`` → a batch DataFrame of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from estero.addresses import Address
from estero.errors import DataError
from estero.spark.connectors.address import located, source_address
from estero.spark.connectors.packages import connecting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS: dict[str, dict[str, Any]] = {
    "csv": {"mode": "FAILFAST", "header": True, "inferSchema": True},
    "json": {"mode": "FAILFAST"},
}


def store_address(path: str) -> Address:
    """The address of a place that only Spark reads; raises `DataError` for a topic, which has no end."""
    place = source_address(path)
    if place.scheme == "kafka":
        raise DataError(
            f"{place}: messages keep coming", hint="estero stream reads them; in Python, read_stream(…)"
        )
    return place


def store_frame(spark: SparkSession, place: Address) -> DataFrame:
    """The events at an address, read by Spark's own reader; its options follow a ``?``.

    Raises `DataError` if there is nothing to read, and `EnvironmentProblem` if a connector is missing.
    """
    with connecting(place):
        reader = spark.read.format(place.scheme)
        return reader.options(**_OPTIONS.get(place.scheme, {}) | place.options).load(located(place.place))
