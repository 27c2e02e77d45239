"""The queries whose costs are followed as windows or streams grow, their events, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import estero
from estero.reference.queries import ComplexEvent, Event, is_answer

SHORT = 12
"""Events of the streams on which answers are compared with the reference."""
SHORT_WINDOW = 9

Shape = Literal["flat", "log n", "log² n", "n"]

_DIFFERENT = 0.1
"""Where events are alike, the share of those that do not have the values of most."""

PROMISED: dict[str, Shape] = {
    "cea": "flat",
    "cea-spans": "flat",
    "cea-aged": "flat",
    "cea-starts": "flat",
    "cea-split": "n",
    "chain-ed-index": "flat",
    "pcea-heap": "log n",
    "pcea-ordered-index": "log² n",
}
"""By the kernels of a plan, what an event may cost (docs/guarantees.md)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A query in whose text `w` is the window that grows; without one, the stream grows.

    Events are of `types`, drawn evenly, with one of `keys` values of k and of `values` values of m, as many
    as there are events where that is 0. `shape` is promised if that is less than what the plan promises
    otherwise. Where events are `falling`, B's come in the opposite order of the A's that have their keys;
    where they are `alike`, all but one in ten have the same values, so that what must differ is rare.
    `asked` is what is measured: recognition, or what a number costs. No window or stream is larger than
    `largest`. Event i has time i, in t, which is the time column where the query asks for times.
    """

    pattern: str
    types: str = "ABC"
    keys: int = 0
    values: int = 0
    shape: Shape | None = None
    falling: bool = False
    alike: bool = False
    asked: Literal["recognize", "count", "count a share"] = "recognize"
    select: str = "*"
    largest: int = 1_000_000

    @property
    def name(self) -> str:
        """The row among the others."""
        select = "" if self.select == "*" else f"SELECT {self.select} WHERE "
        asked = {"recognize": "", "count": ": count()", "count a share": ": share(1, 2).count()"}[self.asked]
        return f"{select}{self.pattern}{asked}{' (events alike)' if self.alike else ''}"

    @property
    def windowed(self) -> bool:
        """Whether the window grows, and not the stream."""
        return " WITHIN w EVENTS" in self.pattern

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that say the type and the time, as arguments."""
        return {"type": "kind"} | ({"time": "t"} if "[t]" in self.pattern else {})

    def text(self, window: int) -> str:
        """The query."""
        pattern = self.pattern.replace("w EVENTS", f"{window} EVENTS")
        return f"SELECT {self.select} WHERE {pattern}"

    def events(self, count: int, size: int, seed: int = 1) -> pa.Table:
        """So many events for a window or stream of `size`: ``kind``, ``t``, ``k``, ``m``, ``n``."""
        if self.falling:
            return _falling(count, size)
        draw = np.random.default_rng(seed)
        # First, so that a longer stream begins with the types of a shorter one.
        kinds = np.array(list(self.types))[draw.integers(0, len(self.types), count)]
        ranges = {"k": self.keys, "m": self.values, "n": self.values}
        values = {name: draw.integers(0, most or max(size, 2), count) for name, most in ranges.items()}
        if self.alike:
            different = draw.random(count) < _DIFFERENT
            values = {name: np.where(different, each, 0) for name, each in values.items()}
        return pa.table({"kind": kinds, "t": np.arange(count), **values})


def _falling(count: int, size: int) -> pa.Table:
    """In each block of a window's length A's of many keys, their B's from the last key to the first, a C."""
    half = size // 2
    place = np.arange(count) % (2 * half)
    key = np.where(place < half, place, 2 * half - 1 - place)
    kind = np.where(place < half, "A", "B")
    kind[place == 2 * half - 1] = "C"
    return pa.table({"kind": kind, "k": key, "m": key})


