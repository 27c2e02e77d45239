"""Events in files of all formats, and in directories that name columns."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

KINDS = ("parquet", "csv", "jsonl", "arrow")
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}

PARTS = {
    "year=2023/day=2023-12-31/station=n": [("A", 1), ("B", 4)],
    "year=2024/day=2024-01-01/station=n": [("A", 2), ("B", 6)],
    "year=2024/day=2024-01-01/station=s%20t": [("A", 3), ("B", 5)],
    "year=2024/day=2024-01-02/station=__HIVE_DEFAULT_PARTITION__": [("A", 7), ("B", 8)],
}
"""The rows (kind, t) of each directory."""


def written(table: pa.Table, place: Path) -> Path:
    """The table in a file, in the format that its name says."""
    place.parent.mkdir(parents=True, exist_ok=True)
    match place.suffix:
        case ".parquet":
            pa.parquet.write_table(table, place)
        case ".csv":
            pa.csv.write_csv(table, place)
        case ".arrow":
            pa.feather.write_feather(table, str(place))
        case _:
            place.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), "utf-8")
    return place


def several_files(place: Path) -> list[str]:
    """Three events in a file of each format, in the order of `KINDS` and not of time."""
    found = []
    for number, form in enumerate(KINDS):
        times = [30 - 10 * number, 31 - 10 * number, 32 - 10 * number]
        values: dict[str, Any] = {"kind": ["A", "B", "A"], "t": times, form: ["x", "y", "z"]}
        found.append(str(written(pa.table(values), place / f"{number}.{form}")))
    return found


def partitioned(place: Path, form: str) -> Path:
    """The directory of `PARTS` in files of this format."""
    for name, rows in PARTS.items():
        kinds, times = zip(*rows, strict=True)
        written(pa.table({"kind": kinds, "t": times}), place / "events" / name / f"part.{form}")
    return place / "events"


def rows_of_parts() -> list[dict[str, Any]]:
    """The events of `PARTS` with the columns of their directories, in order of time."""
    found: list[dict[str, Any]] = []
    for name, rows in PARTS.items():
        year, day, station = (part.partition("=")[2] for part in name.split("/"))
        named = {
            "year": int(year),
            "day": dt.date.fromisoformat(day),
            "station": {"s%20t": "s t", "n": "n"}.get(station),
        }
        found += [{"kind": kind, "t": time, **named} for kind, time in rows]
    return sorted(found, key=lambda row: row["t"])
