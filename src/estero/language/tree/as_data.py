"""Trees of frozen dataclasses as data of JSON, and back: numbers, texts and lists, and nothing to be run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

from estero.errors import NOWHERE, Span

_TUPLE: Final = -1
_SPAN: Final = "span"


class TreeData:
    """Writes and reads trees of some `classes`, which go by their places.

    A node is a list of its class, its fields, those that go by their names last, and the start and the end of
    its span if it has one.
    What stands in a tuple is a list behind -1.
    """

    def __init__(self, classes: Sequence[type]) -> None:
        self._places = {kind: place for place, kind in enumerate(classes)}
        self._kinds: list[tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...], bool]] = [
            (kind, *_shape(kind)) for kind in classes
        ]

    def written(self, value: Any) -> Any:
        """A tree as data; TypeError for a value of any other class."""
        if value is None or type(value) in (str, int, float, bool):
            return value
        if type(value) is tuple:
            return [_TUPLE, *map(self.written, value)]
        place = self._places.get(type(value))
        if place is None:
            raise TypeError(f"a tree with {type(value).__name__} is not written")
        _, names, named, spanned = self._kinds[place]
        own = [place, *(self.written(getattr(value, name)) for name in (*names, *named))]
        return [*own, value.span.start, value.span.end] if spanned else own

    def read(self, data: Any) -> Any:
        """The tree of data; IndexError, TypeError or ValueError for data that was not written here."""
        if type(data) is not list:
            return data
        place, read = data[0], self.read
        if place == _TUPLE:
            return tuple([read(item) if type(item) is list else item for item in data[1:]])
        if type(place) is not int or place < 0:
            raise ValueError(f"there is no class {place!r}")
        make, names, named, spanned = self._kinds[place]
        last = 1 + len(names)
        if len(data) != last + len(named) + 2 * spanned:
            raise ValueError(f"class {place} has other fields")
        values = [read(item) if type(item) is list else item for item in data[1:last]]  # a call costs more
        if not named:
            return make(*values, span=_span(data[-2], data[-1])) if spanned else make(*values)
        further = dict(zip(named, map(read, data[last:]), strict=False))
        if spanned:
            further[_SPAN] = _span(data[-2], data[-1])
        return make(*values, **further)


def _shape(kind: type) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The fields of a class by their places, those that go by their names, and whether it has a span."""
    taken = [field for field in fields(kind) if field.init]
    others = [field for field in taken if field.name != _SPAN]
    names, named = (
        tuple(field.name for field in others if field.kw_only is by_name) for by_name in (False, True)
    )
    return names, named, len(others) < len(taken)


@lru_cache(maxsize=1 << 14)  # many rules have spans at the same places
def _span(start: Any, end: Any) -> Span:
    return NOWHERE if (start, end) == (NOWHERE.start, NOWHERE.end) else Span(start, end)
