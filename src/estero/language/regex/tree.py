"""Regular expressions as trees, without laziness and groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Ranges = tuple[tuple[int, int], ...]
"""A set of code points: disjoint ranges in order, both ends included."""

LAST: Final = 0x10FFFF
"""The last code point."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    r"""A place between characters: the beginning ``^`` or end ``$`` of the text, ``\b`` or ``\B``."""

    sign: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """`least` to `most` times `part`; no end without `most`."""

    part: Part
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One part after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of several parts."""

    parts: tuple[Part, ...]


Part = Characters | Edge | Repeated | Row | Choice


def united(spans: Iterable[tuple[int, int]]) -> Ranges:
    """The same set of code points as disjoint ranges in order."""
    united: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], high))
        else:
            united.append((low, high))
    return tuple(united)


def complement(ranges: Ranges) -> Ranges:
    """All other code points."""
    edges = [-1, *(edge for low, high in ranges for edge in (low, high)), LAST + 1]
    gaps = ((edges[i] + 1, edges[i + 1] - 1) for i in range(0, len(edges), 2))
    return tuple((low, high) for low, high in gaps if low <= high)


def folded(ranges: Ranges) -> Ranges:
    """The ranges with the other case of their ASCII letters."""
    others = []
    for low, high in ranges:
        for first, shift in ((65, 32), (97, -32)):
            begin, end = max(low, first), min(high, first + 25)
            if begin <= end:
                others.append((begin + shift, end + shift))
    return united([*ranges, *others])
