"""Translated values with their kinds, and the two-valued test of conditions that may be NULL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from estero.errors import NOWHERE, Span
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of an event, `written` as a node of EQL; its `kind` is None for NULL or if it is unknown."""

    node: e.Node
    kind: Kind | None
    written: object = "this"

    @classmethod
    def of_constant(cls, value: bool | float | str | None, span: Span) -> Typed:
        """A constant."""
        return cls(e.Literal(value, span=span), _KINDS[type(value)], "this constant")

    @property
    def text(self) -> str:
        """The text in EQL, for error messages."""
        return str(self.written)

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant."""
        return isinstance(self.node, e.Literal)

    @property
    def is_null(self) -> bool:
        """Whether it is NULL for every event."""
        return isinstance(self.node, e.Literal) and self.node.value is None

    @property
    def constant(self) -> Value:
        """The value of a constant; None for anything else."""
        return self.node.value if isinstance(self.node, e.Literal) else None

    @property
    def span(self) -> Span:
        """The place in the text."""
        return self.node.span


_KINDS: Final[dict[type, Kind | None]] = {
    type(None): None,
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    str: Kind.STRING,
}


def unknown(span: Span = NOWHERE) -> e.Literal:
    """NULL."""
    return e.Literal(None, span=span)


NOTHING: Final = Typed(unknown(), None)
"""The value of a field that no event has."""


def is_true(condition: e.Node) -> e.Node:
    """Whether a condition is true, with NULL as false."""
    match condition:
        case e.Literal(value):
            return e.Literal(value is True, span=condition.span)
        case _ if _is_decided(condition):
            return condition
        case _:
            return e.Call("coalesce", (condition, e.Literal(False)), span=condition.span)


def _is_decided(condition: e.Node) -> bool:
    """Whether a condition is never NULL."""
    match condition:
        case e.IsNull() | e.Call("coalesce"):
            return True
        case e.Not(part):
            return _is_decided(part)
        case e.And(parts) | e.Or(parts):
            return all(map(_is_decided, parts))
        case _:
            return False


def never(value: Typed, span: Span) -> e.Node:
    """False, or NULL if the value is NULL."""
    not_null = e.Not(e.IsNull(value.node, span=span), span=span)
    return e.Case((e.When(not_null, e.Literal(False, span=span), span=span),), span=span)
