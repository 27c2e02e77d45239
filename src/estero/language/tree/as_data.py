"""Trees of frozen dataclasses as data of JSON, and back: numbers, texts and lists, and nothing to be run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

from estero.errors import NOWHERE, Span

_TUPLE: Final = -1
_SPAN: Final = "span"


class TreeData:
    """Writes and reads trees of some `classes`, which go by their places; the order is a part of the format.

    A node is a list of its class, its fields in order, and the start and the end of its span if it has one.
    What stands in a tuple is a list behind -1.
    """

    def __init__(self, classes: Sequence[type]) -> None:
        self._places = {kind: place for place, kind in enumerate(classes)}
        self._kinds = [(kind, *_shape(kind)) for kind in classes]

    @property
    def format(self) -> str:
        """All that has to be the same where data is written and where it is read."""
        return repr([(kind.__name__, names, spanned) for kind, names, spanned in self._kinds])

    def written(self, value: Any) -> Any:
        """A tree as data; TypeError for a value of any other class."""
        if value is None or type(value) in (str, int, float, bool):
            return value
        if type(value) is tuple:
            return [_TUPLE, *map(self.written, value)]
        place = self._places.get(type(value))
        if place is None:
            raise TypeError(f"a tree with {type(value).__name__} is not written")
        _, names, spanned = self._kinds[place]
        own = [place, *(self.written(getattr(value, name)) for name in names)]
        return [*own, value.span.start, value.span.end] if spanned else own

    def read(self, data: Any) -> Any:
        """The tree of data; IndexError, TypeError or ValueError for data that was not written here."""
        if type(data) is not list:
            return data
        place = data[0]
        if place == _TUPLE:
            return tuple([self.read(item) for item in data[1:]])
        if type(place) is not int or place < 0:
            raise ValueError(f"there is no class {place!r}")
        kind, names, spanned = self._kinds[place]
        count = len(names)
        if len(data) != 1 + count + 2 * spanned:
            raise ValueError(f"{kind.__name__} has {count} fields")
        make: Callable[..., Any] = kind
        values = {name: self.read(item) for name, item in zip(names, data[1:], strict=False)}
        return make(**values, span=_span(data[-2], data[-1])) if spanned else make(**values)


def _shape(kind: type) -> tuple[tuple[str, ...], bool]:
    """The fields of a class without its span, and whether it has one."""
    names = [field.name for field in fields(kind) if field.init]
    return tuple(name for name in names if name != _SPAN), _SPAN in names


def _span(start: Any, end: Any) -> Span:
    return NOWHERE if (start, end) == (NOWHERE.start, NOWHERE.end) else Span(start, end)
