"""Trees of frozen dataclasses as data of JSON, and back: numbers, texts and lists, and nothing to be run.

Equal parts of many trees are written once. What is written is a list of parts, in blocks: plain values, then
tuples and nodes of one class and one height, which go by the numbers of the parts before them. So the nodes
of a block are made together, a field of all of them at once, and no tree has a part above itself.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice, repeat
from operator import itemgetter
from typing import Any, Final

from estero.errors import Span

_TUPLE: Final = -1
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class TreeData:
    """Reads trees of some `classes` with slots, which go by their places, and the spans of their nodes."""

    def __init__(self, name: str, classes: Sequence[type]) -> None:
        self.name = name
        self.classes = (*classes, Span)
        self._setters = [
            tuple(getattr(kind, field).__set__ for field in fields_of(kind)) for kind in self.classes
        ]

    def read(self, data: Any) -> list[Any]:
        """The trees that a `TreeWriter` has written; LookupError, TypeError or ValueError for other data."""
        parts: list[Any] = list(data["values"])
        if not _PLAIN.issuperset(map(type, parts)):
            raise ValueError("values are plain")
        for place, *columns in data["blocks"]:
            parts += _tuples(parts, *columns) if place == _TUPLE else self._nodes(parts, place, columns)
        return list(map(parts.__getitem__, data["trees"]))

    def _nodes(self, parts: list[Any], place: int, columns: list[list[int]]) -> list[Any]:
        """The nodes of a class whose fields are parts of these numbers, a column each."""
        nodes: list[Any] = list(map(object.__new__, repeat(self.classes[place], len(columns[0]))))
        for setter, column in zip(self._setters[place], columns, strict=True):
            if len(column) != len(nodes):
                raise ValueError("a node has a value in each column")
            deque(map(setter, nodes, map(parts.__getitem__, column)), maxlen=0)  # no step of it in Python
        return nodes


class TreeWriter:
    """Trees as data that `trees` reads."""

    def __init__(self, trees: TreeData) -> None:
        self._places = {kind: (place, fields_of(kind)) for place, kind in enumerate(trees.classes)}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._heights: list[int] = []
        self._trees: list[int] = []

    def add(self, tree: object) -> None:
        """Takes a tree; TypeError for a part of any other class."""
        self._trees.append(self._number(tree))

    def data(self) -> dict[str, Any]:
        """What was added, as data."""
        blocks: dict[tuple[int, int], list[tuple[Any, ...]]] = defaultdict(list)
        values: list[object] = []
        order: list[int] = []
        for (key, number), height in zip(self._numbers.items(), self._heights, strict=True):
            if height:
                blocks[height, key[0]].append((*key, number))
            else:
                values.append(key[1])
                order.append(number)
        for _, block in sorted(blocks.items(), key=itemgetter(0)):
            order += [part[-1] for part in block]
        places = [0] * len(order)
        for place, number in enumerate(order):
            places[number] = place
        written = [
            [kind, *_columns(kind, [[places[number] for number in part[1:-1]] for part in block])]
            for (_, kind), block in sorted(blocks.items(), key=itemgetter(0))
        ]
        return {"values": values, "blocks": written, "trees": [places[number] for number in self._trees]}

    def _number(self, value: Any) -> int:
        """The number of a part, the same one for an equal part."""
        kind = type(value)
        key: tuple[Any, ...]
        if kind in _PLAIN:
            key = (kind, value) if kind is not float else (kind, value, repr(value))  # 0.0 is no -0.0
        elif kind is tuple:
            key = (_TUPLE, *map(self._number, value))
        else:
            if kind not in self._places:
                raise TypeError(f"a tree with {kind.__name__} is not written")
            place, names = self._places[kind]
            key = (place, *[self._number(getattr(value, name)) for name in names])
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._heights)
            heights = self._heights
            heights.append(0 if kind in _PLAIN else 1 + max(map(heights.__getitem__, key[1:]), default=0))
        return known


def fields_of(kind: type) -> tuple[str, ...]:
    """The names of the fields of a class of trees."""
    return tuple(field.name for field in fields(kind))


def _columns(kind: int, parts: list[list[int]]) -> list[Any]:
    """What a block has of its parts: their lengths and numbers for tuples, else a column for each field."""
    if kind == _TUPLE:
        return [[len(part) for part in parts], [number for part in parts for number in part]]
    return list(zip(*parts, strict=True))


def _tuples(parts: list[Any], lengths: list[int], numbers: list[int]) -> Iterator[tuple[Any, ...]]:
    """The tuples of these lengths of the parts with these numbers, one after the other."""
    if sum(lengths) != len(numbers):
        raise ValueError("tuples have all of the numbers")
    items = iter(list(map(parts.__getitem__, numbers)))
    return (tuple(islice(items, length)) for length in lengths)
