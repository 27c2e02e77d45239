"""Readers of DuckDB over files, in SQL."""

from __future__ import annotations

from collections.abc import Iterable

from estero.classify.sql_texts import literal
from estero.events.files.partitions import FILE
from estero.events.files.paths import as_one_file

NO_HIVE = ", hive_partitioning = false"
"""The option that makes a reader of DuckDB ignore the names of directories."""

NAMING = f"{NO_HIVE}, filename = {literal(FILE)}"
"""The same, with the option that makes it give the file of each row."""


def rows_of(reader: str, files: Iterable[str], options: str = "") -> str:
    """The rows of files by a reader of DuckDB with these options, in SQL."""
    return f"{reader}([{', '.join(literal(as_one_file(file)) for file in files)}]{options})"
