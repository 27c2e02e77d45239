"""Expressions over events, and the filters made of them (docs/semantics.md, "Patterns").

One family of frozen nodes serves both: a predicate ``p`` of ``X[p]`` reads attributes of one event
(`Attribute.variable` is None), a filter ``f`` speaks of variables. `And`, `Or` and `Not` join either.
Spans are carried and ignored by equality.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from typing import Literal as OneOf

from estero.language.tree.literals import Value, in_lower_case, literal_text
from estero.language.tree.nodes import SyntaxNode, walked, with_changed
from estero.language.tree.words import quoted

ComparisonOperator = OneOf["=", "!=", "<", "<=", ">", ">="]
MIRRORED: Final[Mapping[ComparisonOperator, ComparisonOperator]] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""The operators that say the same with the sides exchanged."""

NEGATED: Final[Mapping[ComparisonOperator, ComparisonOperator]] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
"""The operators that are true of values where these are false."""

COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The operators as functions of Python."""

ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
AggregateFunction = OneOf["count", "sum", "avg", "stddev", "median", "min", "max", "first", "last", "list"]


_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _VALUE = range(8)
"""The binding strength of the operators, loosest first."""


@dataclass(frozen=True, slots=True)
class Node(SyntaxNode, level=_VALUE):
    """The base of expressions and filters."""

    def children(self) -> list[Node]:
        """The nodes directly below this one, left to right."""
        return [node for node in self.below() if isinstance(node, Node)]

    def walk(self) -> Iterator[Node]:
        """This node and all nodes below it, parents first, left to right."""
        return walked(self, Node.children)


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

    @property
    def level(self) -> int:
        """The level of a sign if there is one."""
        return _SIGN if literal_text(self.value).startswith("-") else _VALUE

    def __str__(self) -> str:
        return literal_text(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Literal):
    """``$name`` in the place of a constant that is not known yet (parameters.py)."""

    name: str = ""

    @property
    def level(self) -> int:
        """The level of a value."""
        return _VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameter) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    """``$name`` after IN: `values`, once bound, are of one kind and distinct, and none is NULL.

    Lists with one `digest` have the same values; a list that has none is open.
    """

    name: str
    digest: str = ""
    values: tuple[Value, ...] = field(default=(), compare=False, repr=False, kw_only=True)

    @property
    def is_open(self) -> bool:
        """Whether no values are bound."""
        return not self.digest

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class Attribute(Node, form="{variable:.}{name}"):
    """``a`` of the event at hand (`variable` is None), or ``X.a`` of the events marked X."""

    name: str
    variable: str | None = None

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Previous(Node, form="prev({operand})"):
    """``prev(X.a)``: the value of the event marked X before the one at hand, in the same complex event.

    A comparison with it is asked of every event marked X but the first.
    """

    operand: Attribute


@dataclass(frozen=True, slots=True)
class Negative(Node, level=_SIGN):
    """``-e``."""

    operand: Node

    def __str__(self) -> str:
        text = self.operand.at_level(_SIGN)
        # -5 would be a literal and -- a comment, so those operands are put in parentheses.
        enclosed = text.startswith("-") or isinstance(self.operand, Literal)
        return f"-({text})" if enclosed else f"-{text}"


@dataclass(frozen=True, slots=True)
class Arithmetic(Node, form="{left:=} {operator!s} {right:+}"):
    """``left op right`` with op one of ``+ - * / %``."""

    operator: ArithmeticOperator
    left: Node
    right: Node

    @property
    def level(self) -> int:
        """The level of a sum or a product."""
        return _SUM if self.operator in ("+", "-") else _PRODUCT


@dataclass(frozen=True, slots=True)
class Call(Node, form="{name}({arguments:, })"):
    """A built-in scalar function; `name` in lower case."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class When(Node, form="WHEN {condition} THEN {value}"):
    """One case of a `Case`."""

    condition: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE WHEN p THEN e … ELSE e END``: the value of the first true condition; NULL without ELSE."""

    whens: tuple[When, ...]
    default: Node | None = None

    def __str__(self) -> str:
        last = "" if self.default is None else f" ELSE {self.default}"
        return f"CASE {' '.join(map(str, self.whens))}{last} END"


CastType = OneOf["INTEGER", "FLOAT", "STRING", "BOOLEAN", "TIMESTAMP"]


@dataclass(frozen=True, slots=True)
class Cast(Node, form="CAST({operand} AS {type!s})"):
    """``CAST(e AS t)``: the value as one of another kind; NULL if it is not one."""

    operand: Node
    type: CastType


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """``avg(X.a * X.b)``, ``count(X)``: one value of the set of events marked `variable`.

    `operand` is an expression over one event, in which ``X.a`` is ``a``; None are the events themselves.
    `distinct`: equal values count once.
    """

    function: AggregateFunction
    variable: str
    operand: Node | None = None
    distinct: bool = False

    def __str__(self) -> str:
        of = quoted(self.variable)
        if self.operand is not None:
            of = str(with_variable(self.operand, self.variable))
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{of})"


@dataclass(frozen=True, slots=True)
class Comparison(Node, level=_COMPARISON, form="{left:+} {operator!s} {right:+}"):
    """``left op right`` with op one of ``= != < <= > >=``."""

    operator: ComparisonOperator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Range(Node, form="{low}..{high}"):
    """``low..high`` inside ``IN {…}``: both ends belong to it."""

    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class In(Node, level=_COMPARISON, form="{operand:+} {not}IN {{{members:, }}}"):
    """``operand IN {1, 2, 5..9}``: literals and ranges."""

    operand: Node
    members: tuple[Literal | Range, ...]

    def __hash__(self) -> int:
        return hash((self.operand, _hash_of_some(self.members)))


@dataclass(frozen=True, slots=True)
class InList(Node, level=_COMPARISON, form="{operand:+} {not}IN {values}"):
    """``operand IN $list``: a list that is not written in the query; one of few values becomes an `In`."""

    operand: Node
    values: ListOf


@dataclass(frozen=True, slots=True)
class Between(Node, level=_COMPARISON, form="{operand:+} {not}BETWEEN {low:+} AND {high:+}"):
    """``operand BETWEEN low AND high``: both ends belong to it."""

    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class Like(Node, level=_COMPARISON, form="{operand:+} {not}LIKE {pattern!r}"):
    """``operand LIKE 'pattern'``: ``%``, ``_``, escape ``\\``; case-sensitive."""

    operand: Node
    pattern: str


@dataclass(frozen=True, slots=True)
class Ilike(Node, level=_COMPARISON, form="{operand:+} {not}ILIKE {pattern!r}"):
    """``operand ILIKE 'pattern'``: LIKE of both in lower case, letter by letter."""

    operand: Node
    pattern: str

    @property
    def as_like(self) -> Like:
        """The same test by LIKE."""
        return Like(Call("lower", (self.operand,)), in_lower_case(self.pattern), span=self.span)


@dataclass(frozen=True, slots=True)
class Matches(Node, level=_COMPARISON, form="{operand:+} ~ {regex!r}"):
    """``operand ~ 'regex'``: unanchored search, in the syntax that RE2 and Java share."""

    operand: Node
    regex: str


@dataclass(frozen=True, slots=True)
class IsNull(Node, level=_COMPARISON, form="{operand:+} IS {not}NULL"):
    """``operand IS NULL`` (``IS NOT NULL`` is its `Not`)."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Element(Node, form="{name}"):
    """The element at hand, inside of a `SomeElement` with its name."""

    name: str


