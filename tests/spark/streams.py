"""What tests of streams share: events in files, one for each micro-batch, and what they have to find."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import estero
from spark import stopped_stream
from spark.frames import in_any_order, without_positions

Row = dict[str, Any]


def files(table: pa.Table, place: Path, sizes: Sequence[int], first: int = 0) -> None:
    """The table in files of these sizes, the last one with the rest; Spark takes them by their times.

    A file appears whole and with its time: a running stream that saw it with the time of now would take all
    later ones for too old.
    """
    place.mkdir(parents=True, exist_ok=True)
    begin = 0
    for number, size in enumerate([*sizes, table.num_rows], first):
        hidden = place / f".{number:03}.parquet"
        pa.parquet.write_table(table.slice(begin, size), hidden)
        os.utime(hidden, (1_000_000_000 + number,) * 2)
        hidden.rename(place / f"{number:03}.parquet")
        begin += size


def expected(query: str, table: pa.Table, **how: Any) -> list[Row]:
    """What a query finds in a table in this process; never nothing."""
    rows: list[Row] = estero.query(query).run(table, **how).to_arrow().to_pylist()
    assert rows
    return rows


def timed_events() -> pa.Table:
    """Events for `stopped_stream`, in order."""
    draw = random.Random(7)
    rows = [{"type": draw.choice("AB"), "ts": at * 1_000_000, "k": at % 20, "n": at} for at in range(200)]
    return pa.Table.from_pylist(rows).cast(
        pa.schema(
            [("type", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("n", pa.int64())]
        )
    )


def whole_answer(table: pa.Table, name: str = "keys") -> list[str]:
    """What `stopped_stream` has to find in them with a query, however often it is stopped."""
    query, how = stopped_stream.QUERIES[name], dict[str, Any](type="type", time="ts")
    if name == stopped_stream.WITH_PARTIALS:
        recognizer = estero.query(query).recognizer(table.schema, **how, partials=True)
        pushed = [recognizer.push(table).to_arrow(), recognizer.close().to_arrow()]
        found = pa.concat_tables(pushed).to_pylist()
        assert {row["complete"] for row in found} == {False, True}
    else:
        found = expected(query, table, **how)
    assert any(event["n"] == stopped_stream.FATAL for row in found for event in row["a"]) or name != "keys"
    return in_any_order(without_positions(found))
