"""The columns of inputs and their DuckDB types, found without DuckDB if they are plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estero.classify.column_names import check_names
from estero.classify.remembered import Remembered
from estero.classify.vectors.arrow_types import engine_type
from estero.events.reading_errors import reading
from estero.events.small_tables import Columns

if TYPE_CHECKING:
    from estero.events.database import LentDatabases
    from estero.events.inputs import Input


def described(source: Input, databases: LentDatabases) -> list[tuple[str, str]]:
    """The names of the columns and their DuckDB types; raises `DataError` for invalid names."""
    schema = source.schema if source.plain is None else source.plain.schema
    if schema is None:
        return _by_duckdb(source, databases)
    check_names(schema.names, source.file)
    known = [(field.name, engine_type(field)) for field in schema]
    plain = [(name, kind) for name, kind in known if kind is not None]
    if len(plain) == len(known):
        return plain
    return _types.of(Columns.of(schema), lambda: _by_duckdb(source, databases))


def _by_duckdb(source: Input, databases: LentDatabases) -> list[tuple[str, str]]:
    from estero.events.execution import described_by_duckdb  # loads DuckDB

    with reading(source.file):
        return described_by_duckdb(source, databases)


_types = Remembered[list[tuple[str, str]]]()
"""The types of DuckDB for the columns of tables."""
