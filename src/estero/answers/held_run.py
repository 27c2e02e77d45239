"""Complex events that are already in memory, in the form that an answer reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from estero.answers.run import Run


class HeldRows(Run, ABC):
    """Rows in memory, which cannot be divided and answer no further questions."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """All rows, by end and start."""

    @property
    def counts_quickly(self) -> bool:
        """True: the rows are in memory."""
        return True

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, or the first `limit` of them."""
        yield from self.table.slice(0, limit).to_batches()

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows."""
        del enough
        return int(self.table.num_rows)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The rows with these indexes."""
        wanted = [index for index in indexes if index < self.table.num_rows]
        yield from self.table.take(pa.array(wanted, pa.int64())).combine_chunks().to_batches()

    def undecided(self) -> Run:
        """None: all given complex events are decided."""
        return HeldRun(self.schema.empty_table(), self.query)


@dataclass(frozen=True, slots=True)
class HeldRun(HeldRows):
    """The rows of a table in order of their ends, for a query with this `text`."""

    rows: pa.Table
    text: str

    @property
    def table(self) -> pa.Table:
        """All rows."""
        return self.rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.rows.schema

    @property
    def query(self) -> str:
        """The text of the query."""
        return self.text
