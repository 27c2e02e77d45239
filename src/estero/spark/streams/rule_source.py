"""A directory of rules as a source of Spark: in each micro-batch the driver looks at it.

An offset of the source has the texts of all rules. So the log of the checkpoint says which rules a
micro-batch had, and one that is done again has the same. Where they have changed, one row brings them to the
bucket.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from estero.errors import EsteroError
from estero.events.streams.stream_layout import StreamLayout
from estero.queries.rules.rule_directory import RuleFiles, version_of
from estero.queries.rules.rule_set import RuleSet
from estero.spark.streams.packing import NO_TIME, PACKED, RULES
from estero.spark.work import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger("estero.spark")
_NAME: Final = "estero_rules"
Offset = dict[str, str]


def rule_rows(spark: SparkSession, directory: Path, layout: StreamLayout, bucket: int) -> DataFrame:
    """Packed rows with the rules in the files below a directory, for a bucket, whenever they have changed.

    Rules count that fit events of a layout; the others are refused in the log of the driver.
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
    options = Versions.options(directory, layout)
    return spark.readStream.format(_NAME).schema(spark_schema(PACKED)).options(**options).load()


@dataclass(slots=True)
class Versions:
    """The rules in a directory as they are at moments, of those that fit events of a `layout`.

    A stream of what is there looks `once`.
    """

    directory: Path
    layout: StreamLayout
    files: RuleFiles | None = None
    last: Offset | None = None
    once: bool = False

    @staticmethod
    def options(directory: Path, layout: StreamLayout) -> dict[str, str]:
        """The texts of which `read` makes this."""
        arrays = {
            name: base64.b64encode(array.tobytes()).decode() for name, array in layout.as_arrays().items()
        }
        return {"path": str(directory.absolute()), "layout": layout.as_text(), "schemas": json.dumps(arrays)}

    @classmethod
    def read(cls, options: Any) -> Versions:
        """The rules that these options name."""
        arrays = {
            name: np.frombuffer(base64.b64decode(text), np.uint8)
            for name, text in json.loads(options["schemas"]).items()
        }
        return cls(Path(options["path"]), StreamLayout.of_state(options["layout"], arrays))

    def after(self, start: Offset) -> Offset:
        """The rules now; `start` has those before. A directory that is gone changes nothing."""
        before = start if self.last is None else self.last
        if self.once and self.last is not None:
            return self.last
        if not self.directory.is_dir():
            _log.error("the directory of rules is gone: %s", self.directory)
            return before
        if self.files is None:
            self.files = RuleFiles(self.directory, {})
        texts = self.files.changed()
        if texts is None:
            if self.last is None:
                self.last = _offset({})
            return self.last
        old = json.loads(before["rules"] or "{}")
        counting = {}
        for name, text in texts.items():
            if old.get(name) == text or self._fits(self.files, name, text):
                counting[name] = text
            elif name in old:
                counting[name] = old[name]
        self.files.texts = texts
        self.last = _offset(counting)
        return self.last

    def _fits(self, files: RuleFiles, name: str, text: str) -> bool:
        """Whether a rule fits the events; the log says why it does not."""
        try:
            RuleSet({name: files.query(name, text)}).recognizer_of(self.layout)
        except (EsteroError, ValueError) as error:
            files.refuse(name, error)
            return False
        return True


def _offset(texts: dict[str, str]) -> Offset:
    return {"version": version_of(texts), "rules": json.dumps(texts)}
