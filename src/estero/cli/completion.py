"""What a shell suggests for the name of a column: those of the events that are named before it."""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path

import typer


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """The columns of the files of ``--events`` that begin like this; none where that takes reading rows.

    Parquet and Arrow files say it in a few bytes, CSV files in their first line. A shell waits for the
    answer, and what is wrong with a file is said by the command.
    """
    names: dict[str, None] = {}
    for each in context.params.get("events") or ():
        with contextlib.suppress(OSError, ValueError):  # what Arrow raises is a ValueError, too
            names |= dict.fromkeys(_columns_of(Path(each)))
    return [name for name in names if name.startswith(incomplete)]


def _columns_of(file: Path) -> list[str]:
    if not file.is_file():
        return []
    match file.suffix.lower():
        case ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(file).names)
        case ".arrow" | ".feather":
            import pyarrow as pa

            with pa.memory_map(str(file)) as mapped:
                return list(pa.ipc.open_file(mapped).schema.names)
        case ".csv":
            with file.open(encoding="utf-8", newline="") as lines:
                first = lines.readline(_LONGEST_HEADER)
            mark = max(",;\t|", key=first.count)
            return next(csv.reader([first], delimiter=mark), [])
        case _:
            return []


_LONGEST_HEADER = 65_536
