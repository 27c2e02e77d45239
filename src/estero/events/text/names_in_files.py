"""Names of columns as files have them: of two that DuckDB takes for one another it changes the second."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

_CHANGED = re.compile("(.+)_[0-9]+", re.DOTALL)


def may_be_changed(names: Sequence[str]) -> bool:
    """Whether one of the names may be what DuckDB made of a name like another one."""
    known = {name.lower() for name in names}
    changed = [found[1] for name in names if (found := _CHANGED.fullmatch(name))]
    return any(name.lower() in known for name in changed)


def names_in_parquet(file: str, connection: duckdb.DuckDBPyConnection) -> Sequence[str]:
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
