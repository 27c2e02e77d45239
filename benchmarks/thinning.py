"""A stream thinned out around one match, so that a long sequence has a few answers to compare.

Over a plain stream a sequence of 24 events has no answer at all, or hundreds of millions at once.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.workloads import Step, Workload

KEPT = 0.3
"""The share of the other events of the sequence's kinds that stay; enough for some hundred answers."""


def rows_around_one_match(workload: Workload, steps: tuple[Step, ...], table: pa.Table) -> NDArray[np.int64]:
    """The rows that stay: one match, all events that match no step, a seeded share of those that do."""
    wanted = _matched(workload, steps, table)
    stays = ~wanted.any(axis=0)
    stays |= np.random.default_rng(workload.seed).random(table.num_rows) < KEPT
    row = -1
    for matches in wanted:
        later = np.flatnonzero(matches[row + 1 :])
        if later.size == 0:
            raise ValueError(f"{workload.name}: the stream has no match of {len(steps)} steps")
        row += 1 + int(later[0])
        stays[row] = True
    return np.flatnonzero(stays[: row + 1_000])


def _matched(workload: Workload, steps: tuple[Step, ...], table: pa.Table) -> NDArray[np.bool_]:
    """Which rows match which step: [steps, rows]."""
    kind = "type = '{}' AND " if workload.type_column else ""
    columns = ", ".join(f"{kind.format(name)}({condition})" for name, condition in steps)
    with duckdb.connect() as connection:
        connection.register("events", table)
        flags = connection.execute(f"SELECT {columns} FROM events").fetchnumpy()
    return np.array([np.asarray(column, np.bool_) for column in flags.values()])
