"""The common base of syntax nodes: a span in the text, child nodes and a canonical text.

A class defines the form of its nodes: the fields, in the order of the text, how tightly it
binds and how it is written. Printing, walking and changing follow from that, and so does building it from the
production of the grammar that has the name of the class (syntax/productions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from string import Formatter
from typing import Any, ClassVar, Final, TypeVar

from estero.errors import NOWHERE, Span
from estero.language.tree.literals import integer_text, literal_text
from estero.language.tree.words import quoted

Kind = TypeVar("Kind", bound="SyntaxNode")

TIGHTEST: Final = 99
"""The level that never needs parentheses."""
_WITHOUT_NODES: Final = (
    *("str", "str | None", "tuple[str, ...]", "bool", "int", "int | None"),
    *("Value", "EqlValue"),
)
"""Types of fields, as classes write them, that hold no nodes."""


class OpenText(str):
    """``$p`` in the place of a text, as in ``LIKE $p``, until a value is bound to it (parameters.py)."""

    __slots__ = ("name", "span")

    name: str
    span: Span

    @classmethod
    def of(cls, name: str, span: Span) -> OpenText:
        """The parameter of a name."""
        text = cls("")
        text.name, text.span = name, span
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenText) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return (OpenText.of, (self.name, self.span))


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """The base of all nodes; it prints as canonical text that parses back to an equal node.

    A class says how tightly its nodes bind (`level`, larger is tighter) and how they are written (`form`). In
    a form, ``{name}`` is the text of a field: a number, a name (in quotes where it needs them), a node,
    all that a tuple holds, or nothing for None. ``{name!s}`` is a string as it is, ``{name!r}`` a string
    literal. Behind a colon, ``=`` puts nodes in parentheses that bind looser than this one, ``+`` also those
    that bind the same; what else is there goes between the items of a tuple, or after another value.
    ``{not}`` is where NOT goes inside the node.
    """

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    LEVEL: ClassVar[int] = TIGHTEST
    FORM: ClassVar[str] = ""

    def __init_subclass__(cls, *, level: int | None = None, form: str | None = None) -> None:
        # A dataclass with slots is made twice, the second time without arguments.
        if level is not None:
            cls.LEVEL = level
        if form is not None:
            cls.FORM = form

    @property
    def level(self) -> int:
        """The binding strength of this node; larger is tighter."""
        return self.LEVEL

    def __str__(self) -> str:
        return self.filled()

    def filled(self, negation: str = "") -> str:
        """The form of this node filled with its fields, and with `negation`."""
        text = ""  # lists and generators would be one more call at each level of a deep tree
        for fixed, name, spec, conversion in _slots(self.FORM):
            text += fixed + (negation if name == "not" else self._slot(name, spec, conversion))
        return text

    def at_level(self, least: int) -> str:
        """The text of this node, in parentheses if it binds looser than `least`."""
        text = str(self)
        return text if least <= 0 or self.level >= least else f"({text})"

    def _slot(self, name: str, spec: str, conversion: str) -> str:
        value = getattr(self, name) if name else None
        if value is None:
            return ""
        least = {"=": self.level, "+": self.level + 1}.get(spec[:1])
        after = spec if least is None else spec[1:]
        if isinstance(value, tuple):
            texts = []
            for item in value:
                texts.append(_text(item, least or 0, conversion))  # noqa: PERF401 (as in filled)
            return after.join(texts)
        return _text(value, least or 0, conversion) + after

    def below(self) -> list[SyntaxNode]:
        """The nodes in the fields of this one, of any kind, left to right."""
        kind: Any = type(self)  # whose __hash__ is that of its nodes, mypy thinks
        nodes: list[SyntaxNode] = []
        for name in _names_of_inner(kind):
            value = getattr(self, name)
            if isinstance(value, SyntaxNode):
                nodes.append(value)
            elif isinstance(value, tuple):
                nodes += [item for item in value if isinstance(item, SyntaxNode)]
        return nodes


def names_of(kind: type[SyntaxNode]) -> tuple[str, ...]:
    """The fields of a node class except its span."""
    return kind.__match_args__


@cache
def _names_of_inner(kind: type[SyntaxNode]) -> tuple[str, ...]:
    """The fields of a node class that may hold nodes, as far as their types say so."""
    names = names_of(kind)
    return tuple(one.name for one in fields(kind) if one.name in names and one.type not in _WITHOUT_NODES)


def names_in_text(kind: type[SyntaxNode]) -> tuple[str, ...]:
    """The fields of a node class in the order of its form; without a form, in that of the class."""
    return tuple(name for _, name, _, _ in _slots(kind.FORM) if name not in ("", "not")) or names_of(kind)


def walked(root: Kind, children: Callable[[Kind], list[Kind]]) -> Iterator[Kind]:
    """A node and all nodes below it, parents first, left to right."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)[::-1]


def with_changed(node: Kind, change: Callable[[Any], object]) -> Kind:
    """The node with `change` applied to the value of each field, or to each item of a tuple."""

    def changed(value: object) -> object:
        return tuple(map(change, value)) if isinstance(value, tuple) else change(value)

    values: dict[str, Any] = {name: changed(getattr(node, name)) for name in names_of(type(node))}
    return replace(node, **values)


@cache
def _slots(form: str) -> tuple[tuple[str, str, str, str], ...]:
    """The pieces of a form: fixed text, then the name of a field, what its colon says, and r or s."""
    return tuple(
        (fixed, name or "", spec or "", conversion or "")
        for fixed, name, spec, conversion in Formatter().parse(form)
    )


def _text(item: object, least: int, conversion: str) -> str:
    match item:
        case SyntaxNode():
            return item.at_level(least)
        case int():
            return integer_text(item)
        case OpenText():
            return f"${item.name}"
        case str() if not conversion:
            return quoted(item)
        case str():
            return item if conversion == "s" else literal_text(item)
        case _:
            raise TypeError(f"{item!r} has no text in a query")
