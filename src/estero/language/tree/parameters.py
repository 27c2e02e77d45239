"""Parameters: ``$name`` where a constant stands, until a value is bound to it.

What is open stands in for a value of the kind that is wanted, so that a tree with parameters has the same
types as one without, and prints as ``$name``: a number, a text, a window, a constant or a list (`Parameter`
and `ListOf` of expressions.py). Whoever evaluates a tree refuses one that has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from estero.errors import NOWHERE, Span
from estero.language.tree import expressions as e
from estero.language.tree.distances import DurationWindow
from estero.language.tree.durations import Duration, TimeUnit
from estero.language.tree.nodes import OpenText, SyntaxNode, with_changed
from estero.language.tree.pattern import Pattern, settled

T = TypeVar("T")


class OpenNumber(int):
    """``$n`` in the place of a whole number, as in ``LIMIT $n``."""

    name: str
    span: Span

    @classmethod
    def of(cls, name: str, span: Span) -> OpenNumber:
        """The parameter of a name."""
        number = cls(1)
        number.name, number.span = name, span
        return number

    def __str__(self) -> str:
        return f"${self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenNumber) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return (OpenNumber.of, (self.name, self.span))


@dataclass(frozen=True, slots=True)
class OpenWindow(DurationWindow):
    """``$d`` in the place of a duration, as in ``WITHIN $d``."""

    parts: tuple[tuple[int, TimeUnit], ...] = ((1, TimeUnit.SECONDS),)
    name: str = ""

    def __str__(self) -> str:
        return f"${self.name}"


Open = OpenNumber | OpenText | OpenWindow | e.Parameter | e.ListOf
"""What stands for a value."""


def opened(tree: object) -> Iterator[Open]:
    """All parameters of a tree that have no value, left to right as far as the fields are."""
    if isinstance(tree, OpenNumber | OpenText | OpenWindow | e.Parameter) or (
        isinstance(tree, e.ListOf) and tree.is_open
    ):
        yield tree
    elif isinstance(tree, tuple):
        for each in tree:
            yield from opened(each)
    elif is_dataclass(tree):
        for each in fields(tree):
            yield from opened(getattr(tree, each.name)) if each.compare else ()


def filled(tree: T, change: Callable[[Open], object]) -> T:
    """The same tree with `change` of each parameter that has no value."""
    return _filled(tree, change)  # type: ignore[return-value]


def _filled(tree: Any, change: Callable[[Open], object]) -> object:
    match tree:
        case OpenNumber() | OpenText() | OpenWindow() | e.Parameter():
            return change(tree)
        case e.InList(_, e.ListOf(is_open=True) as values):
            found = change(values)
            operand: Any = _filled(tree.operand, change)
            if isinstance(found, e.ListOf):
                return replace(tree, operand=operand, values=found)
            return e.In(operand, found, span=tree.span)  # type: ignore[arg-type]
        case SyntaxNode():
            found = with_changed(tree, lambda item: _filled(item, change))
            return settled(found) if isinstance(found, Pattern) else found
        case tuple():
            return tuple(_filled(each, change) for each in tree)
        case _ if is_dataclass(tree) and not isinstance(tree, type):
            names = [each.name for each in fields(tree) if each.compare]
            return replace(tree, **{name: _filled(getattr(tree, name), change) for name in names})
        case _:
            return tree


def beside_durations(tree: object) -> Iterator[e.Parameter]:
    """The parameters of a tree in the place of numbers or durations: in what is computed, or beside that.

    What is computed by ``+``, ``-``, ``*``, ``/`` or ``%``, and ``duration``, are never texts.
    """
    match tree:
        case e.Arithmetic() | e.Comparison() | e.Between() | e.In():
            terms = [each for each in tree.below() if isinstance(each, e.Node)]
            if isinstance(tree, e.Arithmetic) or any(map(_is_reckoned, terms)):
                yield from (each for each in terms if isinstance(each, e.Parameter))
    if isinstance(tree, tuple):
        for each in tree:
            yield from beside_durations(each)
    elif is_dataclass(tree):
        for each in fields(tree):
            yield from beside_durations(getattr(tree, each.name)) if each.compare else ()


def _is_reckoned(term: e.Node) -> bool:
    """Whether a value is computed of numbers, times or durations."""
    match term:
        case e.Arithmetic() | e.Negative() | e.Attribute("duration", None) | e.Literal(Duration()):
            return True
        case e.Aggregate(operand=e.Node() as operand):
            return _is_reckoned(operand)
        case e.Call(arguments=arguments):
            return any(map(_is_reckoned, arguments))
        case _:
            return False


def place_of(parameter: Open) -> Span:
    """Where a parameter is in the text."""
    return getattr(parameter, "span", NOWHERE)
