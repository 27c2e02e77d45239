"""Connectors that Spark does not include: their packages, sessions with them, errors without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pyspark import __version__

from estero.addresses import Address
from estero.arguments import checked
from estero.errors import EnvironmentProblem
from estero.spark.connectors.address import sink_address, source_address
from estero.spark.failures import jobs
from estero.spark.sessions.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSTGRESQL = "org.postgresql:postgresql:42.7.8"
_DELTA = "4.4.0"
_NEWEST = (4, 2)
"""The newest Spark with published connectors; the Kafka one of 4.2 was tried with 4.3, and works."""

_NAMES = {"kafka": "Kafka", "delta": "Delta", "postgresql": "PostgreSQL"}
_CLASSES = {
    "kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "postgresql": "org.postgresql.Driver",
}
_OF_ANOTHER_SPARK = re.compile(
    r"NoSuchMethodError|NoClassDefFoundError|AbstractMethodError|'[\w.$]+ org\.apache\.spark"
)
_MISSING = re.compile("DATA_SOURCE_NOT_FOUND|Failed to find data source|DELTA_CONFIGURE_SPARK_SESSION")
_UNRESOLVED = "unresolved dependency"
_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def coordinates(scheme: str, spark: str) -> str | None:
    """The coordinates of a scheme's connector, for `spark.jars.packages`; None if none is needed.

    >>> coordinates("kafka", "4.1.2")
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.2'
    >>> coordinates("delta", "4.2.0")
    'io.delta:delta-spark_4.2_2.13:4.4.0'
    >>> coordinates("parquet", "4.2.0") is None
    True
    """
    numbers = re.match(r"(\d+)\.(\d+)", spark)
    stated = (int(numbers[1]), int(numbers[2])) if numbers else _NEWEST
    line = "{}.{}".format(*min(stated, _NEWEST))
    if scheme == "kafka":
        version = spark if stated <= _NEWEST else f"{line}.0"
        return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
    if scheme == "delta":
        return f"io.delta:delta-spark_{line}_2.13:{_DELTA}"
    return _POSTGRESQL if scheme == "postgresql" else None


def session_settings(
    addresses: Iterable[Address], spark: str, *, packages: Iterable[str] = (), jars: Iterable[str] = ()
) -> dict[str, str]:
    """Settings of a session that reads and writes at `addresses`, with Spark of version `spark`.

    Connectors are fetched by their coordinates, unless `packages` or `jars` give other ones.
    """
    schemes = sorted({address.scheme for address in addresses})
    named, files = list(packages), list(jars)
    if not named and not files:
        needed = (coordinates(scheme, spark) for scheme in schemes)
        named = [package for package in needed if package is not None]
    settings = dict(_DELTA_SETTINGS) if "delta" in schemes else {}
    if named:
        settings["spark.jars.packages"] = ",".join(named)
    if files:
        settings["spark.jars"] = ",".join(files)
    return settings


@checked
def stream_session(
    source: str,
    sink: str = "console",
    *,
    master: str = "local[*]",
    packages: Iterable[str] = (),
    jars: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running session, else a new one on `master` with the connectors of a source and a sink.

    Spark fetches connectors by their coordinates, unless `packages` (other coordinates) or `jars` (files)
    say where they come from. `config` adds settings of Spark, and overrides others. Raises `DataError` for a
    text that is no address, and `EnvironmentProblem` where a connector cannot be fetched or Spark does not
    start.
    """
    addresses = (source_address(source), sink_address(sink))
    return session_with(addresses, master=master, packages=packages, jars=jars, config=config)


def session_with(
    addresses: Iterable[Address],
    *,
    master: str = "local[*]",
    packages: Iterable[str] = (),
    jars: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """The same for places at `addresses`; raises `EnvironmentProblem` as `stream_session` does."""
    settings = session_settings(addresses, __version__, packages=packages, jars=jars)
    try:
        return local_session(master, config=settings | dict(config or {}))
    except EnvironmentProblem as error:
        if _UNRESOLVED not in str(error):
            raise
        wanted = settings.get("spark.jars.packages", "the packages")
        raise EnvironmentProblem(
            f"Spark cannot fetch {wanted}: name others with --packages, or, where there is no network, "
            "files with --jars."
        ) from error


def connecting(address: Address) -> AbstractContextManager[None]:
    """Turns Spark's errors in the block into Estero's errors, which tell if a connector is missing."""
    return jobs(lambda text: connector_problem(address, text, __version__))


def following() -> AbstractContextManager[None]:
    """The same for a running stream, whose connector may be made for another version of Spark."""
    return jobs(lambda text: problem_of_stream(text, __version__))


def connector_problem(address: Address, text: str, spark: str) -> EnvironmentProblem | None:
    """The problem with the connector of an address, if an error's text indicates one."""
    wanted = coordinates(address.scheme, spark)
    if wanted is None:
        return None
    name = _NAMES[address.scheme]
    if _CLASSES[address.scheme] in text or _MISSING.search(text):
        return EnvironmentProblem(
            f"This Spark session has no connector for {name}: start it with {wanted} (on the command line "
            f"--packages {wanted}, in Python the setting spark.jars.packages), or name its files with --jars."
        )
    if _OF_ANOTHER_SPARK.search(text):
        return EnvironmentProblem(
            f"The connector for {name} is made for another version of Spark than {spark}, which runs here: "
            f"take one made for it, or Spark {_NEWEST[0]}.{_NEWEST[1]} and {wanted}."
        )
    return None


def problem_of_stream(text: str, spark: str) -> EnvironmentProblem | None:
    """The problem of a failed query with a connector made for another Spark, if its text indicates one."""
    for scheme in ("delta", "kafka"):  # the plan of a failed query has their names
        if _NAMES[scheme] in text and _OF_ANOTHER_SPARK.search(text):
            return connector_problem(Address(scheme), text, spark)
    return None
