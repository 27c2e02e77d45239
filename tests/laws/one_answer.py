"""One stream and queries of every kind, with the answers that the reference semantics give.

Whatever runs these queries over this stream has to find these answers: each complex event is there as the
numbers of its events by label, and number `n` is an event's position.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

import estero
from estero.reference.queries import Event, evaluate_query
from strategies.patterns import TICK, from_table, to_table

HOW: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
"""Where the parts of an event stand."""

QUERIES = {
    "keys": "SELECT a[n], b[n] WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 9 SECONDS",
    "keys, contiguous": "SELECT a[n], b[n] WHERE A AS a : B AS b PARTITION BY [k] WITHIN 6 [time]",
    "keys, places": "SELECT a[n], b[n] WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 12 EVENTS",
    "keys, forgotten": "SELECT a[n], b[n] WHERE A AS a ; B AS b PARTITION BY [k] CONSUME BY PARTITION",
    "ranges": "SELECT a[n], b[n], c[n] WHERE A AS a ; B AS b ; C AS c WITHIN 4 [time]",
    "ranges, places": "SELECT a[n], b[n] WHERE A AS a ; (B AS b){1,2} WITHIN 7 EVENTS",
    "shares": "SELECT a[n], b[n] WHERE A AS a ; B AS b FILTER a[x > 1]",
    "one order": "SELECT a[n], b[n], c[n] WHERE A AS a ; B AS b ; C AS c CONSUME BY ANY",
    "correlated by key": "SELECT a[n], b[n] WHERE A AS a ; B AS b"
    " FILTER a.k = b.k AND a.x < b.x WITHIN 9 [time]",
    "correlated": "SELECT a[n], b[n] WHERE A AS a ; B AS b FILTER a.s != b.s AND a.x <= b.x WITHIN 5 [time]",
    "joined": "SELECT a[n], b[n], c[n] WHERE (A AS a ALL B AS b ALL C AS c)"
    " FILTER a.k = b.k AND b.k = c.k WITHIN 4 [time]",
}
"""Queries by how they are divided on Spark, or why they are not."""

Found = list[tuple[tuple[str, tuple[int, ...]], ...]]
"""Complex events in one order: a multiset."""


def events(number: int = 90, seed: int = 11) -> pa.Table:
    """Events with ties in time and silence, NULLs in all but time and `n`, and one key with most of them."""
    draw = random.Random(seed)
    time, stream = 1, []
    for n in range(number):
        time += draw.choice([0, 0, 0, 1, 1, 2, 5])
        k = 1 if draw.random() < 0.7 else draw.choice([None, 2, 3, 4])
        x, s = draw.choice([None, 0.0, 1.0, 2.0, 3.0]), draw.choice([None, "u", "v"])
        stream.append(Event(draw.choice("ABC"), {"time": time, "n": n, "x": x, "s": s, "k": k}, time))
    return to_table(stream)


EVENTS = events()


@cache
def expected(name: str) -> Found:
    """What the reference semantics say."""
    return by_reference(QUERIES[name], from_table(EVENTS), TICK)


def by_reference(query: str, stream: Sequence[Event], tick: int) -> Found:
    """What the reference semantics say of events in stream order; never nothing."""
    answer = evaluate_query(estero.query(query).tree, stream, tick=tick)
    assert answer
    return sorted(_named(dict(each.labels)) for found in answer.values() for each in found)


def found(rows: Iterable[Mapping[str, Any]]) -> Found:
    """The rows of an answer in the same form."""
    return sorted(
        _named({name: [event["n"] for event in row[name]] for name in "abc" if row.get(name)}) for row in rows
    )


def _named(labels: Mapping[str, Iterable[int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((name, tuple(sorted(labels[name]))) for name in labels if name in "abc"))
