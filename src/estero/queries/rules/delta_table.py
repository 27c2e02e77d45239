"""The rows and the version of a Delta table, read by the library deltalake (``estero[delta]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.errors import DataError, require

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
"""The subdirectory that makes a directory a Delta table."""


def version_of(place: str) -> int:
    """The number of the newest version of the table at a path or address.

    Raises `DataError` for a table that cannot be read, and `MissingPackage` without deltalake.
    """
    return _opened(place).version()


def size_of(place: str) -> int:
    """The total size of the files of the newest version, in bytes."""
    actions: Any = pa.table(_opened(place).get_add_actions())
    return sum(actions.column("size_bytes").to_pylist())


def rows_of(place: str) -> pa.Table:
    """The rows of the newest version, in no particular order; raises the errors of `version_of`."""
    from deltalake.exceptions import DeltaError

    table = _opened(place)
    try:
        return table.to_pyarrow_table()
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise _unreadable(place, error) from error


def _opened(place: str) -> DeltaTable:
    require("delta", "a Delta table of rules")
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return DeltaTable(place)
    except (DeltaError, OSError) as error:
        raise _unreadable(place, error) from error


def _unreadable(place: str, error: Exception) -> DataError:
    return DataError(
        f"the Delta table cannot be read: {str(error).splitlines()[0]}",
        file=place,
        hint="deltalake reads neither rows that are only marked as deleted nor renamed columns: "
        "set delta.enableDeletionVectors to false and REORG TABLE … APPLY (PURGE)",
    )
