"""Batches of complex events → a table of PostgreSQL, each exactly once.

Spark's tasks write a batch to a staging table. One transaction then moves its rows to the target table and
notes the number of the batch with the identity of the stream (that of its checkpoint). A batch that is
repeated after a failure finds its number there, and moves nothing. A task that runs twice leaves its rows
twice, complete each time; each row has the task and its run, and one run is used.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import __version__

from estero.addresses import Address
from estero.classify.sql_texts import quoted
from estero.errors import DataError, EnvironmentProblem
from estero.spark.connectors.packages import connector_problem
from estero.spark.failures import first_sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOTES = "estero_streams"
"""The table with the number of the last batch of each stream."""

_DRIVER = "org.postgresql.Driver"
_QUERY_ID = "sql.streaming.queryId"
_TASK, _RUN = "estero_task", "estero_run"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('estero'))"
"""The lock for making a table: two who make one of the same name at once would fail, even if it exists."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its connection: `url` and `properties` in the form of JDBC; `nested` columns hold JSON."""

    address: Address
    url: str
    properties: dict[str, str]
    nested: tuple[str, ...]

    def prepare(self, spark: SparkSession) -> None:
        """Makes the table of notes if there is none.

        Raises `DataError` if the database cannot be reached and `EnvironmentProblem` without its driver.
        """
        with self._transaction(spark) as run:
            run(_ONE_AT_A_TIME)
            run(
                f"CREATE TABLE IF NOT EXISTS {self._beside(NOTES)} "
                "(stream text PRIMARY KEY, batch bigint NOT NULL, noted timestamptz NOT NULL)"
            )

    def write_batch(self, batch: DataFrame, number: int) -> None:
        """Puts the rows of the batch `number` into the table, unless they are there; for `foreachBatch`."""
        spark = batch.sparkSession
        stream = spark._jsparkSession.sparkContext().getLocalProperty(_QUERY_ID)  # noqa: SLF001 (Spark has no other way)
        staged = self._beside(f"estero_{stream}")
        with self._said():
            _stamped(batch).write.jdbc(
                self.url, staged, mode="overwrite", properties=self.properties | {"driver": _DRIVER}
            )
        with self._transaction(spark) as run:
            run(_ONE_AT_A_TIME)
            run(self.creating(staged, batch.columns))
        with self._transaction(spark) as run:
            if run(self.noting(stream, number)):
                run(self.inserting(staged, batch.columns))
            run(f"DROP TABLE {staged}")

    def creating(self, staged: str, columns: list[str]) -> str:
        """Makes the table, with the columns of the first batch, if there is none."""
        values = self._values(columns)
        return f"CREATE TABLE IF NOT EXISTS {self._target()} AS SELECT {values} FROM {staged} WITH NO DATA"

    def noting(self, stream: str, number: int) -> str:
        """Notes the batch of the stream; changes no row if it, or a later one, was noted before."""
        notes = self._beside(NOTES)
        return (
            f"INSERT INTO {notes} AS old VALUES ('{stream}', {number}, now()) ON CONFLICT (stream) DO UPDATE "
            "SET batch = excluded.batch, noted = excluded.noted WHERE old.batch < excluded.batch"
        )

    def inserting(self, staged: str, columns: list[str]) -> str:
        """Moves the staged rows: for each task, those of one run."""
        names = ", ".join(map(quoted, columns))
        return (
            f"INSERT INTO {self._target()} ({names}) SELECT {self._values(columns)} FROM {staged} "
            f"WHERE ({_TASK}, {_RUN}) IN (SELECT {_TASK}, min({_RUN}) FROM {staged} GROUP BY {_TASK})"
        )

    def _values(self, columns: list[str]) -> str:
        return ", ".join(
            f"{quoted(name)}::jsonb AS {quoted(name)}" if name in self.nested else quoted(name)
            for name in columns
        )

    def _target(self) -> str:
        return ".".join(map(quoted, self.address.name.split(".")))

    def _beside(self, name: str) -> str:
        """A table of that name in the schema of this one."""
        return ".".join(map(quoted, [*self.address.name.split(".")[:-1], name]))

    @contextmanager
    def _transaction(self, spark: SparkSession) -> Iterator[Any]:
        """A function that runs a statement and returns the number of rows it changed; commits at the end."""
        with self._said():
            connection = self._connected(spark)
            try:
                connection.setAutoCommit(False)
                statement = connection.createStatement()

                def run(text: str) -> int:
                    return 0 if statement.execute(text) else int(statement.getUpdateCount())

                yield run
                connection.commit()
            finally:
                connection.close()

    def _connected(self, spark: SparkSession) -> Any:
        from py4j.java_gateway import JavaPackage

        jvm: Any = spark._jvm  # noqa: SLF001 (the driver that Spark's tasks have, too)
        driver = jvm.org.postgresql.Driver
        if isinstance(driver, JavaPackage):
            raise _without_driver(self.address)
        properties = jvm.java.util.Properties()
        for name, value in self.properties.items():
            properties.setProperty(name, value)
        return driver().connect(self.url, properties)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """The database's message as an error that names the table and not the password."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            raise DataError(first_sentence(str(error)), file=str(self.address)) from error


def table_of(address: Address, nested: tuple[str, ...]) -> Table:
    """The table at an address; a missing user or password is taken from PGUSER and PGPASSWORD."""
    user = address.user or os.environ.get("PGUSER") or getpass.getuser()
    password = address.password or os.environ.get("PGPASSWORD") or ""
    properties = {"user": user, "password": password, **address.options}
    return Table(address, f"jdbc:postgresql://{address.place}", properties, nested)


def _without_driver(address: Address) -> EnvironmentProblem:
    problem = connector_problem(address, _DRIVER, __version__)
    return problem or EnvironmentProblem(f"{_DRIVER} is missing")


def _stamped(batch: DataFrame) -> DataFrame:
    """The batch, each row with the task that computes it and the run of that task."""
    from pyspark.sql.types import LongType, StructType

    schema = StructType([*batch.schema.fields]).add(_TASK, LongType()).add(_RUN, LongType())
    return batch.mapInArrow(_stamp, schema)


def _stamp(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    task = TaskContext.get()
    stamp = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
    for batch in batches:
        columns = [pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows) for number in stamp]
        names = [*batch.schema.names, _TASK, _RUN]
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], names=names)
