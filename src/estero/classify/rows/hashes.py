"""Hashes of single values, equal to DuckDB's hashes in a batch: DuckDB computes each one once.

So keys and snapshots do not depend on whether an event comes alone or in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from estero.language.tree.schema import Kind

if TYPE_CHECKING:
    from estero.classify.sql_trees import SQL

Ask = Callable[[str, Sequence[str]], tuple[int, int]]
"""A function that runs a statement with text parameters and returns its one row."""

MOST_REMEMBERED: Final = 1 << 17
"""The number of keys whose hashes are remembered before starting anew."""
_TYPES: Final = {Kind.INT: "BIGINT", Kind.FLOAT: "DOUBLE", Kind.STRING: "VARCHAR"}


class Hashes:
    """The two hashes of tuples of values of these kinds without NULL."""

    def __init__(self, kinds: Sequence[Kind], ask: Ask) -> None:
        self._kinds = tuple(kinds)
        self._ask = ask
        self._remembered: dict[tuple[Any, ...], tuple[int, int]] = {}

    def of(self, values: tuple[Any, ...]) -> tuple[int, int]:
        """Both hashes, unsigned; -0.0 hashes as 0.0, and all NaNs the same."""
        hashes = self._remembered.get(values)
        return self._asked(values) if hashes is None else hashes

    def _asked(self, values: tuple[Any, ...]) -> tuple[int, int]:
        plain = tuple(_one_of_equal_ones(value) for value in values)
        hashes = self._ask(_statement(self._kinds), list(map(str, plain)))
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        if plain == values:  # false for NaN, which no lookup finds
            self._remembered[values] = hashes
        return hashes


@cache
def _statement(kinds: tuple[Kind, ...]) -> str:
    """The statement for both hashes of values that are given as texts."""
    from sqlglot import exp  # loads the SQL writer, and few queries need hashes

    from estero.classify.duckdb_dialect import DUCKDB
    from estero.classify.sql_trees import cast

    names = [f"v{place}" for place in range(len(kinds))]
    given = [
        f"CAST(CAST(${place} AS VARCHAR) AS {_TYPES[kind]}) AS {name}"
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True), 1)
    ]
    parts: list[tuple[SQL, Kind]] = [
        (exp.column(name), kind) for name, kind in zip(names, kinds, strict=True)
    ]
    halves = [DUCKDB.text(cast(half, DUCKDB.hash_type)) for half in DUCKDB.hashes(parts)]
    return f"SELECT {', '.join(halves)} FROM (SELECT {', '.join(given)})"


def _one_of_equal_ones(value: Any) -> Any:
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value
