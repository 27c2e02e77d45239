"""DuckDB's keys for events that are classified without it: of texts, or of the columns of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa

from estero.classify.arrays import numbers_in
from estero.classify.columns import ColumnType
from estero.classify.remembered import Remembered
from estero.classify.vectors.classifier import Halves, RowKeys
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification

_MOST_REMEMBERED: Final = 1 << 16
"""The largest dictionary whose keys are remembered; keys of larger ones are computed for each batch."""


class DuckDBKeys:
    """Gets keys from DuckDB, because only it has its hashes. A call takes about 1 ms, however small."""

    def of_texts(self, texts: pa.Array) -> Halves:
        """Both halves of the key of each text; 0 for NULL."""
        from estero.classify.columns import reference
        from estero.classify.duckdb_dialect import DUCKDB
        from estero.events.database import EVENTS
        from estero.events.prepared_statements import executed_over

        text = reference("text", ColumnType(Kind.STRING, "VARCHAR"))
        first, second = (half.sql("duckdb") for half in DUCKDB.hashes([(text, Kind.STRING)]))
        statement = f"SELECT {first} AS first, {second} AS second FROM {EVENTS}"
        halves = executed_over(pa.table({"text": texts}), statement)
        return numbers_in(halves.column("first")), numbers_in(halves.column("second"))

    def of_dictionary(self, texts: pa.Array) -> Halves:
        """The same for the texts of a dictionary; those of the latest ones are remembered."""
        if len(texts) > _MOST_REMEMBERED:
            return self.of_texts(texts)
        return _known.of(texts, lambda: self.of_texts(texts))

    def of_rows(self, classification: Classification, columns: Mapping[str, ColumnType]) -> RowKeys:
        """A function that gives the keys of PARTITION BY."""
        return partial(_keys_of, lru_cache(1)(partial(_statement, classification, columns)))


def _statement(classification: Classification, columns: Mapping[str, ColumnType]) -> str:
    from estero.classify.classify import keys_sql
    from estero.events.database import EVENTS

    return keys_sql(classification, EVENTS, columns)


def _keys_of(statement: Callable[[], str], batch: pa.RecordBatch) -> pa.RecordBatch:
    from estero.events.prepared_statements import executed_over

    return executed_over(pa.Table.from_batches([batch]), statement())


DUCKDB_KEYS: Final = DuckDBKeys()

_known = Remembered[Halves]()
