"""Seeded streams and queries over them: CORE's stock, smart-home and taxi shapes, and a dense one.

A stream is made in blocks, each from its own seed, so the first n events are the same however many are
asked for, and 100 million of them pass through as record batches without ever being in memory at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BLOCK = 1 << 17
"""Events per block and per record batch."""

Codes = dict[str, NDArray[np.int64] | NDArray[np.float64]]
"""The columns of one block; strings as codes into `Column.words`."""

Step = tuple[str, str]
"""The type and the condition of one event of a sequence."""


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute; `kind` is int, double or string, in CORE's words; `words` are a string's values."""

    name: str
    kind: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchmarkQuery:
    """A query, and the same pattern with a window for which it has some answers, but few: for the check.

    `answers` is what is known beforehand: "none" (the last event never occurs), "some", or "one" (the
    answer is cut to one complex event at each end position). With `around` the check is made over a
    stream thinned out around one match of these steps.
    """

    name: str
    text: str
    answers: str
    check: str
    around: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """A stream and its queries. Several `types` are told apart by the column ``type``; one needs none."""

    name: str
    stream: str
    types: tuple[str, ...]
    columns: tuple[Column, ...]
    time: str | None
    make: Callable[[np.random.Generator, int, int], Codes]
    queries: tuple[BenchmarkQuery, ...]
    seed: int = 20_231

    @property
    def type_column(self) -> str | None:
        """The column that holds the type, where there are several."""
        return "type" if len(self.types) > 1 else None

    def blocks(self, events: int) -> Iterator[Codes]:
        """The first `events` events of the stream, block by block, as codes."""
        for index in range(-(-events // BLOCK)):
            random = np.random.default_rng([self.seed, index])
            block = self.make(random, index * BLOCK, BLOCK)
            left = events - index * BLOCK
            yield block if left >= BLOCK else {name: codes[:left] for name, codes in block.items()}

    def batches(self, events: int, *, dictionary: bool = False) -> Iterator[pa.RecordBatch]:
        """The same as record batches, strings plain or dictionary-encoded."""
        schema = self.schema(dictionary=dictionary)
        for block in self.blocks(events):
            arrays = [self._array(name, block[name], dictionary) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def table(self, events: int, *, dictionary: bool = False) -> pa.Table:
        """The same as one table in memory."""
        return pa.Table.from_batches(
            list(self.batches(events, dictionary=dictionary)), self.schema(dictionary=dictionary)
        )

    def schema(self, *, dictionary: bool = False) -> pa.Schema:
        """The columns as Arrow names them."""
        text: pa.DataType = pa.dictionary(pa.int32(), pa.string()) if dictionary else pa.string()
        arrow = {"int": pa.int64(), "double": pa.float64(), "string": text}
        fields = [pa.field(column.name, arrow[column.kind]) for column in self.columns]
        return pa.schema([pa.field("type", text), *fields] if self.type_column else fields)

    def save_codes(self, path: Path, events: int, rows: NDArray[np.int64] | None = None) -> None:
        """Writes the first `events` events, or only these `rows` of them, as NPZ for the driver of CORE."""
        blocks = list(self.blocks(events))
        arrays = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        arrays.setdefault("type", np.zeros(events, np.int64))
        if rows is not None:
            arrays = {name: codes[rows] for name, codes in arrays.items()}
        words = {f"{column.name}_words": np.array(column.words) for column in self.columns if column.words}
        np.savez(path, allow_pickle=False, **arrays, **words)

    def _array(self, name: str, codes: NDArray[np.int64] | NDArray[np.float64], dictionary: bool) -> pa.Array:
        words = {"type": self.types, **{column.name: column.words for column in self.columns}}[name]
        if not words:
            return pa.array(codes)
        encoded = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words))
        return encoded if dictionary else encoded.dictionary_decode()


def _ticks(random: np.random.Generator, first: int, count: int, gap: int) -> NDArray[np.int64]:
    """Times that rise by `gap` ticks on average and by 0 to 2 · gap, with ties; a formula of the position."""
    return np.arange(first, first + count) * gap + random.integers(0, gap + 1, count)


LENGTHS = (3, 6, 9, 12, 24)
WINDOW = 10_000
NEVER = "NEVER"

CHECK_RATES = {3: 3.0, 6: 3.0, 9: 4.5, 12: 7.0, 24: 30.0}
"""For each length, how many events of each step a window of the check holds in the stream as it is."""
THINNED_LENGTH = 24
"""From this length on, the check needs a thinned stream."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """``T1 ; T2 ; …`` out of many kinds of events, for each length, the last event occurring or never.

    `steps(n)` gives the n events, `never` the one that does not occur; one event of each step comes
    every `ticks` ticks; `common` is a condition on all of them.
    """

    stream: str
    steps: Callable[[int], list[Step]]
    never: Step
    time: str
    ticks: int
    common: str = ""

    def queries(self) -> Iterator[BenchmarkQuery]:
        """All lengths, both ends."""
        for length in LENGTHS:
            for occurs in (True, False):
                parts = self.steps(length) if occurs else [*self.steps(length - 1), self.never]
                yield BenchmarkQuery(
                    name=f"{length} events, last {'occurs' if occurs else 'never occurs'}",
                    text=self._text(parts, WINDOW),
                    answers="some" if occurs else "none",
                    check=self._text(parts, round(CHECK_RATES[length] * self.ticks)),
                    around=self._around(parts) if occurs and length >= THINNED_LENGTH else (),
                )

    def _around(self, parts: list[Step]) -> tuple[Step, ...]:
        extra = f" AND {self.common}" if self.common else ""
        return tuple((kind, condition + extra) for kind, condition in parts)

    def _text(self, parts: list[Step], window: int) -> str:
        sequence = " ; ".join(f"{kind} AS e{k}" for k, (kind, _) in enumerate(parts, 1))
        conditions = [f"e{k}[{condition}]" for k, (_, condition) in enumerate(parts, 1)]
        if self.common:
            sequence, conditions = f"({sequence}) AS every", [f"every[{self.common}]", *conditions]
        else:
            sequence = f"({sequence})"
        filters = " AND ".join(conditions)
        return f"SELECT * FROM {self.stream} WHERE {sequence} FILTER {filters} WITHIN {window} [{self.time}]"


# Stock market: BUY and SELL of 100 names, about 625 events in 10,000 ticks as in CORE's data.
TRADED = ("INTC", "RIMM", "QQQ", "IPIX", "AMAT", "CSCO", "YHOO", "DELL", "ORCL", "MSFT")
NAMES = TRADED + tuple(f"S{number:03d}" for number in range(100 - len(TRADED)))


def _stock(random: np.random.Generator, first: int, count: int) -> Codes:
    return {
        "type": random.integers(0, 2, count),
        "name": random.integers(0, len(NAMES), count),
        "volume": random.integers(1, 10_000, count),
        "price": np.round(random.uniform(5, 100, count), 2),
        "stock_time": _ticks(random, first, count, 16),
    }


def _stock_steps(length: int) -> list[tuple[str, str]]:
    return [("SELL" if k % 3 == 0 else "BUY", f"name = '{TRADED[k % len(TRADED)]}'") for k in range(length)]


STOCK = Workload(
    name="stock",
    stream="S",
    types=("BUY", "SELL"),
    columns=(
        Column("name", "string", NAMES),
        Column("volume", "int"),
        Column("price", "double"),
        Column("stock_time", "int"),
    ),
    time="stock_time",
    make=_stock,
    queries=tuple(
        Sequences("S", _stock_steps, ("BUY", f"name = '{NEVER}'"), "stock_time", ticks=3_200).queries()
    ),
)


# Smart homes: load measurements of 20 households, one in twelve above the threshold.
HOUSEHOLDS = 20


def _smart_home(random: np.random.Generator, first: int, count: int) -> Codes:
    return {
        "plug_timestamp": _ticks(random, first, count, 10),
        "value": np.round(random.exponential(30.0, count), 3),
        "plug_id": random.integers(0, 8, count),
        "household_id": random.integers(0, HOUSEHOLDS, count),
    }


def _smart_home_steps(length: int) -> list[tuple[str, str]]:
    return [("LOAD", f"household_id = {(2 * k) % HOUSEHOLDS}") for k in range(length)]


SMART_HOME = Workload(
    name="smart-home",
    stream="LOAD",
    types=("LOAD",),
    columns=(
        Column("plug_timestamp", "int"),
        Column("value", "double"),
        Column("plug_id", "int"),
        Column("household_id", "int"),
    ),
    time="plug_timestamp",
    make=_smart_home,
    queries=tuple(
        Sequences(
            "LOAD",
            _smart_home_steps,
            ("LOAD", "household_id = 1000"),
            "plug_timestamp",
            ticks=2_500,
            common="value > 76",
        ).queries()
    ),
)


# Taxis: trips between 16 zones; a sequence is a path, each trip beginning where the last one ended.
ZONES = (
    "East Harlem North", "Midwood", "Gravesend", "West Brighton", "Astoria", "Bushwick South", "Chinatown",
    "Clinton East", "Crown Heights North", "East Village", "Flatlands", "Gramercy", "JFK Airport",
    "Long Island City", "Morningside Heights", "Upper West Side South",
)  # fmt: skip


def _taxi(random: np.random.Generator, first: int, count: int) -> Codes:
    return {
        "pickup_zone": random.integers(0, len(ZONES), count),
        "dropoff_zone": random.integers(0, len(ZONES), count),
        "fare_amount": np.round(random.gamma(3.0, 4.0, count), 2),
        "dropoff_datetime": _ticks(random, first, count, 10),
    }


def _taxi_steps(length: int) -> list[tuple[str, str]]:
    stops = [ZONES[k % len(ZONES)] for k in range(length + 1)]
    return [
        ("TRIP", f"pickup_zone = '{start}' AND dropoff_zone = '{end}'")
        for start, end in itertools.pairwise(stops)
    ]


TAXI = Workload(
    name="taxi",
    stream="TRIP",
    types=("TRIP",),
    columns=(
        Column("pickup_zone", "string", ZONES),
        Column("dropoff_zone", "string", ZONES),
        Column("fare_amount", "double"),
        Column("dropoff_datetime", "int"),
    ),
    time="dropoff_datetime",
    make=_taxi,
    queries=tuple(
        Sequences(
            "TRIP", _taxi_steps, ("TRIP", f"pickup_zone = '{NEVER}'"), "dropoff_datetime", ticks=2_560
        ).queries()
    ),
)


# Dense: three types, every event matters to every query.
DENSE_PATTERNS = {
    "sequence": "A ; B ; C",
    "sequence, last never occurs": f"A ; B ; C ; {NEVER}",
    "Kleene": "A ; B+ ; C",
    "Kleene, last never occurs": f"A ; B+ ; C ; {NEVER}",
    "Kleene of a disjunction": "(A OR B)+ ; C",
}
DENSE_WINDOWS = (100, 10_000)
CURVE_WINDOWS = (100, 1_000, 10_000, 100_000)


def dense_text(pattern: str, window: int, *, limit: int | None = None, select: str = "*") -> str:
    """A query of the dense workload: one of `DENSE_PATTERNS` with a window of that many events."""
    cut = f" LIMIT {limit}" if limit else ""
    return f"SELECT {select} FROM S WHERE {DENSE_PATTERNS[pattern]} WITHIN {window} EVENTS{cut}"


def _dense(random: np.random.Generator, _first: int, count: int) -> Codes:
    return {
        "type": random.integers(0, 3, count),
        "value": random.integers(0, 1_000, count),
    }


def _dense_queries() -> Iterator[BenchmarkQuery]:
    for pattern in DENSE_PATTERNS:
        for window in DENSE_WINDOWS:
            never = "never" in pattern
            text = dense_text(pattern, window, limit=None if never else 1)
            check = dense_text(pattern, 12)
            name = f"{pattern}, window {window:,}"
            yield BenchmarkQuery(name, text, "none" if never else "one", check)


DENSE = Workload(
    name="dense",
    stream="S",
    types=("A", "B", "C", NEVER),
    columns=(Column("value", "int"),),
    time=None,
    make=_dense,
    queries=tuple(_dense_queries()),
)

WORKLOADS = {workload.name: workload for workload in (STOCK, SMART_HOME, TAXI, DENSE)}
