"""Events of which some have no key, and queries that compare keys: NULL matches nothing, not even NULL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_ROWS = [
    ("T", None, None, None),
    ("S", None, None, None),
    ("T", 1, "u", math.nan),
    ("R", None, "u", 1.0),
    ("S", 1, None, math.nan),
    ("T", 2, None, None),
    ("S", 2, "u", None),
    ("R", 1, "u", math.nan),
    ("S", None, "v", 2.5),
    ("T", None, "u", 2.5),
    ("R", 2, None, 2.5),
]
EVENTS = pa.Table.from_pylist(
    [
        {"type": kind, "at": at, "k": key, "name": name, "x": number, "m": at % 2}
        for at, (kind, key, name, number) in enumerate(_ROWS)
    ],
    schema=pa.schema(
        {
            "type": pa.string(),
            "at": pa.int64(),
            "k": pa.int64(),
            "name": pa.string(),
            "x": pa.float64(),
            "m": pa.int64(),
        }
    ),
)

QUERIES: dict[str, tuple[str, str, bool]] = {
    "conjunctive": ("Q(x) <- T(k: x), S(k: x)", "k", True),
    "conjunctive, strings": ("Q(x) <- T(name: x), R(name: x)", "name", True),
    "conjunctive, two values": ("Q(x, y) <- T(k: x, name: y), R(k: x, name: y)", "k", True),
    "equal": ("SELECT * WHERE T AS a ; S AS b FILTER a.k = b.k", "k", True),
    "equal numbers": ("SELECT * WHERE T AS a ; S AS b FILTER a.x = b.x", "x", True),
    "nested partition": ("SELECT * WHERE (T ; S) PARTITION BY [k]", "k", True),
    "partition": ("SELECT * WHERE T ; S PARTITION BY [k]", "k", True),
    "joined": ("SELECT * WHERE T AS a ALL S AS b ALL R AS c FILTER a.k = b.k AND b.k = c.k", "k", True),
    "chain": (
        "SELECT * WHERE T AS a ; S AS b ; R AS c FILTER a.k = b.k AND b.k = c.k AND a.m != b.m",
        "k",
        True,
    ),
    "chain, ordered": (
        "SELECT * WHERE T AS a ; S AS b FILTER a.k = b.k AND a.m <= b.m WITHIN 20 EVENTS",
        "k",
        True,
    ),
    "different": ("SELECT * WHERE T AS a ; S AS b FILTER a.k != b.k", "k", False),
    "different in a window": ("SELECT * WHERE T AS a ; R AS b FILTER a.k != b.k WITHIN 20 [at]", "k", False),
    "ordered": ("SELECT * WHERE T AS a ; R AS b FILTER a.k <= b.k WITHIN 20 [at]", "k", False),
    "different strings": ("SELECT * WHERE T AS a ; S AS b FILTER a.name != b.name", "name", False),
}
"""A query, the attribute that it compares, and whether all events of an answer share its value."""


def keys_of(row: dict[str, Any], name: str) -> list[Any]:
    """The values of an attribute in all events of a row."""
    return [event[name] for value in row.values() if isinstance(value, list) for event in value]


def pairs_of(answer: list[dict[str, Any]]) -> Iterator[tuple[int, ...]]:
    """The times of the events of each row, which are their positions."""
    for row in answer:
        yield tuple(sorted(set(keys_of(row, "at"))))