@dataclass(frozen=True, slots=True)
class SomeElement(Node, form="some({operand} AS {element}, {condition})"):
    """``some(X.tags AS t, t LIKE 'a%')``: whether an element of a list satisfies a condition.

    One of which that is unknown does not; the test is unknown where there is no list.
    """

    operand: Attribute
    element: str
    condition: Node


@dataclass(frozen=True, slots=True)
class SomeAttribute(Node):
    """Whether one of some attributes satisfies a condition, in which it is the element at hand.

    One of which that is unknown does not: the test is true or false. Texts say it with OR (`spread`); here a
    condition is there once for hundreds of columns.
    """

    attributes: tuple[Attribute, ...]
    element: str
    condition: Node

    def __hash__(self) -> int:
        return hash((_hash_of_some(self.attributes), self.condition))

    @property
    def spread(self) -> Node:
        """The same as a test of each attribute."""
        tests = tuple(
            substituted(self.condition, partial(_in_place_of, self.element, attribute))
            for attribute in self.attributes
        )
        return Call("coalesce", (Or(tests), Literal(False)))

    def __str__(self) -> str:
        return str(self.spread)


@dataclass(frozen=True, slots=True)
class And(Node, level=_AND, form="{parts:+ AND }"):
    """All of two or more parts, by three-valued logic."""

    parts: tuple[Node, ...]

    def __hash__(self) -> int:
        return _hash_of_some(self.parts)


