"""The stream that all engines get: seeded, and written as plain columns that any language reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import Codes, Column, Workload

TYPES = ("A", "B", "C", "D", "E")
SHARES = (0.1, 0.1, 0.02, 0.001, 0.779)
"""How often each of the types occurs: A and B open many matches, D closes few."""
KEYS = 100
PRICES = 1_000

FILES: dict[str, np.dtype[Any]] = {"type": np.dtype("u1"), "key": np.dtype("<i4"), "price": np.dtype("<i4")}
"""The columns, each in a file of its name, without any header."""


def _make(random: np.random.Generator, _first: int, count: int) -> Codes:
    return {
        "type": random.choice(len(TYPES), count, p=SHARES),
        "key": random.integers(0, KEYS, count),
        "price": random.integers(0, PRICES, count),
    }


STREAM = Workload(
    name="peers",
    stream="S",
    types=TYPES,
    columns=(Column("key", "int"), Column("price", "int")),
    time=None,
    make=_make,
    queries=(),
    seed=20_261,
)
"""An event's time is its position: windows of time and of events are the same."""


def save(folder: Path, events: int) -> None:
    """Writes the first `events` events into a folder, a file for each column of `FILES`."""
    for name in FILES:
        (folder / name).write_bytes(b"")
    for block in STREAM.blocks(events):
        for name, kind in FILES.items():
            with (folder / name).open("ab") as file:
                file.write(block[name].astype(kind).tobytes())


def load(folder: Path) -> Codes:
    """The columns of such a folder."""
    return {name: np.fromfile(folder / name, kind).astype(np.int64) for name, kind in FILES.items()}
