"""Expressions over events, and the filters made of them (semantics.md, "The pattern").

One family of frozen nodes serves both: a predicate ``p`` of ``X[p]`` reads attributes of one event
(`Attribute.variable` is None), a filter ``f`` speaks of variables. `And`, `Or` and `Not` join either.
Spans are carried and ignored by equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal as OneOf

from estero.errors import NOWHERE, Span
from estero.language.tree.literals import Value, literal_text
from estero.language.tree.words import quoted

ComparisonOperator = OneOf["=", "!=", "<", "<=", ">", ">="]
ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
AggregateFunction = OneOf["count", "sum", "avg", "stddev", "min", "max", "first", "last"]


@dataclass(frozen=True, slots=True)
class Node:
    """The base of expressions and filters; it prints as canonical text that parses back to an equal tree."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return _text(self, _OR)

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, left to right."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from (item for item in value if isinstance(item, Node))

    def walk(self) -> Iterator[Node]:
        """This node and all nodes below it, parents first, left to right."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(list(node.children())))


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant. ``NULL`` is ``Literal(None)``. Constants of different types differ: 1, 1.0 and TRUE."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``a`` of the event at hand (`variable` is None), or ``X.a`` of the events marked X."""

    name: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """``-e``."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """``left op right`` with op one of ``+ - * / %``."""

    operator: ArithmeticOperator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A built-in scalar function; `name` in lower case."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """``avg(X.a)``, ``count(X)``: one value of the set of events marked `variable`."""

    function: AggregateFunction
    variable: str
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """``left op right`` with op one of ``= != < <= > >=``."""

    operator: ComparisonOperator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Range(Node):
    """``low..high`` inside ``IN {…}``: both ends belong to it."""

    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class In(Node):
    """``operand IN {1, 2, 5..9}``: literals and ranges."""

    operand: Node
    members: tuple[Literal | Range, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``operand BETWEEN low AND high``: both ends belong to it."""

    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``operand LIKE 'pattern'``: ``%``, ``_``, escape ``\\``; case-sensitive."""

    operand: Node
    pattern: str


@dataclass(frozen=True, slots=True)
class Matches(Node):
    """``operand ~ 'regex'``: unanchored search, in the syntax that RE2 and Java share."""

    operand: Node
    regex: str


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``operand IS NULL`` (``IS NOT NULL`` is its `Not`)."""

    operand: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    """All of two or more parts, by three-valued logic."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Any of two or more parts, by three-valued logic."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The negation of one part, by three-valued logic."""

    part: Node


@dataclass(frozen=True, slots=True)
class EventFilter(Node):
    """``X[p]``: p holds for every event marked X (the universal extension; true of none)."""

    variable: str
    predicate: Node


@dataclass(frozen=True, slots=True)
class VariableReference(Node):
    """A whole variable as the argument of a set predicate: ``X`` in ``P(X, Y)``."""

    variable: str


@dataclass(frozen=True, slots=True)
class SetPredicate(Node):
    """``P(X, Y.a, …)``: a registered or built-in predicate over sets of events."""

    name: str
    arguments: tuple[VariableReference | Attribute | Literal, ...]


def without_variable(node: Node) -> Node:
    """The same condition with ``a`` for each ``X.a``."""
    return with_variable(node, None)


def with_variable(node: Node, variable: str | None) -> Node:
    """The same condition on the attributes of one variable, or of the event at hand: ``X.a`` or ``a``."""
    if isinstance(node, Attribute):
        return replace(node, variable=variable)
    changed: dict[str, Node | tuple[object, ...]] = {}
    for name in (each.name for each in fields(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            changed[name] = with_variable(value, variable)
        elif isinstance(value, tuple):
            changed[name] = tuple(
                with_variable(item, variable) if isinstance(item, Node) else item for item in value
            )
    return replace(node, **changed)  # type: ignore[arg-type]


# ── Canonical text ───────────────────────────────────────────────────────────────────────────────

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _VALUE = range(8)
"""How tightly the operators bind, loosest first."""


def _text(node: Node, least: int) -> str:
    """The text of a node, in parentheses if it binds looser than `least`."""
    level, text = _with_level(node)
    return text if level >= least else f"({text})"


def _with_level(node: Node) -> tuple[int, str]:
    match node:
        case Or(parts):
            return _OR, " OR ".join(_text(part, _AND) for part in parts)
        case And(parts):
            return _AND, " AND ".join(_text(part, _NOT) for part in parts)
        case Not(In() | Between() | Like() | IsNull() as test):
            return _COMPARISON, _test(test, "NOT ")
        case Not(part):
            return _NOT, f"NOT {_text(part, _NOT)}"
        case Comparison(operator, left, right):
            return _COMPARISON, f"{_text(left, _SUM)} {operator} {_text(right, _SUM)}"
        case Matches(operand, regex):
            return _COMPARISON, f"{_text(operand, _SUM)} ~ {literal_text(regex)}"
        case In() | Between() | Like() | IsNull():
            return _COMPARISON, _test(node, "")
        case Arithmetic("+" | "-" as operator, left, right):
            return _SUM, f"{_text(left, _SUM)} {operator} {_text(right, _PRODUCT)}"
        case Arithmetic(operator, left, right):
            return _PRODUCT, f"{_text(left, _PRODUCT)} {operator} {_text(right, _SIGN)}"
        case Negative(operand):
            text = _text(operand, _SIGN)
            # -5 would be a literal and -- a comment, so those operands are put in parentheses.
            enclosed = text.startswith("-") or isinstance(operand, Literal)
            return _SIGN, f"-({text})" if enclosed else f"-{text}"
        case Literal(value):
            text = literal_text(value)
            return _SIGN if text.startswith("-") else _VALUE, text
        case _:
            return _VALUE, _value(node)


def _test(test: In | Between | Like | IsNull, negation: str) -> str:
    operand = _text(test.operand, _SUM)
    match test:
        case In(_, members):
            return f"{operand} {negation}IN {{{', '.join(map(str, members))}}}"
        case Between(_, low, high):
            return f"{operand} {negation}BETWEEN {_text(low, _SUM)} AND {_text(high, _SUM)}"
        case Like(_, pattern):
            return f"{operand} {negation}LIKE {literal_text(pattern)}"
        case IsNull():
            return f"{operand} IS {negation}NULL"


def _value(node: Node) -> str:
    match node:
        case Attribute(name, variable):
            return quoted(name) if variable is None else f"{quoted(variable)}.{quoted(name)}"
        case VariableReference(variable):
            return quoted(variable)
        case EventFilter(variable, predicate):
            return f"{quoted(variable)}[{predicate}]"
        case Call(name, arguments) | SetPredicate(name, arguments):
            return f"{quoted(name)}({', '.join(map(str, arguments))})"
        case Aggregate(function, variable, attribute):
            of = quoted(variable) if attribute is None else f"{quoted(variable)}.{quoted(attribute)}"
            return f"{function}({of})"
        case Range(low, high):
            return f"{low}..{high}"
        case _:
            raise TypeError(f"{type(node).__name__} has no text")
