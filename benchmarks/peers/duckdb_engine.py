"""SQL in DuckDB, on all cores: from a table in its memory to an Arrow table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.peers.events import TYPES, load


@dataclass(frozen=True, slots=True)
class DuckDB:
    """The stream as a table, and a table `events` with the first of its events."""

    text: str
    connection: duckdb.DuckDBPyConnection
    version: str

    def tables(self, events: int) -> list[pa.Table]:
        """What the SQL gives."""
        self.connection.execute(f"CREATE OR REPLACE VIEW events AS SELECT * FROM stream WHERE id < {events}")
        return [self.connection.sql(self.text).to_arrow_table()]


def engine(folder: Path, _query: str, text: str) -> DuckDB:
    """DuckDB with the events of a folder."""
    columns = load(folder)
    stream = pa.table({"id": np.arange(len(columns["type"])), **columns})
    connection = duckdb.connect()
    names = ", ".join(f"'{name}'" for name in TYPES)
    connection.register("columns", stream)
    connection.execute(
        f"CREATE TABLE stream AS SELECT id, [{names}][type + 1] AS type, key, price FROM columns ORDER BY id"
    )
    return DuckDB(text, connection, f"DuckDB {duckdb.__version__}")
