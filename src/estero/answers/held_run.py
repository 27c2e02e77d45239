"""Complex events that are in memory already, as an answer reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from estero.answers.run import Run


@dataclass(frozen=True, slots=True)
class HeldRun(Run):
    """The rows of a table in order of their ends, of a query with this `text`."""

    table: pa.Table
    text: str

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.table.schema

    @property
    def query(self) -> str:
        """The text of the query."""
        return self.text

    @property
    def counts_quickly(self) -> bool:
        """It does: the rows are there."""
        return True

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, or the first `limit` of them."""
        rows = self.table if limit is None else self.table.slice(0, limit)
        yield from rows.to_batches()

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows."""
        del enough
        return int(self.table.num_rows)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The rows with these indexes."""
        places = [index for index in indexes if index < self.table.num_rows]
        yield from self.table.take(pa.array(places, pa.int64())).to_batches()
