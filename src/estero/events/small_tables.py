"""Tables that are read at once, and their columns as keys for what was prepared for such a table."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 64 << 20
"""The largest size classified at once: nothing else runs meanwhile, and all of it is in memory."""


class Columns(NamedTuple):
    """Columns of Arrow, which are equal if DuckDB does not distinguish them."""

    schema: pa.Schema
    metadata: list[dict[bytes, bytes] | None]

    @classmethod
    def of(cls, schema: pa.Schema) -> Columns:
        """The columns of a schema."""
        return cls(schema, [field.metadata for field in schema])


def is_small(table: pa.Table) -> bool:
    """Whether this table is read at once."""
    return bool(table.num_rows <= MOST_ROWS and table.nbytes <= _MOST_BYTES)