@dataclass(frozen=True, slots=True)
class Or(Node, level=_OR, form="{parts:+ OR }"):
    """Any of two or more parts, by three-valued logic."""

    parts: tuple[Node, ...]

    def __hash__(self) -> int:
        return _hash_of_some(self.parts)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The negation of one part, by three-valued logic."""

    part: Node

    @property
    def level(self) -> int:
        """The level of a test with NOT inside, or of NOT."""
        return self.part.level if "{not}" in self.part.FORM else _NOT

    def __str__(self) -> str:
        if "{not}" in self.part.FORM:
            return self.part.filled("NOT ")
        return f"NOT {self.part.at_level(_NOT)}"


@dataclass(frozen=True, slots=True)
class EventFilter(Node, form="{variable}[{predicate}]"):
    """``X[p]``: p holds for every event marked X (the universal extension; true of none)."""

    variable: str
    predicate: Node


@dataclass(frozen=True, slots=True)
class VariableReference(Node, form="{variable}"):
    """A whole variable as the argument of a set predicate: ``X`` in ``P(X, Y)``."""

    variable: str


@dataclass(frozen=True, slots=True)
class SetPredicate(Node, form="{name}({arguments:, })"):
    """``P(X, Y.a, …)``: a registered or built-in predicate over sets of events."""

    name: str
    arguments: tuple[VariableReference | Attribute | Literal, ...]


CONDITIONS = (
    *(Comparison, Between, In, InList, Like, Ilike, Matches, IsNull),
    *(SomeElement, SomeAttribute, And, Or, Not),
)
"""What is true, false or unknown of one event; the other nodes of expressions over one are values."""


def without_variable(node: Node) -> Node:
    """The condition with ``a`` for each ``X.a``."""
    return with_variable(node, None)


def with_variable(node: Node, variable: str | None) -> Node:
    """The condition on the attributes of one variable, or of the event at hand: ``X.a`` or ``a``."""
    return substituted(
        node, lambda part: replace(part, variable=variable) if isinstance(part, Attribute) else None
    )


def has_previous(condition: Node) -> bool:
    """Whether a condition refers to the previous event."""
    return any(isinstance(part, Previous) for part in condition.walk())


def over_logic(condition: Node, change: Callable[[Node], Node]) -> Node:
    """The condition with `change` applied to each part joined by AND, OR and NOT."""
    return substituted(condition, lambda part: None if isinstance(part, And | Or | Not) else change(part))


def substituted(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The node with `change(part)` for each part where that is not None, from the outside in."""
    changed = change(node)
    if changed is not None:
        return changed
    return with_changed(node, lambda item: substituted(item, change) if isinstance(item, Node) else item)


def _in_place_of(element: str, attribute: Attribute, node: Node) -> Node | None:
    return attribute if isinstance(node, Element) and node.name == element else None


def _hash_of_some(parts: tuple[Node, ...]) -> int:
    """A hash of three parts: a tree is hashed at each of its levels, and rules have hundreds of parts."""
    sample = parts if len(parts) <= 3 else (parts[0], parts[len(parts) // 2], parts[-1])
    return hash((len(parts), sample))


def joined_by_logic(condition: Node) -> Iterator[Node]:
    """The parts of a condition that its AND, OR and NOT join, left to right."""
    if isinstance(condition, And | Or | Not):
        for part in condition.children():
            yield from joined_by_logic(part)
    else:
        yield condition