ROWS = (
    # neighbours compared by = and !=, along the stream
    Row("(A+ PARTITION BY [k])+", types="A"),
    Row("(A+ PARTITION BY [k]) ; (A+ PARTITION BY [m])", types="A"),
    Row("((A ; B PARTITION BY [k]) ; C) OR (A ; (B ; C PARTITION BY [k]))"),
    Row("C+ ; A AS a ; B AS b FILTER NOT a.k = b.k"),
    Row("A AS a ; B AS b FILTER a.k = b.k OR a.m = b.m", types="AB"),
    Row("A AS a ; B AS b FILTER a.k = b.k + 1", types="AB"),
    Row("A AS a ; B AS b FILTER NOT (a.k = b.k AND a.m = b.m)", keys=5, values=5, types="AB"),
    Row("A AS a ; B AS b FILTER a.k != b.k AND a.m != b.m", keys=5, values=5, types="AB"),
    Row("A AS a ; B AS b ; C AS c FILTER a.k != b.k AND b.k != c.k", keys=5),
    Row("(A ; B PARTITION BY [k]) ; (A ; B PARTITION BY [m])", types="AB"),
    Row("((A ; B PARTITION BY [k])+ ; C PARTITION BY [m])"),
    Row("((A AS a ALL B AS b) ; C AS c FILTER a.k = c.k AND b.k = c.k)+", keys=10),
    Row(
        "A AS a ; B AS b FILTER a.k != b.k AND a.m != b.m AND a.n != b.n",
        keys=5,
        values=5,
        types="AB",
    ),
    Row("A AS a ; B AS b FILTER a.k != b.k AND a.m != b.m", types="AB", keys=3, values=3, alike=True),
    Row("A AS a ; B AS b FILTER a.k = b.k OR a.m = b.m", types="AB", keys=3, values=3, alike=True),
    # parts that a later event gathers, and neighbours in a window
    Row("(A AS t ALL B AS s) ; C AS r FILTER t.k = r.k AND s.k = r.k AND s.m = r.m"),
    Row("(A ; B PARTITION BY [k]) ALL C"),
    Row("(A AS a ; B AS b) ALL C AS c FILTER b.k = c.k"),
    Row("A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k WITHIN w EVENTS"),
    Row(
        "A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.m = c.m WITHIN w EVENTS",
        keys=1,
        values=1,
        shape="flat",
    ),
    Row("A AS a ; B AS b ; C FILTER a.k = b.k WITHIN w EVENTS", falling=True),
    Row("A AS a ; B AS b FILTER abs(a.k) = abs(b.k) WITHIN w EVENTS", types="AB"),
    Row("A AS a ; B AS b FILTER a.m < b.m WITHIN w EVENTS", types="AB"),
    Row("A+ AS a ; C FILTER increasing(a.m) WITHIN w EVENTS", types="AC"),
    Row("A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.m < c.m WITHIN w EVENTS", keys=10),
    Row("A AS a ; B AS b FILTER a.m < b.m WITHIN w EVENTS", types="AB", keys=3, values=3, alike=True),
    Row("A AS a ; B AS b FILTER a.m != b.m WITHIN w EVENTS", types="AB", keys=3, values=3, alike=True),
    Row("A AS a ALL A AS b ALL A AS c FILTER a.k = b.k AND b.k = c.k WITHIN w EVENTS", types="A"),
    # every operator, conditions on one event
    Row("A ; B+ ; C WITHIN w EVENTS"),
    Row("A ; B ; C WITHIN w EVENTS"),
    Row("(A OR B)+ ; C WITHIN w EVENTS"),
    # strategies
    Row("A+ ; B", types="AB", select="MAX *"),
    Row("A ; B+ ; C", select="MAX *"),
    Row("A+ ; B+ ; C+ WITHIN w EVENTS", select="MAX *"),
    Row("A ; B+ ; C", select="NEXT *"),
    Row("A ; B+ ; C WITHIN w EVENTS", select="NEXT *"),
    Row("A ; B+ ; C", select="LAST *"),
    Row("A ; B+ ; C WITHIN w EVENTS", select="LAST *"),
    # one for each start, a limit in time, distances
    Row("A+ ; B WITHIN w EVENTS", types="AB", select="LONGEST DISJOINT *"),
    Row("A ; B+ ; C WITHIN w EVENTS", select="LONGEST DISJOINT *"),
    Row("A ; B+ ; C WITHIN w EVENTS", select="SHORTEST DISJOINT *"),
    Row(
        "A+[<= 3 EVENTS] : C WITHIN w EVENTS",
        types="AC",
        select="LONGEST DISJOINT *",
        shape="flat",
        largest=100_000,
    ),
    Row("A AS a ; B AS b FILTER a.m < b.m WITHIN w EVENTS", types="AB", select="LONGEST *", largest=1_000),
    Row("A AS a ; B AS b FILTER a.m < b.m WITHIN w EVENTS", types="AB", select="SHORTEST *", largest=1_000),
    Row("A ; B ; C WITHIN w EVENTS LIMIT 1 PER 50 [t]", shape="n", largest=10_000),
    Row("A ;[<= 50 EVENTS] B ; C WITHIN w EVENTS"),
    Row("A ;[>= 5 EVENTS] B+[<= 3 EVENTS] ; C WITHIN w EVENTS"),
    # numbers
    Row("A ; B+ ; C WITHIN w EVENTS", asked="count", shape="log n"),
    Row("A ; B+ ; C WITHIN w EVENTS", asked="count a share", shape="log n"),
    Row("A ; B ; C WITHIN w EVENTS", asked="count"),
    Row("A ; B ; C WITHIN w EVENTS", asked="count a share"),
)


def check(row: Row) -> None:
    """Compares answers and their numbers on short streams with the reference; raises where they differ."""
    query = estero.query(row.text(SHORT_WINDOW))
    for seed in range(3):
        table = row.events(SHORT, 3 if not row.falling else 8, seed)
        events = [Event(each.pop("kind"), each, each.get("t")) for each in table.to_pylist()]
        answer = query.run(table, **row.columns)
        found = [(each.start, each.end, _labels(each.positions)) for each in answer]
        numbers = [len(found), answer.count(), sum(answer.share(place, 2).count() for place in range(2))]
        by_end: dict[int, set[ComplexEvent]] = {}
        for start, end, labels in found:
            by_end.setdefault(end, set()).add(ComplexEvent(start, end, labels))
        if numbers != [sum(map(len, by_end.values()))] * 3:
            raise ValueError(
                f"{row.name}: {len(found)} complex events, {numbers[1]} counted, {numbers[2]} in shares"
            )
        if not is_answer(query.tree, events, by_end):
            raise ValueError(f"{row.name}: the reference has other complex events than these {len(found)}")


def _labels(positions: Mapping[str, Sequence[int]]) -> frozenset[tuple[str, frozenset[int]]]:
    return frozenset((name, frozenset(at)) for name, at in positions.items() if at)
