"""Rules that may change, in a directory or a table, as a source of Spark: each micro-batch reads them.

Spark runs a Python source in a separate process beside the driver, where there is no session. So it reads
files: those of the directory, or those of the table, Parquet or Delta.

An offset of the source has the texts of all rules. So the log of the checkpoint records the rules of each
micro-batch, and a repeated one has the same. If they have changed, one row brings them to the bucket.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from estero.errors import DataError, EsteroError
from estero.events.streams.stream_layout import StreamLayout
from estero.queries.rules.rule_origin import RuleOrigin
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_table import RuleTable, origin_of
from estero.queries.rules.rule_texts import version_of
from estero.spark.streams.packing import NO_TIME, PACKED, RULES
from estero.spark.work import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME: Final = "estero_rules"
_PATH, _TABLE = "path", "table"
Offset = dict[str, str]


def of_files(spark: SparkSession, table: RuleTable) -> RuleTable:
    """The table by its path, which Spark's catalog has if it was given by its name.

    Raises `DataError` where there is none of this name, or it is not one of Parquet or Delta.
    """
    from pyspark.errors import AnalysisException

    if not table.in_catalog:
        return table
    quoted = ".".join(f"`{part}`" for part in table.place.split("."))
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    except AnalysisException as error:
        raise DataError(f"the catalog of Spark has no table {table.place}") from error
    said = {row["col_name"].lower(): row["data_type"] for row in rows}
    provider = (said.get("provider") or "a view").lower()
    if provider not in ("parquet", "delta") or "location" not in said:
        raise DataError(
            f"the table {table.place} is of {provider}, and rules that may change are read from Parquet "
            "and Delta",
            hint="CREATE TABLE … USING delta or parquet; rules that stay as they are can be in any table: "
            "estero.rules({…})",
        )
    return RuleTable(said["location"])


def rule_rows(spark: SparkSession, place: Path | RuleTable, layout: StreamLayout, bucket: int) -> DataFrame:
    """Packed rows with the rules in a directory or a table, for a bucket, whenever they have changed.

    Only rules that fit events of a layout are used; the others are refused in the log of the driver.
    """
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, versions: Versions) -> None:
            self._versions = versions

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._versions.once = True

        def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (PySpark's name)
            return {"version": "", "rules": ""}

        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
            return self._versions.after(start)

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:  # noqa: ARG002
            return [InputPartition(end["rules"])]

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            yield None, bucket, RULES, 0, NO_TIME, partition.value.encode()

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return _NAME

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
            return Reader(Versions.read(self.options))

    spark.dataSource.register(Source)
    options = Versions.options(place, layout)
    return spark.readStream.format(_NAME).schema(spark_schema(PACKED)).options(**options).load()


@dataclass(slots=True)
class Versions:
    """The rules of an origin at successive moments, restricted to those that fit events of a `layout`.

    A stream that ends with the available data reads them `once`.
    """

    rules: RuleOrigin
    layout: StreamLayout
    last: Offset | None = None
    once: bool = False

    @staticmethod
    def options(place: Path | RuleTable, layout: StreamLayout) -> dict[str, str]:
        """The texts from which `read` makes this."""
        arrays = {
            name: base64.b64encode(array.tobytes()).decode() for name, array in layout.as_arrays().items()
        }
        where = {_TABLE: place.place} if isinstance(place, RuleTable) else {_PATH: str(place.absolute())}
        return {**where, "layout": layout.as_text(), "schemas": json.dumps(arrays)}

    @classmethod
    def read(cls, options: Any) -> Versions:
        """The rules that these options name."""
        arrays = {
            name: np.frombuffer(base64.b64decode(text), np.uint8)
            for name, text in json.loads(options["schemas"]).items()
        }
        place = RuleTable(options[_TABLE]) if _TABLE in options else Path(options[_PATH])
        return cls(origin_of(place), StreamLayout.of_state(options["layout"], arrays))

    def after(self, start: Offset) -> Offset:
        """The rules now; `start` has those before. Unreadable rules change nothing."""
        before = start if self.last is None else self.last
        if self.once and self.last is not None:
            return self.last
        old = json.loads(before["rules"] or "{}")
        texts = self.rules.look(old)
        if texts is None:
            if self.last is None:
                self.last = _offset({})
            return self.last
        counting = {}
        for name, text in texts.items():
            if old.get(name) == text or self._fits(name, text):
                counting[name] = text
            elif name in old:
                counting[name] = old[name]
        self.rules.texts = texts
        self.last = _offset(counting)
        return self.last

    def _fits(self, name: str, text: str) -> bool:
        """Whether a rule fits the events; if not, the log says why."""
        try:
            RuleSet({name: self.rules.query(name, text)}).recognizer_of(self.layout)
        except (EsteroError, ValueError) as error:
            self.rules.refuse(name, error)
            return False
        return True


def _offset(texts: dict[str, str]) -> Offset:
    return {"version": version_of(texts), "rules": json.dumps(texts)}
