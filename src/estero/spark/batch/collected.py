"""Complex events that Spark found, brought to this process batch by batch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet

from estero.answers.answer_schema import LABEL_KEY, MATCH_KEY, MEASURE_KEY, SUPPRESSED_KEY
from estero.answers.writers import write_answer
from estero.arguments import checked
from estero.errors import DataError
from estero.spark.connectors.address import located
from estero.spark.failures import jobs
from estero.spark.files.files import Paths, check_rows
from estero.spark.frames import check_frame, quoted
from estero.spark.rows import rows_of
from estero.spark.work import NAME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LABEL = LABEL_KEY.decode()
_SAID = [key.decode() for key in (LABEL_KEY, MATCH_KEY, MEASURE_KEY, SUPPRESSED_KEY)]
_ORDER = ("end", "start", "end_time", "start_time")
_ROWS = 65_536


@checked
def collect(
    matches: DataFrame,
    *,
    events: Paths | None = None,
    csv_options: Mapping[str, object] | None = None,
) -> Collected:
    """The complex events of `estero.spark.recognize`, counted, limited, written or read in this process.

    Given the path that `events` were read from, errors about malformed rows name the file and the line.
    """
    check_frame(matches)
    return Collected(matches, recheck=None if events is None else lambda: check_rows(events, csv_options))


class Collected:
    """The rows of a DataFrame of complex events, in order of their ends: read, counted, written.

    Each question runs the job. Rows wait in a temporary file of the machine that runs Spark in local mode,
    so an answer of any size fits; from a cluster they come through memory. Complex events with the same
    ends keep one order from run to run. `limit` keeps any `n` of them: Spark stops once it has that many.
    `recheck` is called when the data made a job fail, to say it better than Spark does.
    """

    def __init__(self, frame: DataFrame, *, recheck: Callable[[], None] | None = None) -> None:
        self._frame = frame
        self._recheck = recheck

    @property
    def schema(self) -> pa.Schema:
        """The columns, as in an `Answer`; a column that shows a label says so."""
        from pyspark.sql.pandas.types import to_arrow_type

        fields = []
        for field in self._frame.schema.fields:
            label = field.metadata.get(_LABEL)
            arrow_type = to_arrow_type(field.dataType, timezone="UTC")
            if label is not None:  # reports name the items of lists so
                arrow_type = pa.list_(arrow_type.value_field.with_name("item"))
            metadata = {key: field.metadata[key] for key in _SAID if key in field.metadata} or None
            name = field.metadata.get(NAME, field.name)
            fields.append(pa.field(name, arrow_type, field.nullable, metadata))
        return pa.schema(fields)

    def limit(self, n: int) -> Collected:
        """Any `n` of the complex events."""
        return Collected(self._frame.limit(n), recheck=self._recheck)

    def rows(self) -> Collected:
        """The marked events, one row for each event and label (`estero.spark.rows`), by ``match``."""
        return Collected(rows_of(self._frame, self.schema), recheck=self._recheck)

    def count(self) -> int:
        """The number of rows."""
        with self._job():
            return self._frame.count()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order of their ends."""
        schema = self.schema
        if not str(self._frame.sparkSession.conf.get("spark.master")).startswith("local"):
            with self._job():
                table = self._ordered().toArrow()
            yield from table.rename_columns(schema.names).cast(schema).to_batches(_ROWS)
            return
        with tempfile.TemporaryDirectory(prefix="estero-") as directory:
            spool = Path(directory, "rows")
            with self._job():
                self._ordered().write.parquet(located(str(spool)))
            for file in sorted(spool.glob("*.parquet")):
                for batch in pyarrow.parquet.ParquetFile(file).iter_batches(_ROWS):
                    yield batch.rename_columns(schema.names).cast(schema)

    def write(
        self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None, positions: bool = False
    ) -> int:
        """Writes parquet, csv, jsonl or arrow, as `Answer.write`; returns the number of complex events."""
        return write_answer(target, self.schema, self.batches(), format=format, positions=positions)

    @contextmanager
    def _job(self) -> Iterator[None]:
        try:
            with jobs():
                yield
        except DataError:
            if self._recheck is not None:
                self._recheck()
            raise

    def _ordered(self) -> DataFrame:
        """The rows in one partition, sorted by their ends and then by all other columns with an order."""
        names = self._frame.columns
        keys = [name for name in _ORDER if name in names]
        keys += [name for name in names if name not in keys]
        return self._frame.repartition(1).sortWithinPartitions(*(quoted(name) for name in keys))
