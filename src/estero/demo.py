"""A small realistic stream for `estero demo`, the README and tests: a cold night on five farms."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

STATIONS = ("Los Aromos", "El Peral", "Santa Ines", "Quebrada", "La Cumbre")
BEGIN = datetime(2025, 6, 20, 14, tzinfo=UTC)
ROUNDS = 134
"""The number of readings of each kind by each station, ten minutes apart: 2,010 in all, over 22 hours."""

QUERY = """\
SELECT calm[time, value], damp[time, value], frost[time, value]
WHERE Wind AS calm ; Humidity+ AS damp ; Temperature AS frost
FILTER calm[value < 0.5] AND damp[value >= 96] AND frost[value < 0]
PARTITION BY [station]
WITHIN 20 MINUTES
"""
"""The query for frost: wind drops, the air is damp, then it is below zero, at one station."""

_SEED = 1


def events() -> pa.Table:
    """2,010 readings in order of time, made from a fixed seed: the same everywhere.

    Columns: ``id``, ``kind`` (Temperature, Humidity or Wind), ``time``, ``station``, ``value``.
    """
    random = np.random.default_rng(_SEED)
    hour = 14 + np.arange(ROUNDS) / 6
    cold = np.cos((hour - 30) / 24 * 2 * np.pi)  # 1 at six in the morning, -1 in the afternoon
    kinds: list[str] = []
    stations: list[str] = []
    seconds: list[NDArray[np.int64]] = []
    values: list[NDArray[np.float64]] = []
    for number, station in enumerate(STATIONS):
        curves = {
            "Temperature": 6 - number - 5 * cold + _drift(random, 0.5),
            "Humidity": np.clip(84 + 11 * cold + number + _drift(random, 1.5), 20, 100),
            "Wind": np.clip(2.2 - 1.2 * cold + _drift(random, 0.6), 0, None),
        }
        for kind, curve in curves.items():
            kinds += [kind] * ROUNDS
            stations += [station] * ROUNDS
            seconds.append(np.arange(ROUNDS) * 600 + random.integers(0, 300, ROUNDS))
            values.append(np.round(curve, 1))
    return _in_order(kinds, stations, np.concatenate(seconds), np.concatenate(values))


def _drift(random: np.random.Generator, size: float) -> NDArray[np.float64]:
    """Noise in which adjacent values resemble each other, as in the weather."""
    noise = random.normal(0, size, ROUNDS + 5)
    return np.convolve(noise, np.ones(6) / np.sqrt(6), mode="valid")


def _in_order(
    kinds: list[str], stations: list[str], seconds: NDArray[np.int64], values: NDArray[np.float64]
) -> pa.Table:
    order = np.argsort(seconds, kind="stable")
    microseconds = (int(BEGIN.timestamp()) + seconds[order]) * 1_000_000
    return pa.table(
        {
            "id": pa.array(np.arange(len(order))),
            "kind": pa.array([kinds[i] for i in order]),
            "time": pa.array(microseconds, pa.timestamp("us", "UTC")),
            "station": pa.array([stations[i] for i in order]),
            "value": pa.array(values[order]),
        }
    )
