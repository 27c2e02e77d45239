"""From how far each start comes to a funnel: how many starts come so far, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from estero.events.database import connect
from estero.events.sources import Source
from estero.plan.levels import LevelsPlan
from estero.recognize.in_process import time_type
from estero.recognize.levels import level_column, levels_reached

_STEP: Final = """
    SELECT {keys} {step} AS step, count(*) FILTER ({here} IS NOT NULL) AS starts,
        median({reached} - {before}) FILTER ({reached} >= {before}) AS wait
    FROM levels {grouped}"""


def funnel_table(
    plan: LevelsPlan, source: Source, *, by_partition: bool, until: int | None = None
) -> pa.Table:
    """The columns of `estero.answers.funnel.Funnel`, in the order of partitions and steps."""
    reached = levels_reached(plan, source, until)
    levels = [level_column(level) for level in range(1, len(plan.parts) + 1)]
    names = [name for name in reached.column_names[2:] if name not in levels] if by_partition else []
    keys = [f"k{number}" for number in range(len(names))]
    columns = [*keys, *(f"r{number}" for number in range(len(levels)))]
    levels_table = reached.select([*names, *levels]).rename_columns(columns)
    with connect() as connection:
        connection.register("levels", levels_table)
        found = connection.sql(_statement(len(levels), keys)).to_arrow_table()
    clock = time_type(source)
    shown = {name: found[key] for name, key in zip(names, keys, strict=True)}
    shown["step"] = found["step"].cast(pa.int64())
    shown["part"] = pa.array([plan.parts[step - 1] for step in found["step"].to_pylist()], pa.string())
    shown["starts"] = found["starts"].cast(pa.int64())
    shown["share"] = found["share"].cast(pa.float64())
    if clock is not None:
        shown["median_wait"] = _waits(found["wait"], clock)
    return pa.table(shown)


def _statement(levels: int, keys: Sequence[str]) -> str:
    """One row for each step, or for each step of each partition."""
    listed = "".join(f"{key}, " for key in keys)
    steps = [
        _STEP.format(
            keys=listed,
            step=level + 1,
            here=f"coalesce({', '.join(f'r{later}' for later in range(level, levels))}, NULL)",
            reached=f"r{level}",
            before=f"r{level - 1}" if level else "NULL",
            grouped=f"GROUP BY {', '.join(keys)}" if keys else "",
        )
        for level in range(levels)
    ]
    window = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY step)" if keys else "OVER (ORDER BY step)"
    share = f"starts / nullif(first_value(starts) {window}, 0) AS share"
    return f"SELECT *, {share} FROM ({' UNION ALL '.join(steps)}) ORDER BY {listed} step"


def _waits(ticks: pa.ChunkedArray, clock: pa.DataType) -> pa.ChunkedArray:
    """Durations, where times are timestamps; halves of a tick are cut off."""
    if not pa.types.is_timestamp(clock):
        return ticks.cast(pa.float64())
    return ticks.cast(pa.int64(), safe=False).cast(pa.duration(clock.unit))
