"""Parameters: ``$name`` where a constant stands, until a value is bound to it.

An open parameter stands in for a value of the wanted kind, so that a tree with parameters has the same
types as one without, and prints as ``$name``: a number, a text, a window, a constant or a list (`Parameter`
and `ListOf` of expressions.py). Evaluation refuses a tree with open parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from estero.errors import NOWHERE, Span
from estero.language.tree import expressions as e
from estero.language.tree.distances import DurationWindow
from estero.language.tree.durations import Duration, TimeUnit
from estero.language.tree.functions import SCALAR_FUNCTIONS
from estero.language.tree.nodes import OpenText, SyntaxNode, with_changed
from estero.language.tree.pattern import Pattern, settled
from estero.language.tree.schema import Kind

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

    def __ne__(self, other: object) -> bool:
        return not self == other  # that of integers would compare their values

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
"""An open parameter."""


def opened(tree: object) -> Iterator[Open]:
    """The open parameters of a tree, in the order of the fields."""
    if isinstance(tree, OpenNumber | OpenText | OpenWindow | e.Parameter) or (
        isinstance(tree, e.ListOf) and tree.is_open
    ):
        yield tree
    else:
        for node in _below(tree):
            yield from opened(node)


def _below(tree: object) -> Iterable[object]:
    """The parts of a tree of nodes, of a tuple, or of an automaton."""
    if isinstance(tree, tuple):
        return tree
    if isinstance(tree, Mapping):
        return tree.values()
    return (
        [getattr(tree, field.name) for field in fields(tree) if field.compare] if is_dataclass(tree) else ()
    )


def without_places(tree: T) -> T:
    """The tree with parameters without spans in the text of a query."""

    def change(parameter: Open) -> object:
        if isinstance(parameter, OpenNumber | OpenText):
            return type(parameter).of(parameter.name, NOWHERE)
        return replace(parameter, span=NOWHERE)

    return filled(tree, change)


def filled(tree: T, change: Callable[[Open], object]) -> T:
    """The tree with `change` applied to each open parameter."""
    return _filled(tree, change)  # type: ignore[return-value]


def _filled(tree: Any, change: Callable[[Open], object]) -> object:
    match tree:
        case OpenNumber() | OpenText() | OpenWindow() | e.Parameter():
            return change(tree)
        case e.InList(_, e.ListOf(is_open=True) as values):
            filled = change(values)
            operand: Any = _filled(tree.operand, change)
            if isinstance(filled, e.ListOf):
                return replace(tree, operand=operand, values=filled)
            return e.In(operand, filled, span=tree.span)  # type: ignore[arg-type]
        case SyntaxNode():
            filled = with_changed(tree, lambda item: _filled(item, change))
            return settled(filled) if isinstance(filled, Pattern) else filled
        case tuple():
            return tuple(_filled(child, change) for child in tree)
        case Mapping():
            return {key: _filled(value, change) for key, value in tree.items()}
        case _ if is_dataclass(tree) and not isinstance(tree, type):
            names = [field.name for field in fields(tree) if field.compare]
            return replace(tree, **{name: _filled(getattr(tree, name), change) for name in names})
        case _:
            return tree


def beside_durations(tree: object) -> Iterator[e.Parameter]:
    """The parameters of a tree in place of numbers or durations: in arithmetic, or compared with it.

    Results of ``+``, ``-``, ``*``, ``/`` or ``%``, and ``duration``, are never texts, nor are
    arguments of functions that take durations.
    """
    match tree:
        case e.Arithmetic() | e.Comparison() | e.Between() | e.In():
            terms = [node for node in tree.below() if isinstance(node, e.Node)]
            if isinstance(tree, e.Arithmetic) or any(map(_is_reckoned, terms)):
                yield from (term for term in terms if isinstance(term, e.Parameter))
        case e.Call(name, arguments) if name in SCALAR_FUNCTIONS:
            for place, argument in enumerate(arguments):
                taken = SCALAR_FUNCTIONS[name].taken(place)
                if isinstance(argument, e.Parameter) and Kind.DURATION in taken and Kind.STRING not in taken:
                    yield argument
    for node in _below(tree):
        yield from beside_durations(node)


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
    """The span of a parameter in the text."""
    return getattr(parameter, "span", NOWHERE)
