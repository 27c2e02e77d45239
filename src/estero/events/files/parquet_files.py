"""What the footers of Parquet files say: the names of columns, and whether there is a row at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from estero.events.database import Connection


def schema_in_footers(files: Iterable[str]) -> tuple[pa.Schema | None, bool]:
    """The columns of Parquet files as the first one says, and whether any of them has a row.

    DuckDB does not say the zones of timestamps. None for the columns of files that cannot be read, which
    DuckDB says better.
    """
    import pyarrow.parquet  # 20 ms, which other events do without

    schema = None
    for file in files:
        try:
            footer = pyarrow.parquet.read_metadata(file)
            schema = schema or footer.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            return schema, True
        if footer.num_rows:
            return schema, True
    return schema, False


def rows_in_footers(files: Iterable[str]) -> int:
    """How many rows Parquet files have."""
    import pyarrow.parquet  # see above

    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)


def names_in_parquet(file: str, connection: Connection) -> Sequence[str]:
    """The names of the columns of a Parquet file; nested ones are left out."""
    query = "SELECT name, num_children FROM parquet_schema(?)"
    rows = iter(connection.execute(query, [file]).fetchall())
    next(rows)  # the root
    names = []
    for name, children in rows:
        names.append(name)
        below = children or 0
        while below:
            below += (next(rows)[1] or 0) - 1
    return names
